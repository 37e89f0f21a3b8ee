// A filter under a load that changes with time, beside an exact memory of what it must still know.
#ifndef LETHE_TESTS_SUPPORT_SIMULATED_LOAD_H_
#define LETHE_TESTS_SUPPORT_SIMULATED_LOAD_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/filter.h"
#include "src/published/paper.h"
#include "src/reference/any_engine.h"
#include "tests/support/filter_testing.h"
#include "tests/support/status_matchers.h"

namespace lethe {

// Ids per horizon at a time in horizons.
using LoadAt = std::function<double(double)>;

// Of a Poisson variable with that mean: whether so many come with a probability below `chance`, by
// Chernoff's bound. (A binomial one varies less.)
inline bool IsTooMany(double count, double mean, double chance) {
  return count > mean && count - mean + count * std::log(mean / count) < std::log(chance);
}
inline bool IsTooFew(double count, double mean, double chance) {
  if (count >= mean) return false;
  const double log_ratio = count > 0 ? count * std::log(mean / count) : 0;
  return count - mean + log_ratio < std::log(chance);
}

// What was measured with ids that were never inserted.
struct Probed {
  double hits = 0;
  double probes = 0;
  double expected = 0;  // hits, by the filter's estimate
  double rate() const { return probes > 0 ? hits / probes : 0; }
};

// Feeds the published filter in steps of half a full interval, and after each compares it with what it must
// be: every id that it took within the horizon is there (by samples of all ages, the oldest among them; all
// of them when asked), its window is the horizon at least, its memory is within the limit and the budget has
// it, the rate that its bits imply is not over the target, its steps are whole and give their reason, and its
// N is what they have made of it. After each refresh strangers are asked for. Failures are gtest's.
class SimulatedLoad {
 public:
  struct Options {
    double target_fpp = 1e-3;
    int64_t limit_bytes = int64_t{1} << 30;
    uint64_t seed = 0;
    int probes_per_refresh = 200'000;
    // Whether the limit is not to be met, and so the promise to be kept.
    bool ample = true;
  };
  static constexpr int64_t kHorizonMs = 24 * 3'600'000;
  static constexpr double kStepsPerHorizon = 2000;
  // Of one comparison; a program makes less than ten thousand.
  static constexpr double kChance = 1e-11;

  explicit SimulatedLoad(const Options& options) : options_(options), memory_(options.limit_bytes) {
    absl::StatusOr<std::unique_ptr<Filter>> filter = NewFilter(
        Engine::kPublished,
        {.horizon = absl::Milliseconds(kHorizonMs), .target_fpp = options.target_fpp, .memory = &memory_});
    EXPECT_OK(filter);
    filter_ = *std::move(filter);
    TakeStatus();
  }

  // Goes on for so many horizons.
  void Run(double horizons, const LoadAt& load) {
    const double begin = time_;
    const auto steps = static_cast<int64_t>(std::ceil(horizons * kStepsPerHorizon));
    double due = 0;
    for (int64_t step = 1; step <= steps; ++step) {
      time_ = begin + horizons * static_cast<double>(step) / static_cast<double>(steps);
      due += load(time_) * horizons / static_cast<double>(steps);
      while (due >= 1) {
        const auto count = static_cast<size_t>(std::min(due, static_cast<double>(BatchSize())));
        Insert(count);
        due -= static_cast<double>(count);
        unchecked_ += count;
        if (unchecked_ >= BatchSize()) Check();
      }
      if (step % kCheckSteps == 0) Check();
    }
    Check();
  }

  // Nothing comes for so many horizons; the filter is told the time, or learns it with the next id.
  void Stop(double horizons, bool told) {
    time_ += horizons;
    if (told) {
      filter_->AdvanceTo(NowMs());
      now_ms_ = NowMs();
    }
    Check();
  }

  // All ids of the last `ms` that were taken are there.
  void ExpectAllOfLast(int64_t ms) {
    int64_t lost = 0;
    for (auto known = known_.rbegin(); known != known_.rend() && known->time_ms >= now_ms_ - ms; ++known) {
      lost += IsContained(*filter_, NumberedId(known->number, options_.seed)) ? 0 : 1;
    }
    EXPECT_EQ(lost, 0) << Where();
  }

  Probed Probe(int probes) {
    Probed probed{.probes = static_cast<double>(probes), .expected = status_.fpp.estimated * probes};
    std::vector<IdHash> ids(4000);
    std::vector<Verdict> verdicts(ids.size());
    for (int left = probes; left > 0; left -= static_cast<int>(ids.size())) {
      ids.resize(std::min<size_t>(ids.size(), static_cast<size_t>(left)));
      for (IdHash& id : ids) id = NumberedId(kStrangers + next_stranger_++, options_.seed);
      filter_->Contains(ids, absl::MakeSpan(verdicts).first(ids.size()));
      probed.hits += static_cast<double>(std::count(
          verdicts.begin(), verdicts.begin() + static_cast<std::ptrdiff_t>(ids.size()), Verdict::kDuplicate));
    }
    return probed;
  }

  const FilterStatus& status() const { return status_; }
  double bytes() const { return static_cast<double>(memory_.used_bytes()); }
  // Of all refreshes.
  const Probed& probed() const { return probed_; }
  // Of all steps.
  double worst_estimate() const { return worst_estimate_; }
  int64_t Steps(AdaptationStep::Kind kind) const { return steps_[static_cast<size_t>(kind)]; }
  std::string Where() const {
    return absl::StrCat("LETHE_SEED=", options_.seed, ", at ", time_, " horizons, target ",
                        options_.target_fpp, ", measured ", probed_.rate(), " in ", probed_.probes,
                        " probes, estimated ", status_.fpp.estimated, ", modelled ", status_.fpp.modelled,
                        ", bytes ", memory_.used_bytes());
  }

 private:
  struct Known {
    uint64_t number;
    int64_t time_ms;
  };
  static constexpr uint64_t kStrangers = uint64_t{1} << 62;
  static constexpr int64_t kStartMs = 1'700'000'000'000;
  static constexpr size_t kSamples = 64;
  static constexpr int64_t kCheckSteps = 50;

  int64_t NowMs() const { return kStartMs + static_cast<int64_t>(time_ * kHorizonMs); }

  // A half of a full interval.
  size_t BatchSize() const {
    const PaperPolicy policy(kHorizonMs, options_.target_fpp, status_.shape.bits_per_generation,
                             status_.shape.bits_per_id);
    return static_cast<size_t>(std::max<int64_t>(policy.most_ids() / 2, 1));
  }

  void Insert(size_t count) {
    batch_.clear();
    verdicts_.resize(count);
    for (size_t i = 0; i < count; ++i) batch_.push_back({NumberedId(next_ + i, options_.seed), NowMs()});
    filter_->TestAndInsert(batch_, absl::MakeSpan(verdicts_));
    now_ms_ = NowMs();
    first_ms_ = std::min(first_ms_, now_ms_);
    for (size_t i = 0; i < count; ++i, ++next_) {
      if (verdicts_[i] == Verdict::kUnique) known_.push_back({next_, now_ms_});
    }
  }

  void Check() {
    unchecked_ = 0;
    if (testing::Test::HasFailure()) return;  // one is enough, and what follows from it is not news
    // What is older than three horizons is of no use to any question.
    while (!known_.empty() && known_.front().time_ms < now_ms_ - 3 * kHorizonMs) known_.pop_front();
    const int64_t refreshes = status_.refreshes;
    TakeStatus();
    EXPECT_LE(memory_.used_bytes(), memory_.limit_bytes()) << Where();
    EXPECT_EQ(memory_.used_bytes(), status_.memory_bytes) << Where();
    if (options_.ample && !known_.empty()) {
      EXPECT_GE(status_.window, absl::Milliseconds(std::min(kHorizonMs, now_ms_ - first_ms_))) << Where();
    }
    // Else the window is shorter, but what the filter says that it is: of the millisecond in which it begins,
    // some may be gone.
    CheckSamples(options_.ample ? kHorizonMs
                                : std::min(kHorizonMs, absl::ToInt64Milliseconds(status_.window) - 1));
    worst_estimate_ = std::max(worst_estimate_, status_.fpp.estimated);
    EXPECT_LE(status_.fpp.estimated, options_.target_fpp) << Where();
    if (status_.refreshes != refreshes) CheckRate();
  }

  void CheckSamples(int64_t window_ms) {
    const auto first = std::partition_point(known_.begin(), known_.end(), [&](const Known& known) {
      return known.time_ms < now_ms_ - window_ms;
    });
    const auto all = known_.end() - first;
    if (all == 0) return;
    for (size_t i = 0; i < kSamples; ++i) {
      // The oldest, then one of each age in turn.
      const auto place =
          i == 0 ? 0 : static_cast<std::ptrdiff_t>(sampled_++ * 0x9E3779B97F4A7C15u >> 33) % all;
      const Known& known = *(first + place);
      ASSERT_TRUE(IsContained(*filter_, NumberedId(known.number, options_.seed)))
          << "an id " << now_ms_ - known.time_ms << " ms old is lost; " << Where();
    }
  }

  void CheckRate() {
    const Probed probed = Probe(options_.probes_per_refresh);
    probed_.hits += probed.hits;
    probed_.probes += probed.probes;
    probed_.expected += probed.expected;
    EXPECT_FALSE(IsTooMany(probed.hits, options_.target_fpp * probed.probes, kChance))
        << probed.hits << " of " << probed.probes << " strangers; " << Where();
  }

  // The status, with all steps since the last one told apart from those that were there already.
  void TakeStatus() {
    FilterStatus now = filter_->Status();
    const std::vector<AdaptationStep>& old_steps = status_.steps;
    const auto same = [](const AdaptationStep& x, const AdaptationStep& y) {
      return x.kind == y.kind && x.stream_time_ms == y.stream_time_ms &&
             x.bits_per_generation == y.bits_per_generation && x.reason == y.reason;
    };
    size_t gone = 0;
    while (gone < old_steps.size() && !(now.steps.size() >= old_steps.size() - gone &&
                                        std::equal(old_steps.begin() + static_cast<std::ptrdiff_t>(gone),
                                                   old_steps.end(), now.steps.begin(), same))) {
      ++gone;
    }
    for (size_t i = old_steps.size() - gone; i < now.steps.size(); ++i) CheckStep(now.steps[i]);
    status_ = std::move(now);
    EXPECT_EQ(status_.shape.past_generations, past_generations_) << Where();
    EXPECT_EQ(Steps(AdaptationStep::Kind::kShortenWindow), status_.limit_hits) << Where();
  }

  void CheckStep(const AdaptationStep& step) {
    ++steps_[static_cast<size_t>(step.kind)];
    EXPECT_FALSE(step.reason.empty()) << Where();
    EXPECT_GT(step.bits_per_generation, 0) << Where();
    EXPECT_GE(step.stream_time_ms, last_step_ms_) << Where();
    last_step_ms_ = step.stream_time_ms;
    if (step.kind == AdaptationStep::Kind::kScaleUp) {
      past_generations_ = std::min(2 * past_generations_ + 2, PaperPolicy::kMostPast);
    }
    if (step.kind == AdaptationStep::Kind::kScaleDown) --past_generations_;
  }

  const Options options_;
  MemoryBudget memory_;
  std::unique_ptr<Filter> filter_;
  FilterStatus status_;
  double time_ = 0;  // in horizons
  int64_t now_ms_ = kStartMs;
  int64_t first_ms_ = INT64_MAX;  // of the first id
  uint64_t next_ = 0;
  uint64_t next_stranger_ = 0;
  size_t unchecked_ = 0;
  uint64_t sampled_ = 0;
  std::deque<Known> known_;  // in the order of time
  Probed probed_;
  std::vector<TimedId> batch_;
  std::vector<Verdict> verdicts_;
  std::array<int64_t, 16> steps_{};
  int64_t last_step_ms_ = std::numeric_limits<int64_t>::min();
  int past_generations_ = 1;  // by the steps up and down
  double worst_estimate_ = 0;
};

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_SIMULATED_LOAD_H_
