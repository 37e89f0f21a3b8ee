#include "src/published/adaptive_fbf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/assertion.h"
#include "src/filter/stream_clock.h"
#include "src/published/published_check.h"
#include "src/published/published_fbf.h"
#include "src/published/published_model.h"
#include "src/snapshot/fields.h"

namespace lethe {
namespace {

// Times beyond these are as good as these, and nothing overflows.
constexpr int64_t kEarliestMs = -(int64_t{1} << 60);
constexpr int64_t kLatestMs = int64_t{1} << 60;
constexpr size_t kMostSteps = 64;
// As many as N and t need at most, and a quarter more for intervals that were full before their time.
constexpr size_t kMostGenerations = (PaperPolicy::kMostPast + 2) * 5 / 4;

// Why it adapts: AdaptationStep::reason, for people.
constexpr absl::string_view kNearTarget =
    "intervals as full as the open one would bring the rate to nine tenths of the target";
constexpr absl::string_view kTooGood = "with one filter less the rate would stay under a tenth of the target";
constexpr absl::string_view kMostFilters = "there are as many filters as can be";
constexpr absl::string_view kNoRoomForFilters = "the memory limit leaves no room for more filters";
constexpr absl::string_view kOldestFilterDropped = "at the memory limit the oldest filter was dropped";
// A snapshot holds a reason's place in this list.
constexpr absl::string_view kReasons[] = {kNearTarget, kTooGood, kMostFilters, kNoRoomForFilters,
                                          kOldestFilterDropped};
// What is counted from zero on, so that the first of a kind is seen as an increase.
constexpr StepCount kCountedSteps[] = {
    {AdaptationStep::Kind::kScaleUp, kNearTarget},
    {AdaptationStep::Kind::kScaleDown, kTooGood},
    {AdaptationStep::Kind::kUnfoldRefused, kMostFilters},
    {AdaptationStep::Kind::kUnfoldRefused, kNoRoomForFilters},
    {AdaptationStep::Kind::kShortenWindow, kOldestFilterDropped},
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdaptiveFbf>> AdaptiveFbf::Create(const FilterOptions& options) {
  const PublishedFbfOptions shape = PublishedShape(options);
  std::unique_ptr<AdaptiveFbf> filter(new AdaptiveFbf(options, shape.bits_per_generation, shape.hashes));
  if (!filter->AddGeneration() || !filter->AddGeneration()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("published filter: needs ", 2 * BitArray::BytesFor(shape.bits_per_generation),
                     " bytes to begin with, and of the limit of ", options.memory->limit_bytes(), " only ",
                     options.memory->limit_bytes() - options.memory->used_bytes(),
                     " are left; raise the memory limit or open fewer partitions"));
  }
  return filter;
}

AdaptiveFbf::AdaptiveFbf(const FilterOptions& options, int64_t bits_per_generation, int hashes)
    : options_(options),
      horizon_ms_(WholeMilliseconds(options.horizon)),
      bits_per_generation_(bits_per_generation),
      hashes_(hashes),
      memory_(options.memory),
      policy_(horizon_ms_, options.target_fpp, bits_per_generation, hashes),
      steps_(kMostSteps, kCountedSteps) {}

bool AdaptiveFbf::ContainsId(IdHash id) const {
  return PublishedCheck(generations_.size(), [&](size_t age) { return generations_[age].bits.Contains(id); });
}

// As if an interval ended then: what is outdated is gone.
bool AdaptiveFbf::ContainsIdAt(const TimedId& timed) const {
  const int64_t then_ms = std::clamp(timed.stream_time_ms, kEarliestMs, kLatestMs);
  if (then_ms <= now_ms_ || now_ms_ == kNoStreamTime) return ContainsId(timed.id);
  if (last_insert_ms_ == kNoStreamTime || last_insert_ms_ + horizon_ms_ < then_ms) return false;
  size_t left = generations_.size();
  while (left > 2 && IsOutdated(generations_[left - 1], then_ms) && !IsKept(generations_[left - 1], then_ms))
    --left;
  return PublishedCheck(left, [&](size_t age) { return generations_[age].bits.Contains(timed.id); });
}

void AdaptiveFbf::InsertId(IdHash id) {
  generations_[0].bits.Insert(id);
  generations_[1].bits.Insert(id);
  if (++generations_[0].ids == 1) generations_[0].first_ms = now_ms_;
  generations_[0].last_ms = last_insert_ms_ = now_ms_;
  if (generations_[0].ids == policy_.most_ids()) Adapt();
}

void AdaptiveFbf::ReplayId(IdHash id) {
  // The interval that it was inserted in; by PublishedCheck's order.
  size_t age = 0;
  bool in_newer = false;
  for (; age < generations_.size(); ++age) {
    const bool in_this = generations_[age].bits.Contains(id);
    const bool is_last = age + 1 == generations_.size();
    if (in_this && (age == 0 || in_newer || is_last)) break;
    in_newer = in_this;
  }
  if (age == generations_.size()) return InsertId(id);
  generations_[in_newer ? age - 1 : age].kept_ms = now_ms_;
  last_insert_ms_ = now_ms_;
}

void AdaptiveFbf::AdvanceTo(int64_t stream_time_ms) {
  const int64_t now_ms = std::clamp(stream_time_ms, kEarliestMs, kLatestMs);
  if (stream_time_ms == kNoStreamTime || now_ms <= now_ms_) return;
  if (now_ms_ == kNoStreamTime) Begin(now_ms);
  now_ms_ = now_ms;
  if (last_insert_ms_ != kNoStreamTime && last_insert_ms_ + horizon_ms_ < now_ms) {
    ForgetAll();
  } else if (now_ms - begin_ms_ >= policy_.refresh_period_ms()) {
    EndInterval();
  }
  if (policy_.IsDue(now_ms)) Adapt();
}

// What came before time began counts as having come now, which keeps it long enough.
void AdaptiveFbf::Begin(int64_t now_ms) {
  first_ms_ = begin_ms_ = now_ms;
  for (Generation& generation : generations_) {
    if (generation.ids > 0) generation.first_ms = generation.last_ms = last_insert_ms_ = now_ms;
  }
  if (limit_hits_ > 0) forgotten_until_ms_ = now_ms;
}

void AdaptiveFbf::Adapt() {
  if (IsFull()) EndInterval();
  PaperPolicy::Intervals intervals;
  for (const Generation& generation : generations_) {
    if (generation.is_full) {
      ++intervals.full;
    } else {
      intervals.most_ids = std::max(intervals.most_ids, generation.ids);
    }
  }
  switch (policy_.Wanted(intervals, now_ms_)) {
    case PaperPolicy::Step::kNone:
      return;
    case PaperPolicy::Step::kUp:
      return GoUp();
    case PaperPolicy::Step::kDown:
      policy_.StepDown();
      return Record(AdaptationStep::Kind::kScaleDown, kTooGood);
  }
}

void AdaptiveFbf::GoUp() {
  const int64_t filters = policy_.PastAfterUp() + 2 - static_cast<int64_t>(generations_.size());
  const int64_t bytes = std::max<int64_t>(0, filters) * BitArray::BytesFor(bits_per_generation_);
  if (!policy_.CanGoUp()) {
    RecordRefusal(kMostFilters);
  } else if (!memory_.HasRoomFor(bytes)) {
    RecordRefusal(kNoRoomForFilters);
  } else {
    policy_.StepUp();
    Record(AdaptationStep::Kind::kScaleUp, kNearTarget);
    if (IsFull()) EndInterval();  // it was refused before, and an interval takes less now
  }
}

bool AdaptiveFbf::IsOutdated(const Generation& generation, int64_t now_ms) const {
  return generation.ids == 0 || generation.last_ms + horizon_ms_ < now_ms;
}

bool AdaptiveFbf::IsKept(const Generation& generation, int64_t now_ms) const {
  return generation.kept_ms != kNoStreamTime && generation.kept_ms + horizon_ms_ >= now_ms;
}

void AdaptiveFbf::EndInterval() {
  double fpp = fpp_at_interval_end_;
  try {
    fpp = ModelledFpp();
  } catch (const std::bad_alloc&) {
    // A figure to be shown: where there is no memory to work it out, the one before stays.
  }
  generations_[0].is_full = IsFull();
  begin_ms_ = now_ms_;
  MakeRoom();
  LETHE_DEBUG_ASSERT(generations_.size() >= 2);
  fpp_at_interval_end_ = fpp;
  refused_in_interval_ = false;
  ++refreshes_;
  policy_.IntervalEnded();
}

// A new future, and the outdated gone. A dropped array is used again at once, because its memory
// might be somebody else's by the time that it is asked for.
void AdaptiveFbf::MakeRoom() {
  const auto is_over = [this] {
    return IsOutdated(generations_.back(), now_ms_) && !IsKept(generations_.back(), now_ms_);
  };
  if (is_over()) {
    RecycleOldest();
    while (generations_.size() > 2 && is_over()) DropOldest();
    return;
  }
  if (AddGeneration()) return;
  const bool is_kept_only = IsOutdated(generations_.back(), now_ms_);  // as long as there was room
  RecycleOldest();
  if (is_kept_only) return;
  ++limit_hits_;
  Record(AdaptationStep::Kind::kShortenWindow, kOldestFilterDropped);
}

void AdaptiveFbf::RecycleOldest() {
  forgotten_until_ms_ = std::max(forgotten_until_ms_, generations_.back().last_ms);
  Generation future = {{}, std::move(generations_.back().bits)};
  future.bits.Clear();
  std::move_backward(generations_.begin(), generations_.end() - 1, generations_.end());
  generations_.front() = std::move(future);
}

bool AdaptiveFbf::AddGeneration() {
  const int64_t bytes = BitArray::BytesFor(bits_per_generation_);
  if (generations_.size() == kMostGenerations || !HasPlaceForOne() || !memory_.Grow(bytes)) return false;
  std::optional<BitArray> array = BitArray::Create(bits_per_generation_, hashes_);
  if (!array.has_value()) {
    memory_.Shrink(bytes);
    return false;
  }
  generations_.insert(generations_.begin(), Generation{{}, *std::move(array)});
  return true;
}

bool AdaptiveFbf::HasPlaceForOne() {
  if (generations_.size() < generations_.capacity()) return true;
  const size_t places = std::bit_ceil(generations_.size() + 1);
  try {
    generations_.reserve(places);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void AdaptiveFbf::DropOldest() {
  forgotten_until_ms_ = std::max(forgotten_until_ms_, generations_.back().last_ms);
  generations_.pop_back();
  memory_.Shrink(BitArray::BytesFor(bits_per_generation_));
}

// All ids are older than the horizon.
void AdaptiveFbf::ForgetAll() {
  while (generations_.size() > 2) DropOldest();
  for (Generation& generation : generations_) {
    generation.bits.Clear();
    generation.ids = 0;
    generation.is_full = false;
    generation.last_ms = generation.kept_ms = kNoStreamTime;
  }
  forgotten_until_ms_ = last_insert_ms_;
  last_insert_ms_ = kNoStreamTime;
  begin_ms_ = now_ms_;
  refused_in_interval_ = false;
  ++refreshes_;
  policy_.IntervalEnded();
}

double AdaptiveFbf::ModelledFpp() const {
  std::vector<double> interval_ids;
  interval_ids.reserve(generations_.size());
  for (const Generation& generation : generations_) {
    interval_ids.push_back(static_cast<double>(generation.ids));
  }
  return FppWithSharedIntervals(interval_ids, static_cast<double>(bits_per_generation_), hashes_);
}

FilterStatus AdaptiveFbf::Status() const {
  FilterStatus status;
  status.shape.past_generations = policy_.past_generations();
  status.shape.refresh_period = absl::Milliseconds(policy_.refresh_period_ms());
  status.shape.bits_per_generation = bits_per_generation_;
  status.shape.bits_per_id = hashes_;
  std::vector<const BitArray*> arrays;
  for (const Generation& generation : generations_) {
    status.ids += generation.ids;
    arrays.push_back(&generation.bits);
  }
  const int64_t since = forgotten_until_ms_ == kNoStreamTime ? first_ms_ : forgotten_until_ms_;
  if (since != kNoStreamTime) status.window = absl::Milliseconds(now_ms_ - since);
  status.fpp.modelled = ModelledFpp();
  const PublishedEstimate estimate = EstimatePublished(arrays);
  status.present_fill = estimate.present_fill;
  status.fpp.estimated = estimate.fpp;
  status.fpp.deviation = estimate.deviation;
  status.fpp.at_interval_end = fpp_at_interval_end_;
  status.fpp.target = options_.target_fpp;
  status.memory_bytes = memory_.bytes();
  status.refreshes = refreshes_;
  status.limit_hits = limit_hits_;
  steps_.Describe(&status);
  DescribeGenerations(&status);
  return status;
}

// A generation has the ids of its own interval, and of the next one, when it was the present.
void AdaptiveFbf::DescribeGenerations(FilterStatus* status) const {
  const auto ago = [&](int64_t time_ms) {
    return time_ms == kNoStreamTime ? absl::ZeroDuration() : absl::Milliseconds(now_ms_ - time_ms);
  };
  const Generation* newer = nullptr;
  for (const Generation& generation : generations_) {
    const bool has_newer = newer != nullptr && newer->ids > 0;
    const Generation& oldest = generation.ids > 0 || !has_newer ? generation : *newer;
    const Generation& newest = has_newer ? *newer : generation;
    status->generations.push_back({.ids = generation.ids + (has_newer ? newer->ids : 0),
                                   .oldest = ago(oldest.first_ms),
                                   .newest = ago(newest.last_ms),
                                   .fill = generation.bits.Fill()});
    newer = &generation;
  }
}

template <typename Self, typename Intervals, typename Fields>
void AdaptiveFbf::Transfer(Self& self, Intervals& intervals, Fields& fields) {
  PaperPolicy::Transfer(self.policy_, fields);
  for (auto* time_ms :
       {&self.now_ms_, &self.first_ms_, &self.begin_ms_, &self.last_insert_ms_, &self.forgotten_until_ms_}) {
    fields.Time(*time_ms);
  }
  fields.Count(self.refreshes_);
  fields.Count(self.limit_hits_);
  fields.Int(self.refused_in_interval_, 0, 1);
  fields.Float(self.fpp_at_interval_end_, 0, 1);
  StepLog::Transfer<kReasons>(self.steps_, fields);
  TransferList(intervals, kMostGenerations, fields, [&](auto& interval) {
    fields.Count(interval.ids);
    fields.Time(interval.first_ms);
    fields.Time(interval.last_ms);
    fields.Time(interval.kept_ms);
    fields.Int(interval.is_full, 0, 1);
  });
}

bool AdaptiveFbf::IsSound(const std::vector<Interval>& intervals) const {
  const bool has_time = now_ms_ != kNoStreamTime;
  if (intervals.size() < 2 || !steps_.IsSound()) return false;
  for (const int64_t time_ms : {first_ms_, begin_ms_}) {
    if ((time_ms != kNoStreamTime) != has_time || time_ms > now_ms_) return false;
  }
  if (last_insert_ms_ > now_ms_ || forgotten_until_ms_ > now_ms_) return false;
  for (const Interval& interval : intervals) {
    if (interval.first_ms > now_ms_ || interval.last_ms > now_ms_ || interval.kept_ms > now_ms_) return false;
    if (interval.ids > 0 && (interval.last_ms != kNoStreamTime) != has_time) return false;
  }
  return true;
}

namespace {

// Of an image: future and present as they were.
struct YoungCopy {
  std::vector<char> bytes[2];
};

}  // namespace

absl::StatusOr<FilterImage> AdaptiveFbf::BeginCopy() const {
  FieldWriter fields;
  Transfer(*this, generations_, fields);
  if (!fields.ok()) return absl::InternalError("published filter: its state is inconsistent");
  auto young = std::make_shared<YoungCopy>();
  FilterImage image = {.state = fields.bytes(), .memory = {}, .epoch = ImageEpoch(), .copy = young};
  for (const Generation& generation : generations_) image.memory.push_back(generation.bits.memory());
  for (size_t i = 0; i < 2; ++i) young->bytes[i].assign(image.memory[i].begin(), image.memory[i].end());
  return image;
}

bool AdaptiveFbf::CopyMemory(const FilterImage& image, absl::Span<const char> part, char* to) const {
  if (ImageEpoch() != image.epoch) return false;
  const char* from = part.data();
  const auto* const young = static_cast<const YoungCopy*>(image.copy.get());
  for (size_t i = 0; i < 2; ++i) {
    const absl::Span<const char> live = image.memory[i];
    const bool is_in_it = std::less_equal<>()(live.data(), part.data()) &&
                          std::less<>()(part.data(), live.data() + live.size());
    if (is_in_it) from = young->bytes[i].data() + (part.data() - live.data());
  }
  std::memcpy(to, from, part.size());
  return true;
}

absl::StatusOr<std::vector<absl::Span<char>>> AdaptiveFbf::Restore(absl::string_view state, int64_t bytes) {
  FieldReader fields(state);
  std::vector<Interval> intervals;
  Transfer(*this, intervals, fields);
  bits_per_generation_ = policy_.bits();
  const int64_t bytes_of_each = BitArray::BytesFor(bits_per_generation_);
  if (!fields.Ended() || !IsSound(intervals) ||
      bytes != static_cast<int64_t>(intervals.size()) * bytes_of_each) {
    return absl::DataLossError("the saved state of a published filter is inconsistent");
  }
  generations_.clear();
  memory_.Shrink(memory_.bytes());
  generations_.reserve(intervals.size());
  std::vector<absl::Span<char>> memory;
  for (const Interval& interval : intervals) {
    std::optional<BitArray> array;
    if (memory_.Grow(bytes_of_each)) array = BitArray::Create(bits_per_generation_, hashes_);
    if (!array.has_value()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the filter needs ", bytes, " bytes, and of the memory limit of ", options_.memory->limit_bytes(),
          " only ", options_.memory->free_bytes(), " are left: raise it, or open fewer partitions"));
    }
    generations_.push_back(Generation{interval, *std::move(array)});
    memory.push_back(generations_.back().bits.memory());
  }
  return memory;
}

void AdaptiveFbf::RecordRefusal(absl::string_view reason) {
  if (std::exchange(refused_in_interval_, true)) return;
  Record(AdaptationStep::Kind::kUnfoldRefused, reason);
}

void AdaptiveFbf::Record(AdaptationStep::Kind kind, absl::string_view reason) {
  steps_.Record({kind, now_ms_, bits_per_generation_, reason});
}

}  // namespace lethe
