// Several threads on one partition: of all copies of an id exactly one is passed.
#include <atomic>
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
constexpr size_t kIds = 5000;
const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

class StageThreadsTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    stage_ = *DedupStage::Create({.shards = GetParam()}, ExactFilter::Factory());
    partition_ = *stage_->Open("p");
  }

  // Each thread judges every id once, in an order and in batches of its own.
  template <typename Judge>
  void JudgeInAllThreads(const std::vector<uint64_t>& seeds, Judge judge) {
    std::vector<std::thread> threads;
    for (const uint64_t seed : seeds) {
      threads.emplace_back([this, seed, judge] {
        std::mt19937_64 random(seed);
        std::vector<size_t> order(kIds);
        std::iota(order.begin(), order.end(), size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        for (size_t first = 0; first < kIds;) {
          const size_t size = std::min(kIds - first, 1 + random() % 50);
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

  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> partition_;
  std::vector<std::atomic<int>> passes_ = std::vector<std::atomic<int>>(kIds);
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

}  // namespace
}  // namespace lethe
