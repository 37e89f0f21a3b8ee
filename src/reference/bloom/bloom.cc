#include "src/reference/bloom/bloom.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/published/fixed_share.h"
#include "src/published/published_model.h"

namespace lethe {

absl::StatusOr<std::unique_ptr<Bloom>> Bloom::Create(const FilterOptions& options) {
  const int64_t bits = FixedShareBytes(*options.memory) / 8 * 64;
  const int hashes = std::clamp(static_cast<int>(std::lround(-std::log2(options.target_fpp))), 1, 64);
  Reservation memory(options.memory);
  if (!memory.Grow(BitArray::BytesFor(bits))) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "Bloom filter: needs ", BitArray::BytesFor(bits), " bytes, and of the limit of ",
        options.memory->limit_bytes(), " only ", options.memory->limit_bytes() - options.memory->used_bytes(),
        " are left; raise the memory limit or open fewer partitions"));
  }
  std::optional<BitArray> array = BitArray::Create(bits, hashes);
  if (!array.has_value()) {
    return absl::ResourceExhaustedError(absl::StrCat("Bloom filter: the system refused ",
                                                     BitArray::BytesFor(bits),
                                                     " bytes that the memory limit allows; lower it"));
  }
  return std::unique_ptr<Bloom>(new Bloom(options.target_fpp, std::move(memory), *std::move(array)));
}

// The clock is only asked for the time since the start: its interval is of no account.
Bloom::Bloom(double target_fpp, Reservation memory, BitArray bits)
    : target_fpp_(target_fpp), memory_(std::move(memory)), bits_(std::move(bits)), clock_(INT64_MAX) {}

void Bloom::InsertId(IdHash id) {
  bits_set_ += bits_.Insert(id);
  ++ids_;
}

void Bloom::Clear() {
  bits_.Clear();
  bits_set_ = 0;
  ids_ = 0;
}

FilterStatus Bloom::Status() const {
  const auto bits = static_cast<double>(bits_.bits());
  FilterStatus status;
  status.shape.bits_per_generation = bits_.bits();
  status.shape.bits_per_id = bits_.hashes();
  status.ids = ids_;
  status.window = clock_.SinceStart();
  status.fpp.modelled = BloomFpp(static_cast<double>(ids_), bits, bits_.hashes());
  status.fpp.estimated = std::pow(static_cast<double>(bits_set_) / bits, bits_.hashes());
  status.fpp.target = target_fpp_;
  status.memory_bytes = memory_.bytes();
  return status;
}

}  // namespace lethe
