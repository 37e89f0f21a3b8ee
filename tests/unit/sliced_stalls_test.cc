// No call of a sliced filter waits for a whole pass: whatever is swept, doubled or halved, each call does a
// small part of it. Seen from outside, by the lines of its memory that a call has changed.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "src/filter/engine_filter.h"
#include "src/reference/sliced/sliced_fbf.h"
#include "src/reference/sliced/sliced_model.h"
#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kHorizonMs = 24 * kHourMs;
constexpr size_t kLineBytes = 64;

// Calls in which a pass took lines.
struct Seen {
  int64_t calls = 0;
  int64_t after_gaps = 0;  // those of them that came after hours without a call
  int64_t most_lines = 0;  // of one of them
};

class WatchedFilter {
 public:
  WatchedFilter(double target_fpp, int past_generations, uint64_t seed)
      : seed_(seed),
        random_(seed),
        shape_{.columns = past_generations + 2, .lines_per_id = SlicedShapeFor(target_fpp).lines_per_id},
        cap_(SlicedCap(shape_, target_fpp)) {
    absl::StatusOr<std::unique_ptr<Filter>> filter = NewSlicedFbf(
        {.horizon = absl::Milliseconds(kHorizonMs), .target_fpp = target_fpp, .memory = &memory_},
        past_generations);
    EXPECT_TRUE(filter.ok()) << filter.status();
    filter_ = *std::move(filter);
  }

  // The ids that fill so many lines for a horizon.
  double RateFor(double lines) const { return lines * cap_ * SlicedWindowIntervals(shape_); }
  // Goes on for so many ids, at a rate per horizon, unwatched.
  void Feed(int64_t ids, double rate) {
    for (int64_t done = 0; done < ids; done += 256) Call(256, rate);
  }

  // The same in watched calls of so many ids each, until such a pass has begun and ended; with a gap, hours
  // pass in the middle of it.
  void Watch(FilterPass until, double rate, size_t ids_in_call, bool gap) {
    before_.clear();
    CountWritten();
    running_ = FilterPass::kNone;
    const size_t bytes = before_.size();
    bool was_seen = false;
    // A horizon has some intervals, in which all comes that may be wanted.
    for (double done = 0; done < 3 * rate && !testing::Test::HasFatalFailure();) {
      const bool now = gap && running_ == until;
      if (now) now_ms_ += static_cast<double>((1 + random_() % 5) * kHourMs);
      gap = gap && !now;
      // Time alone, or with ids.
      const size_t count = random_() % 16 == 0 ? 0 : ids_in_call;
      Call(count, rate);
      done += static_cast<double>(std::max<size_t>(1, count));
      Check(count, now);
      // One fold may follow upon the other.
      if (was_seen && !gap && (running_ != until || before_.size() < bytes)) return;
      was_seen = was_seen || running_ == until;
    }
    ADD_FAILURE() << "no pass " << static_cast<int>(until) << " has begun and ended, LETHE_SEED=" << seed_;
  }

  const Seen& seen(FilterPass pass) const { return seen_[static_cast<size_t>(pass)]; }

 private:
  void Call(size_t count, double rate) {
    ids_.clear();
    verdicts_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      now_ms_ += static_cast<double>(kHorizonMs) / rate;
      ids_.push_back({NumberedId(next_++, seed_), static_cast<int64_t>(now_ms_)});
    }
    // The times of a call are one, so that time takes a pass further once.
    for (TimedId& id : ids_) id.stream_time_ms = static_cast<int64_t>(now_ms_);
    if (count == 0) {
      filter_->AdvanceTo(static_cast<int64_t>(now_ms_));
    } else {
      filter_->TestAndInsert(ids_, absl::MakeSpan(verdicts_));
    }
  }

  // The lines that have changed since it was called last, in the lower half of memory and in the upper one.
  std::array<int64_t, 2> CountWritten() {
    const absl::StatusOr<FilterImage> image = static_cast<const EngineFilter&>(*filter_).BeginCopy();
    EXPECT_TRUE(image.ok()) << image.status();
    const absl::Span<const char> now = image->memory.front();
    before_.resize(now.size());  // with zeros, as new memory is
    std::array<int64_t, 2> written{};
    constexpr size_t kBlock = 64 * kLineBytes;
    for (size_t block = 0; block < now.size(); block += kBlock) {
      const size_t end = std::min(now.size(), block + kBlock);
      if (std::memcmp(&before_[block], &now[block], end - block) == 0) continue;
      for (size_t line = block; line < end; line += kLineBytes) {
        const bool changed = std::memcmp(&before_[line], &now[line], kLineBytes) != 0;
        written[line < now.size() / 2 ? 0 : 1] += changed ? 1 : 0;
      }
      std::memcpy(&before_[block], &now[block], end - block);
    }
    return written;
  }

  // A sweep lasts for a twentieth of a full interval's inserts or more, an unfold or fold for a 32nd; they
  // are taken further with every 16th insert, or 4th, and as many fewer as that would be over a thousand
  // lines. By time a call takes a 512th of the lines at most, however long ago the last one was.
  int64_t MostWritten(size_t count, int64_t lines) const {
    const double inserts = static_cast<double>(count);
    const auto lines_of = [&](double per_interval, double inserts_in_step) {
      const double per_insert = std::ceil(per_interval / cap_);
      return (inserts + std::max(1.0, std::min(inserts_in_step, 1024 / per_insert))) * per_insert;
    };
    const double by_time = static_cast<double>(lines) / 512 + 1;
    // One line is written to two in an unfold.
    const double by_pass = std::max(lines_of(20, 16) + by_time, 2 * (lines_of(32, 4) + by_time));
    return static_cast<int64_t>(by_pass + inserts * shape_.lines_per_id);
  }

  void Check(size_t count, bool gap) {
    const auto [lower, upper] = CountWritten();
    const int64_t by_ids = static_cast<int64_t>(count) * shape_.lines_per_id;
    const auto lines = static_cast<int64_t>(before_.size() / kLineBytes);
    const int64_t most = MostWritten(count, lines);
    ASSERT_LE(2 * most, lines) << "too few lines to tell a part from all of them";
    if (lower + upper <= by_ids) {
      if (running_ != FilterPass::kNone) running_ = filter_->Status().pass;
      return;
    }
    const FilterPass pass = filter_->Status().pass;
    // What a fold leaves behind in the upper half is given back in large pieces, unwritten.
    const bool folds = running_ == FilterPass::kFold || pass == FilterPass::kFold;
    const int64_t written = lower + (folds ? std::min(upper, by_ids) : upper);
    ASSERT_LE(written, most) << "of " << lines << " lines, in a call with " << count << " ids"
                             << (gap ? " after hours" : "") << ", pass " << static_cast<int>(pass)
                             << ", LETHE_SEED=" << seed_;
    Seen& seen = seen_[static_cast<size_t>(pass != FilterPass::kNone ? pass : running_)];
    running_ = pass;
    ++seen.calls;
    seen.after_gaps += gap ? 1 : 0;
    seen.most_lines = std::max(seen.most_lines, written);
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
  const SlicedShape shape_;
  const double cap_;
  MemoryBudget memory_{int64_t{64} << 20};
  std::unique_ptr<Filter> filter_;
  double now_ms_ = 1.7e12;
  uint64_t next_ = 0;
  std::vector<TimedId> ids_;
  std::vector<Verdict> verdicts_;
  std::vector<char> before_;
  FilterPass running_ = FilterPass::kNone;  // when it was looked at last
  std::array<Seen, 4> seen_{};
};

struct Kind {
  const char* name;
  double target_fpp;
  int past_generations;
  double lines;  // about
  size_t ids_in_call;
};

class SlicedStalls : public testing::TestWithParam<Kind> {};

constexpr int kUsers = kDefaultPastGenerations;
INSTANTIATE_TEST_SUITE_P(Calls, SlicedStalls,
                         testing::Values(Kind{"Single", 1e-6, kUsers, 3000, 1},
                                         Kind{"SingleAtALowTarget", 1e-12, kUsers, 6000, 1},
                                         Kind{"Batches", 1e-6, kUsers, 16'000, 64},
                                         Kind{"BatchesInHugePages", 1e-6, kUsers, 60'000, 64},
                                         Kind{"SingleWithThirty", 1e-2, 30, 3000, 1}),
                         [](const testing::TestParamInfo<Kind>& of) { return of.param.name; });

TEST_P(SlicedStalls, NoCallDoesMoreThanAPartOfAPass) {
  const uint64_t seed = TestSeed();
  const Kind& kind = GetParam();
  for (const bool gap : {false, true}) {
    SCOPED_TRACE(gap ? "with gaps" : "without gaps");
    WatchedFilter filter(kind.target_fpp, kind.past_generations, seed);
    const double rate = filter.RateFor(kind.lines);
    filter.Feed(static_cast<int64_t>(1.5 * rate), rate);
    filter.Watch(FilterPass::kSweep, rate, kind.ids_in_call, gap);
    filter.Watch(FilterPass::kUnfold, 4 * rate, kind.ids_in_call, gap);
    filter.Watch(FilterPass::kFold, 0.05 * rate, kind.ids_in_call, gap);
    for (const FilterPass pass : {FilterPass::kSweep, FilterPass::kUnfold, FilterPass::kFold}) {
      const Seen& seen = filter.seen(pass);
      EXPECT_GT(seen.calls, 5) << "pass " << static_cast<int>(pass) << ", at most " << seen.most_lines;
      EXPECT_EQ(seen.after_gaps > 0, gap) << "pass " << static_cast<int>(pass);
    }
  }
}

}  // namespace
}  // namespace lethe
