// Several threads on one partition: of all copies of an id exactly one is passed.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "tests/support/exact_filter.h"
#include "tests/support/seed.h"

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
    partition_->Judge(events, verdicts);
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
    transaction.Judge(events, verdicts);
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

TEST_P(StageThreadsTest, ATransactionBeginsWhileOthersJudge) {
  // Events that are judged in one step while a transaction begins are either before it or in it; as all
  // transactions commit, each id passes once.
  std::atomic<bool> done = false;
  std::thread judge([&] {
    JudgeInAllThreads(Seeds(), [this](const std::vector<Event>& events, absl::Span<Verdict> verdicts) {
      partition_->Judge(events, verdicts);
    });
    done = true;
  });
  std::vector<Transaction> transaction;
  transaction.push_back(*partition_->Begin());
  while (!done) std::this_thread::yield();
  judge.join();
  transaction.back().Commit();
  for (const auto& passes : passes_) EXPECT_EQ(passes, 1);
}

// The sliced filters of four shards, which at once grow to more than the limit has for all of them: what is
// given to one is missing to another, and the pages that each grows into are made present by a thread more.
// An hour of these ids would be 3.6 million, ten MiB for each shard; but only these come, so that those that
// may not grow have room for them all the same.
class SlicedThreadsTest : public Threads {
 protected:
  static constexpr size_t kSlicedIds = 60'000;
  static constexpr StageOptions kOptions = {.horizon = absl::Hours(1),
                                            .target_fpp = 1e-12,
                                            .memory_limit_bytes = int64_t{24} << 20,
                                            .shards = 4,
                                            .engine = Engine::kSliced,
                                            .audit_share = 0};
  SlicedThreadsTest() : Threads(*DedupStage::Create(kOptions), kSlicedIds) {}
};

TEST_F(SlicedThreadsTest, ShardsThatUnfoldAtOnceShareALimit) {
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      const int64_t used = stage_->memory().used_bytes();
      EXPECT_LE(used, kOptions.memory_limit_bytes);
      EXPECT_LE(partition_->Status().unique, static_cast<int64_t>(kSlicedIds));
      std::this_thread::yield();
    }
  });
  JudgeInAllThreads(Seeds(), [this](const std::vector<Event>& events, absl::Span<Verdict> verdicts) {
    partition_->Judge(events, verdicts);
  });
  done = true;
  watcher.join();
  for (const auto& passes : passes_) EXPECT_EQ(passes, 1);
  const FilterStatus filter = partition_->Status().filter;
  const auto steps = [&](AdaptationStep::Kind kind) {
    int64_t count = 0;
    for (const StepCount& one : filter.step_counts) count += one.kind == kind ? one.count : 0;
    return count;
  };
  // Some have grown from 3 MiB to 6, for which pages are prepared.
  EXPECT_GT(filter.memory_bytes, int64_t{4 * 3 + 1} << 20);
  EXPECT_GT(steps(AdaptationStep::Kind::kUnfold), 4 * 7);
  EXPECT_GT(steps(AdaptationStep::Kind::kUnfoldRefused), 0);
  EXPECT_EQ(filter.limit_hits, 0);
}

}  // namespace
}  // namespace lethe
