// The published filter in a snapshot. The field list below is the format of its state.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/reference/published/published_fbf.h"
#include "src/snapshot/fields.h"

namespace lethe {
namespace {

constexpr int64_t kMostBitsPerGeneration = int64_t{1} << 45;

}  // namespace

template <typename Self, typename Fields>
void PublishedFbf::Transfer(Self& self, int64_t& first_ms, int64_t& now_ms, Fields& fields) {
  const auto generations = static_cast<int64_t>(self.generations_.size());
  int64_t past = generations - 2;
  fields.Int(past, generations - 2, generations - 2);
  fields.Int(self.options_.bits_per_generation, 1, kMostBitsPerGeneration);
  int64_t hashes = self.options_.hashes;
  fields.Int(hashes, self.options_.hashes, self.options_.hashes);
  int64_t interval_ms = self.clock_.interval_ms();
  fields.Int(interval_ms, self.clock_.interval_ms(), self.clock_.interval_ms());
  fields.Int(self.future_, 0, generations - 1);
  for (auto& ids : self.interval_ids_) fields.Count(ids);
  fields.Time(first_ms);
  fields.Time(now_ms);
  fields.Count(self.refreshes_);
}

absl::StatusOr<FilterImage> PublishedFbf::BeginCopy() const {
  int64_t first_ms = clock_.first_ms();
  int64_t now_ms = clock_.now_ms();
  FieldWriter fields;
  Transfer(*this, first_ms, now_ms, fields);
  if (!fields.ok()) return absl::InternalError("published filter: its state is inconsistent");
  FilterImage image{fields.bytes(), {}, ImageEpoch()};
  for (const BitArray& generation : generations_) image.memory.push_back(generation.memory());
  return image;
}

absl::StatusOr<std::vector<absl::Span<char>>> PublishedFbf::Restore(absl::string_view state, int64_t bytes) {
  FieldReader fields(state);
  int64_t first_ms = kNoStreamTime;
  int64_t now_ms = kNoStreamTime;
  Transfer(*this, first_ms, now_ms, fields);
  const int64_t bits = options_.bits_per_generation;
  const auto count = static_cast<int64_t>(generations_.size());
  if (!fields.Ended() || bytes != count * BitArray::BytesFor(bits) || first_ms > now_ms) {
    return absl::DataLossError("the saved state of a published filter is inconsistent");
  }
  if (!memory_.Grow(bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the filter needs ", bytes, " bytes more than the memory limit of ",
                     options_.memory->limit_bytes(), " leaves: raise it, or open fewer partitions"));
  }
  std::vector<absl::Span<char>> memory;
  for (BitArray& generation : generations_) {
    memory_.Shrink(generation.bytes());
    std::optional<BitArray> array = BitArray::Create(bits, options_.hashes);
    if (!array.has_value()) {
      return absl::ResourceExhaustedError(absl::StrCat("published filter: the system refused ", bytes,
                                                       " bytes that the memory limit allows; lower it"));
    }
    generation = *std::move(array);
    memory.push_back(generation.memory());
  }
  clock_.AdvanceTo(first_ms);
  clock_.AdvanceTo(now_ms);
  return memory;
}

// Generation i was the future in the interval i before this one, and the present in the next.
void PublishedFbf::DescribeGenerations(FilterStatus* status) const {
  for (size_t age = 0; age < generations_.size(); ++age) {
    const size_t slot = Slot(age);
    const auto intervals = static_cast<int64_t>(age);
    const int64_t as_present = age == 0 ? 0 : interval_ids_[Slot(age - 1)];
    status->generations.push_back({.ids = interval_ids_[slot] + as_present,
                                   .oldest = clock_.Since(intervals),
                                   .newest = age < 2 ? absl::ZeroDuration() : clock_.Since(intervals - 2),
                                   .fill = generations_[slot].Fill()});
  }
}

}  // namespace lethe
