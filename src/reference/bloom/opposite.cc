#include "src/reference/bloom/opposite.h"

#include <cmath>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/published/fixed_share.h"

namespace lethe {

absl::StatusOr<std::unique_ptr<Opposite>> Opposite::Create(const FilterOptions& options) {
  const int64_t bytes = FixedShareBytes(*options.memory) / 8 * 8;
  Reservation memory(options.memory);
  if (!memory.Grow(bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "opposite filter: needs ", bytes, " bytes, and of the limit of ", options.memory->limit_bytes(),
        " only ", options.memory->limit_bytes() - options.memory->used_bytes(),
        " are left; raise the memory limit or open fewer partitions"));
  }
  const auto slot_count = static_cast<uint64_t>(bytes / 8);
  Slots slots(new (std::nothrow) std::atomic<uint64_t>[slot_count]());
  if (slots == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("opposite filter: the system refused ", bytes,
                                                     " bytes that the memory limit allows; lower it"));
  }
  return std::unique_ptr<Opposite>(
      new Opposite(options.target_fpp, std::move(memory), slot_count, std::move(slots)));
}

Opposite::Opposite(double target_fpp, Reservation memory, uint64_t slot_count, Slots slots)
    : target_fpp_(target_fpp),
      memory_(std::move(memory)),
      slot_count_(slot_count),
      slots_(std::move(slots)) {}

bool Opposite::TestAndInsertId(IdHash id) {
  const uint64_t before = SlotOf(id).exchange(Word(id), std::memory_order_relaxed);
  if (before == Word(id)) return true;
  (before == 0 ? ids_ : displaced_).fetch_add(1, std::memory_order_relaxed);
  return false;
}

FilterStatus Opposite::Status() const {
  FilterStatus status;
  status.ids = ids_.load(std::memory_order_relaxed);
  status.fpp.modelled = std::ldexp(static_cast<double>(status.ids) / static_cast<double>(slot_count_), -64);
  status.fpp.estimated = status.fpp.modelled;
  status.fpp.target = target_fpp_;
  status.memory_bytes = memory_.bytes();
  status.limit_hits = displaced_.load(std::memory_order_relaxed);
  return status;
}

}  // namespace lethe
