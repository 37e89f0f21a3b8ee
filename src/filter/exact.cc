#include "src/filter/exact.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/filter/fixed_share.h"

namespace lethe {
namespace {

constexpr int64_t kEpochsAtLimit = 16;

}  // namespace

absl::StatusOr<std::unique_ptr<Exact>> Exact::Create(const FilterOptions& options) {
  // The table takes its memory as ids come; only that there is some is asked for here.
  if (options.memory->limit_bytes() - options.memory->used_bytes() < kSmallestShareBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "exact filter: needs ", kSmallestShareBytes, " bytes, and of the limit of ",
        options.memory->limit_bytes(), " only ", options.memory->limit_bytes() - options.memory->used_bytes(),
        " are left; raise the memory limit or open fewer partitions"));
  }
  return std::unique_ptr<Exact>(new Exact(options));
}

Exact::Exact(const FilterOptions& options)
    : target_fpp_(options.target_fpp),
      epochs_(options.horizon, EpochRing::kMostSlices),
      table_(options.memory) {}

void Exact::InsertId(IdHash id) {
  uint8_t* const found = table_.Find(id.a);
  if (found == nullptr) return Add(id.a);
  epochs_.Count(*found, -1);
  epochs_.Count(epochs_.current(), 1);
  *found = tag();
}

bool Exact::TestAndInsertId(IdHash id) {
  if (table_.Find(id.a) != nullptr) return true;
  Add(id.a);
  return false;
}

void Exact::Add(uint64_t key) {
  while (!table_.Insert(key, tag())) {
    ++limit_hits_;
    // From now on epochs are small parts of what the memory holds, so that one can go at a time.
    short_epoch_ids_ = epochs_.ids() / kEpochsAtLimit + 1;
    if (epochs_.ids() == 0) return;  // others have used up the limit: this id is not kept
    if (!epochs_.DropOldest()) {
      epochs_.Begin();
      epochs_.DropOldest();
    }
    table_.KeepOnly(epochs_.live());
  }
  epochs_.Count(epochs_.current(), 1);
  if (epochs_.ids_of(epochs_.current()) >= short_epoch_ids_) BeginEpoch();
}

void Exact::BeginEpoch() {
  const int64_t ids = epochs_.ids();
  epochs_.Begin();
  if (epochs_.ids() != ids) table_.KeepOnly(epochs_.live());
}

void Exact::AdvanceTo(int64_t stream_time_ms) {
  if (!epochs_.AdvanceTo(stream_time_ms)) return;
  short_epoch_ids_ = INT64_MAX;
  BeginEpoch();
}

FilterStatus Exact::Status() const {
  FilterStatus status;
  status.past_generations = epochs_.slices();
  status.refresh_period = epochs_.slice();
  status.ids = epochs_.ids();
  status.window = epochs_.Window();
  status.fpp_modelled = std::ldexp(static_cast<double>(status.ids), -64);
  status.fpp_estimated = status.fpp_modelled;
  status.fpp_target = target_fpp_;
  status.memory_bytes = table_.memory_bytes();
  status.refreshes = epochs_.begun();
  status.limit_hits = limit_hits_;
  return status;
}

}  // namespace lethe
