// Judging does not allocate: operator new is counted.
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "tests/support/exact_filter.h"

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

class StageAllocationTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Shards, StageAllocationTest, testing::Values(1, 16));

TEST_P(StageAllocationTest, NoneOnceTheLargestTransactionWasSeen) {
  auto stage = *DedupStage::Create({.shards = GetParam()}, ExactFilter::Factory(20 * kBatch));
  auto partition = *stage->Open("p");
  std::vector<Event> events(kBatch);
  std::vector<Verdict> verdicts(kBatch);
  uint64_t next = 0;
  const auto fill = [&] {
    for (Event& event : events) {
      event.id = HashId({reinterpret_cast<const char*>(&next), sizeof(next)}, 1);
      event.time = absl::FromUnixMillis(static_cast<int64_t>(++next));
    }
  };
  const auto transact = [&](bool commit) {
    Transaction transaction = *partition->Begin();
    for (size_t half : {size_t{0}, kBatch / 2}) {
      transaction.Judge(absl::MakeConstSpan(events).subspan(half, kBatch / 2),
                        absl::MakeSpan(verdicts).subspan(half, kBatch / 2));
    }
    transaction.Judge("one more", events[0].time);
    transaction.Forget(events[0].id);
    if (commit) transaction.Commit();
  };
  // Shards get unlike shares of a batch, so the first transaction is larger than those that follow.
  for (int i = 0; i < 2; ++i) {
    Transaction transaction = *partition->Begin();
    for (int batch = 0; batch < 2; ++batch) {
      fill();
      transaction.Judge(events, absl::MakeSpan(verdicts));
    }
  }
  const int64_t before = allocations;
  for (int i = 0; i < 3; ++i) {
    fill();
    transact(false);
    transact(true);
    fill();
    partition->Judge(events, absl::MakeSpan(verdicts));
    partition->Judge("a single one", absl::FromUnixMillis(1));
    fill();
    ASSERT_TRUE(partition->Replay(events).ok());
  }
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace lethe
