#include "src/published/published_fbf.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/assertion.h"
#include "src/published/fixed_share.h"
#include "src/published/published_check.h"

namespace lethe {
namespace {

constexpr int kMostPastGenerations = 1 << 16;
constexpr int64_t kMostBitsPerGeneration = int64_t{1} << 45;
constexpr int kMostHashes = 64;
constexpr int kDefaultPastGenerations = 14;

absl::Status Check(const PublishedFbfOptions& options) {
  const auto refuse = [](auto&&... what) {
    return absl::InvalidArgumentError(absl::StrCat("published filter: ", what...));
  };
  if (options.past_generations < 1 || options.past_generations > kMostPastGenerations) {
    return refuse("past_generations is ", options.past_generations, "; give 1 to ", kMostPastGenerations);
  }
  if (options.bits_per_generation < 1 || options.bits_per_generation > kMostBitsPerGeneration) {
    return refuse("bits_per_generation is ", options.bits_per_generation, "; give 1 to ",
                  kMostBitsPerGeneration);
  }
  if (options.hashes < 1 || options.hashes > kMostHashes) {
    return refuse("hashes is ", options.hashes, "; give 1 to ", kMostHashes);
  }
  if (options.refresh_period <= absl::ZeroDuration() || options.refresh_period == absl::InfiniteDuration()) {
    return refuse("refresh_period is ", absl::FormatDuration(options.refresh_period), "; give 1ms or more");
  }
  if (options.memory == nullptr) return refuse("memory is not set");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PublishedFbf>> PublishedFbf::Create(const PublishedFbfOptions& options) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  const int count = options.past_generations + 2;
  const int64_t bytes = count * BitArray::BytesFor(options.bits_per_generation);
  Reservation memory(options.memory);
  if (!memory.Grow(bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "published filter: needs ", bytes, " bytes, and of the limit of ", options.memory->limit_bytes(),
        " only ", options.memory->limit_bytes() - options.memory->used_bytes(),
        " are left; raise the memory limit or lower the bits per generation"));
  }
  std::vector<BitArray> generations;
  generations.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    std::optional<BitArray> array = BitArray::Create(options.bits_per_generation, options.hashes);
    if (!array.has_value()) {
      return absl::ResourceExhaustedError(absl::StrCat("published filter: the system refused ", bytes,
                                                       " bytes that the memory limit allows; lower it"));
    }
    generations.push_back(*std::move(array));
  }
  return std::unique_ptr<PublishedFbf>(new PublishedFbf(options, WholeMilliseconds(options.refresh_period),
                                                        std::move(memory), std::move(generations)));
}

PublishedFbf::PublishedFbf(const PublishedFbfOptions& options, int64_t refresh_period_ms, Reservation memory,
                           std::vector<BitArray> generations)
    : options_(options),
      memory_(std::move(memory)),
      generations_(std::move(generations)),
      interval_ids_(generations_.size(), 0),
      clock_(refresh_period_ms) {}

bool PublishedFbf::ContainsId(IdHash id) const {
  return PublishedCheck(generations_.size(),
                        [&](size_t age) { return generations_[Slot(age)].Contains(id); });
}

// Each interval that begins until then makes a generation one older, behind an empty one.
bool PublishedFbf::ContainsIdAt(const TimedId& timed) const {
  const uint64_t begun = clock_.IntervalsUntil(timed.stream_time_ms);
  if (begun >= generations_.size()) return false;
  return PublishedCheck(generations_.size(), [&](size_t age) {
    return age >= begun && generations_[Slot(age - begun)].Contains(timed.id);
  });
}

void PublishedFbf::InsertId(IdHash id) {
  generations_[future_].Insert(id);
  generations_[Slot(1)].Insert(id);
  ++interval_ids_[future_];
}

// What is in the future was inserted in this interval.
void PublishedFbf::ReplayId(IdHash id) {
  if (!generations_[future_].Contains(id)) InsertId(id);
}

void PublishedFbf::Refresh() {
  future_ = Slot(generations_.size() - 1);  // the oldest is dropped: its array is the new future's
  generations_[future_].Clear();
  interval_ids_[future_] = 0;
  LETHE_DEBUG_ASSERT(future_ < generations_.size() && generations_.size() >= 2);
  ++refreshes_;
}

void PublishedFbf::AdvanceTo(int64_t stream_time_ms) {
  // After as many refreshes as there are generations nothing is left to forget, however long the gap.
  const uint64_t due = std::min<uint64_t>(clock_.AdvanceTo(stream_time_ms), generations_.size());
  for (uint64_t i = 0; i < due; ++i) Refresh();
}

double PublishedFbf::ModelledFpp() const {
  std::vector<double> newest_first(generations_.size());
  for (size_t age = 0; age < newest_first.size(); ++age) {
    newest_first[age] = static_cast<double>(interval_ids_[Slot(age)]);
  }
  return FppWithSharedIntervals(newest_first, static_cast<double>(options_.bits_per_generation),
                                options_.hashes);
}

FilterStatus PublishedFbf::Status() const {
  FilterStatus status;
  status.shape.past_generations = options_.past_generations;
  status.shape.refresh_period = absl::Milliseconds(clock_.interval_ms());
  status.shape.bits_per_generation = options_.bits_per_generation;
  status.shape.bits_per_id = options_.hashes;
  for (const int64_t ids : interval_ids_) status.ids += ids;
  status.window = clock_.Since(options_.past_generations + 1);
  status.fpp.modelled = ModelledFpp();
  std::vector<const BitArray*> newest_first;
  for (size_t age = 0; age < generations_.size(); ++age) newest_first.push_back(&generations_[Slot(age)]);
  const PublishedEstimate estimate = EstimatePublished(newest_first);
  status.present_fill = estimate.present_fill;
  status.fpp.estimated = estimate.fpp;
  status.fpp.deviation = estimate.deviation;
  status.fpp.target = options_.target_fpp;
  status.memory_bytes = memory_.bytes();
  status.refreshes = refreshes_;
  DescribeGenerations(&status);
  return status;
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

PublishedFbfOptions PublishedShape(const FilterOptions& options) {
  constexpr int64_t kGenerations = kDefaultPastGenerations + 2;
  const int64_t bytes = FixedShareBytes(*options.memory);
  return {
      .past_generations = kDefaultPastGenerations,
      .bits_per_generation = bytes / (8 * kGenerations) * 64,
      .hashes = std::clamp(static_cast<int>(std::lround(std::log2(2 / options.target_fpp))), 1, kMostHashes),
      .refresh_period = options.horizon / (kDefaultPastGenerations + 1),
      .memory = options.memory,
      .target_fpp = options.target_fpp};
}

}  // namespace lethe
