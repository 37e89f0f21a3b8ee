// Several threads on one partition: of all copies of an id exactly one is passed.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "tests/support/exact_filter.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr int kThreads = 4;
const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

class Threads : public testing::Test {
 protected:
  Threads(std::unique_ptr<DedupStage> stage, size_t ids)
      : stage_(std::move(stage)), partition_(*stage_->Open("p")), passes_(ids) {}

  // Each thread judges every id once, in an order and in batches of its own.
  template <typename Judge>
  void JudgeInAllThreads(const std::vector<uint64_t>& seeds, Judge judge) {
    std::vector<std::thread> threads;
    for (const uint64_t seed : seeds) {
      threads.emplace_back([this, seed, judge] {
        std::mt19937_64 random(seed);
        std::vector<size_t> order(passes_.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        for (size_t first = 0; first < order.size();) {
          const size_t size = std::min(order.size() - first, 1 + random() % 50);
          std::vector<Event> events;
          for (size_t i = first; i < first + size; ++i) {
            const absl::Time time = kStart + absl::Milliseconds(i);
            events.push_back({.id = partition_->Hash(absl::StrCat(order[i])), .time = time});
          }
          std::vector<Verdict> verdicts(size);
          judge(events, absl::MakeSpan(verdicts));
          for (size_t i = 0; i < size; ++i) passes_[order[first + i]] += verdicts[i] == Verdict::kUnique;
          first += size;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<uint64_t> Seeds() {
    std::mt19937_64 random(TestSeed());
    std::vector<uint64_t> seeds(kThreads);
    for (uint64_t& seed : seeds) seed = random();
    return seeds;
  }

  const std::unique_ptr<DedupStage> stage_;
  const std::unique_ptr<Partition> partition_;
  std::vector<std::atomic<int>> passes_;
};

constexpr size_t kIds = 5000;

class StageThreadsTest : public Threads, public testing::WithParamInterface<int> {
 protected:
  StageThreadsTest() : Threads(*DedupStage::Create({.shards = GetParam()}, ExactFilter::Factory()), kIds) {}
};

INSTANTIATE_TEST_SUITE_P(Shards, StageThreadsTest, testing::Values(1, 8));

TEST_P(StageThreadsTest, OneStep) {
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) EXPECT_LE(partition_->Status().unique, static_cast<int64_t>(kIds));
  });
  JudgeInAllThreads(Seeds(), [this](const std::vector<Event>& events, absl::Span<Verdict> verdicts) {
    EXPECT_OK(partition_->Judge(events, verdicts));
  });
  done = true;
  watcher.join();
  for (const auto& passes : passes_) EXPECT_EQ(passes, 1);
  EXPECT_EQ(partition_->Status().duplicates, static_cast<int64_t>((kThreads - 1) * kIds));
}

TEST_P(StageThreadsTest, InOneTransaction) {
  const std::vector<uint64_t> seeds = Seeds();
  Transaction transaction = *partition_->Begin();
  const auto judge = [&](const std::vector<Event>& events, absl::Span<Verdict> verdicts) {
    EXPECT_OK(transaction.Judge(events, verdicts));
  };
  JudgeInAllThreads(seeds, judge);
  for (auto& passes : passes_) EXPECT_EQ(passes.exchange(0), 1);
  transaction.Abort();
  transaction = *partition_->Begin();
  JudgeInAllThreads(seeds, judge);
  transaction.Commit();
  for (const auto& passes : passes_) EXPECT_EQ(passes, 1);
  EXPECT_EQ(partition_->Status().unique, static_cast<int64_t>(kIds));
}

// Each id passes once, whatever was refused and judged again: what is judged outside is before a transaction
// or after it, and none of it is lost with one that is aborted.
TEST_P(StageThreadsTest, TransactionsComeAndGoWhileOthersJudge) {
  std::atomic<bool> done = false;
  std::atomic<int64_t> batches = 0;
  std::thread judge([&] {
    JudgeInAllThreads(Seeds(), [&](const std::vector<Event>& events, absl::Span<Verdict> verdicts) {
      while (!partition_->Judge(events, verdicts).ok()) std::this_thread::yield();
      ++batches;
    });
    done = true;
  });
  int64_t of_transactions = 0;
  int64_t seen = 0;
  for (int round = 0; !done; ++round) {
    // Between two transactions somebody comes to judge.
    while (!done && batches == seen) std::this_thread::yield();
    seen = batches;
    Transaction transaction = *partition_->Begin();
    for (int i = 0; i < 20; ++i) EXPECT_OK(transaction.Judge(absl::StrCat("t", round, "/", i), kStart));
    std::this_thread::yield();
    if (round % 2 == 0) {
      transaction.Commit();
      of_transactions += 20;
    }
  }
  judge.join();
  for (const auto& passes : passes_) EXPECT_EQ(passes, 1);
  // And all are remembered.
  for (size_t id = 0; id < kIds; ++id) {
    ASSERT_EQ(*partition_->Judge(absl::StrCat(id), kStart), Verdict::kDuplicate) << id;
  }
  EXPECT_EQ(partition_->Status().unique, static_cast<int64_t>(kIds) + of_transactions);
  EXPECT_EQ(partition_->Status().pending, 0);
}

// Each pair of calls that the contract allows at once, for the sanitizer of threads.
TEST_P(StageThreadsTest, EveryPairOfCallsMayRunAtOnce) {
  std::optional<Transaction> open;
  const std::vector<Event> batch = {{.id = partition_->Hash("x"), .time = kStart},
                                    {.id = partition_->Hash("y"), .time = kStart}};
  const auto transact = [&] {
    if (auto transaction = partition_->Begin(); transaction.ok()) {
      transaction->Judge("in", kStart).status().IgnoreError();
      transaction->Commit();
    }
  };
  const std::vector<std::pair<bool, std::function<void(int)>>> calls = {
      {false, [&](int i) { partition_->Judge(absl::StrCat("one", i), kStart).status().IgnoreError(); }},
      {false,
       [&](int) {
         std::vector<Verdict> verdicts(batch.size());
         partition_->Judge(batch, absl::MakeSpan(verdicts)).IgnoreError();
       }},
      {false, [&](int i) { partition_->Observe(kStart + absl::Milliseconds(i)).IgnoreError(); }},
      {false, [&](int i) { partition_->AdvanceTo(kStart + absl::Milliseconds(i)).IgnoreError(); }},
      {false, [&](int) { partition_->Replay(batch).IgnoreError(); }},
      {false, [&](int) { partition_->LimitStreamTime(absl::InfiniteFuture()); }},
      {false, [&](int) { EXPECT_GE(partition_->Status().unique, 0); }},
      {false, [&](int) { partition_->stream_time(); }},
      {false, [&](int) { transact(); }},
      {true, [&](int i) { EXPECT_OK(open->Judge(absl::StrCat("two", i), kStart)); }},
      {true, [&](int i) { EXPECT_OK(open->Observe(kStart + absl::Milliseconds(i))); }},
      {true, [&](int i) { EXPECT_OK(open->Forget(partition_->Hash(absl::StrCat("two", i)))); }},
      {true, [&](int) { EXPECT_GE(open->pending_bytes(), 0); }},
      {true, [&](int) { EXPECT_OK(open->status()); }},
  };
  for (const auto& [needs_first, first] : calls) {
    for (const auto& [needs_second, second] : calls) {
      if (needs_first || needs_second) open = *partition_->Begin();
      const auto run = [](const std::function<void(int)>& call) {
        for (int i = 0; i < 20; ++i) call(i);
      };
      std::thread other([&, call = &second] { run(*call); });
      run(first);
      other.join();
      open.reset();
    }
  }
}

// A filter whose memory takes long to look at: until events of another thread have been judged meanwhile.
class SlowlySampledFilter : public ExactFilter {
 public:
  SlowlySampledFilter(const FilterOptions& options, const std::atomic<int>* judged)
      : ExactFilter(options, 0), judged_(judged) {}
  std::unique_ptr<Sample> BeginSample(int64_t /*most_lines*/) const override {
    return std::make_unique<Slow>(judged_);
  }

 private:
  class Slow : public Sample {
   public:
    explicit Slow(const std::atomic<int>* judged) : judged_(judged), end_(*judged + 100) {}
    bool Look() override { return *judged_ >= end_; }
    void Describe(FilterStatus* status) const override { status->fpp.estimated = 0.5; }

   private:
    const std::atomic<int>* const judged_;
    const int end_;
  };
  const std::atomic<int>* const judged_;
};

TEST(StatusTest, LooksAtTheFilterWhileOthersJudge) {
  std::atomic<int> judged = 0;
  auto stage =
      *DedupStage::Create({}, [&](const FilterOptions& options) -> absl::StatusOr<std::unique_ptr<Filter>> {
        if (!options.memory->Reserve(ExactFilter::kBytes)) return absl::ResourceExhaustedError("no room");
        return std::make_unique<SlowlySampledFilter>(options, &judged);
      });
  auto partition = *stage->Open("p");
  std::atomic<bool> done = false;
  std::thread judge([&] {
    while (!done) {
      EXPECT_OK(partition->Judge(absl::StrCat(judged++), kStart));
    }
  });
  // Would never end if events waited for it.
  EXPECT_EQ(partition->Status().filter.fpp.estimated, 0.5);
  done = true;
  judge.join();
}

// A filter that counts how often its memory is looked at.
class CountedSamplesFilter : public ExactFilter {
 public:
  CountedSamplesFilter(const FilterOptions& options, int* samples, int64_t* lines)
      : ExactFilter(options, 0), samples_(samples), lines_(lines) {}
  std::unique_ptr<Sample> BeginSample(int64_t most_lines) const override {
    ++*samples_;
    *lines_ += most_lines;
    return std::make_unique<One>();
  }
  int64_t ImageEpoch() const override { return epoch_; }
  void AdvanceTo(int64_t stream_time_ms) override { epoch_ = stream_time_ms; }

 private:
  class One : public Sample {
   public:
    bool Look() override { return true; }
    void Describe(FilterStatus* status) const override { status->fpp.estimated = 0.25; }
  };
  int* const samples_;
  int64_t* const lines_;
  int64_t epoch_ = 0;
};

TEST(StatusTest, LooksAgainOnlyInAnotherEpochAndAtSoManyLinesInAll) {
  constexpr int kShards = 16;
  int samples = 0;
  int64_t lines = 0;
  auto stage = *DedupStage::Create(
      {.shards = kShards}, [&](const FilterOptions& options) -> absl::StatusOr<std::unique_ptr<Filter>> {
        if (!options.memory->Reserve(ExactFilter::kBytes)) return absl::ResourceExhaustedError("no room");
        return std::make_unique<CountedSamplesFilter>(options, &samples, &lines);
      });
  auto partition = *stage->Open("p");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(partition->Status().filter.fpp.estimated, 0.25);
  EXPECT_EQ(samples, kShards);
  EXPECT_EQ(lines, EngineFilter::kSampledLines);
  ASSERT_OK(partition->AdvanceTo(kStart));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(partition->Status().filter.fpp.estimated, 0.25);
  EXPECT_EQ(samples, 2 * kShards);
}

// The filters of four shards, which together grow to more than the limit has for all of them: what is given
// to one is missing to another, and the pages that each grows into are made present by a thread more.
class GrowingThreadsTest : public Threads {
 protected:
  static constexpr size_t kGrowingIds = 400'000;
  inline static const StageOptions kOptions = {.horizon = absl::Hours(1),
                                               .target_fpp = 1e-12,
                                               .memory_limit_bytes = int64_t{2} << 20,
                                               .shards = 4,
                                               .engine = Engine::kCompact,
                                               .audit_share = 0};
  GrowingThreadsTest() : Threads(*DedupStage::Create(kOptions), kGrowingIds) {}
};

TEST_F(GrowingThreadsTest, ShardsThatGrowAtOnceShareALimit) {
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      const int64_t used = stage_->memory().used_bytes();
      EXPECT_LE(used, kOptions.memory_limit_bytes);
      EXPECT_GE(partition_->Status().unique, 0);
      std::this_thread::yield();
    }
  });
  JudgeInAllThreads(Seeds(), [this](const std::vector<Event>& events, absl::Span<Verdict> verdicts) {
    EXPECT_OK(partition_->Judge(events, verdicts));
  });
  done = true;
  watcher.join();
  for (const auto& passes : passes_) EXPECT_GE(passes, 1);
  const FilterStatus filter = partition_->Status().filter;
  const auto steps = [&](AdaptationStep::Kind kind) {
    int64_t count = 0;
    for (const StepCount& one : filter.step_counts) count += one.kind == kind ? one.count : 0;
    return count;
  };
  EXPECT_GT(filter.memory_bytes, kOptions.memory_limit_bytes * 3 / 4);
  EXPECT_GT(steps(AdaptationStep::Kind::kUnfold), 4 * 4);
  EXPECT_GT(steps(AdaptationStep::Kind::kUnfoldRefused), 0);
  EXPECT_GT(filter.limit_hits, 0);
}

}  // namespace
}  // namespace lethe
