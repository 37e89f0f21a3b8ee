// Judging does not allocate: operator new is counted.
#include <atomic>
#include <cstdlib>
#include <new>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "tests/support/exact_filter.h"
#include "tests/support/status_matchers.h"

namespace {

std::atomic<int64_t> allocations{0};

}  // namespace

[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace lethe {
namespace {

constexpr size_t kBatch = 3000;

// Shards, and the share of ids that are audited.
class StageAllocationTest : public testing::TestWithParam<std::tuple<int, double>> {};

INSTANTIATE_TEST_SUITE_P(Shards, StageAllocationTest,
                         testing::Combine(testing::Values(1, 16), testing::Values(0.0, 1.0)));

TEST_P(StageAllocationTest, NoneOnceTheLargestTransactionWasSeen) {
  const auto [shards, audit_share] = GetParam();
  auto stage = *DedupStage::Create({.shards = shards, .audit_share = audit_share, .hash_seed = 1},
                                   ExactFilter::Factory(20 * kBatch));
  auto partition = *stage->Open("p");
  std::vector<Event> events(kBatch);
  std::vector<Verdict> verdicts(kBatch);
  uint64_t next = 0;
  const auto fill = [&] {
    for (Event& event : events) {
      event.id = partition->Hash({reinterpret_cast<const char*>(&next), sizeof(next)});
      event.time = absl::FromUnixMillis(static_cast<int64_t>(++next));
    }
  };
  const auto transact = [&](bool commit) {
    Transaction transaction = *partition->Begin();
    for (size_t half : {size_t{0}, kBatch / 2}) {
      EXPECT_OK(transaction.Judge(absl::MakeConstSpan(events).subspan(half, kBatch / 2),
                                  absl::MakeSpan(verdicts).subspan(half, kBatch / 2)));
    }
    EXPECT_OK(transaction.Judge("one more", events[0].time));
    EXPECT_OK(transaction.Forget(events[0].id));
    if (commit) transaction.Commit();
  };
  // Shards get unlike shares of a batch, so the first transaction is larger than those that follow.
  for (int i = 0; i < 2; ++i) {
    Transaction transaction = *partition->Begin();
    for (int batch = 0; batch < 2; ++batch) {
      fill();
      EXPECT_OK(transaction.Judge(events, absl::MakeSpan(verdicts)));
    }
  }
  for (int i = 0; i < 6; ++i) {
    fill();
    ASSERT_OK(partition->Replay(events));
  }
  const int64_t audit_before = partition->Status().audit.memory_bytes;
  const int64_t before = allocations;
  fill();
  transact(false);
  transact(true);
  fill();
  EXPECT_OK(partition->Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_OK(partition->Judge("a single one", absl::FromUnixMillis(1)));
  fill();
  ASSERT_OK(partition->Replay(events));
  const int64_t made = allocations - before;
  // The audit grows as a filter does, with what it holds: part by part, by 64 places of 48 bytes at least.
  const int64_t grown = partition->Status().audit.memory_bytes - audit_before;
  EXPECT_LE(made, grown / (64 * 48) * 4);
}

}  // namespace
}  // namespace lethe
