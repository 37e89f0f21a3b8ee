// Whatever waits in the pipeline waits by its clock, and needs no thread of its own.
#include "src/pipeline/clock/clock.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "src/pipeline/snapshots/snapshots.h"
#include "src/pipeline/task/worker_state.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

TEST(ClockTest, TheSystemsGoesOnAndEndsAWaitAtTheStop) {
  const absl::Time steady = SystemClock().Steady();
  const absl::Time wall = SystemClock().Wall();
  StopFlag stop;
  EXPECT_FALSE(SystemClock().WaitFor(stop, absl::Milliseconds(2)));
  EXPECT_GE(SystemClock().Steady() - steady, absl::Milliseconds(2));
  EXPECT_GE(SystemClock().Wall(), wall);
  stop.Request();
  EXPECT_TRUE(SystemClock().WaitFor(stop, absl::Hours(1)));
}

TEST(ClockTest, AnAnswerIsAwaitedByTheClock) {
  const test::ManualClock clock;
  const absl::Time begin = clock.Steady();
  const StopFlag stop;
  WorkerState state(0, stop, clock);
  int asked = 0;
  const auto ask = [&] {
    EXPECT_EQ(state.waiting().empty(), asked == 0);
    return ++asked <= 36'000 ? absl::UnavailableError("the broker is away") : absl::OkStatus();
  };
  EXPECT_OK(state.Await(ask));
  EXPECT_EQ(clock.Steady() - begin, absl::Hours(1));
  EXPECT_TRUE(state.waiting().empty());
}

// Takes a second to write a snapshot.
class SlowStore final : public SnapshotStore {
 public:
  explicit SlowStore(test::ManualClock& clock) : clock_(clock) {}
  absl::Status Write(int32_t, SnapshotId, LiveSnapshot&, const GoOn& go_on) override {
    clock_.Pass(absl::Seconds(1));
    return go_on() ? absl::OkStatus() : absl::CancelledError("dropped");
  }
  absl::StatusOr<RestoredPartition> Restore(int32_t, SnapshotId, DedupStage&, const GoOn&) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<std::optional<SnapshotId>> FindYoungest(int32_t, int64_t, const GoOn&) override {
    return std::nullopt;
  }
  absl::Status Remove(const std::vector<PartitionSnapshot>& snapshots) override {
    for (const PartitionSnapshot& each : snapshots) removed += each.id.ToString() + " ";
    return absl::OkStatus();
  }
  absl::Status DropOlder(int32_t, SnapshotId, std::optional<SnapshotId>, bool) override {
    return absl::OkStatus();
  }

  std::string removed;

 private:
  test::ManualClock& clock_;
};

TEST(ClockTest, SnapshotsAreWrittenWithoutAThread) {
  test::ManualClock clock;
  auto owned_store = std::make_unique<SlowStore>(clock);
  const SlowStore& store = *owned_store;
  Snapshots snapshots(std::move(owned_store), absl::Minutes(5), {.clock = clock});
  const auto stage = *DedupStage::Create({.memory_limit_bytes = int64_t{64} << 20});
  const auto filter = *stage->Open("p");
  const auto take = [&] {
    auto taking = std::make_shared<SnapshotTaking>();
    taking->id = snapshots.NewId(7);
    taking->image = *filter->BeginSnapshot({}, {});
    snapshots.Take(taking);
    return taking;
  };
  EXPECT_TRUE(snapshots.idle());
  EXPECT_FALSE(snapshots.RunOne()) << "there is nothing to do";
  const auto first = take();
  const auto second = take();
  EXPECT_FALSE(snapshots.idle());
  EXPECT_EQ(first->state, SnapshotTaking::State::kRunning);
  EXPECT_TRUE(snapshots.RunOne());
  EXPECT_EQ(first->state, SnapshotTaking::State::kDone);
  EXPECT_EQ(snapshots.counts().last_seconds, 1);
  EXPECT_EQ(second->id, SnapshotId::New(7, clock.Wall() - absl::Seconds(1), 2 << 10));
  snapshots.Drop(*second);
  EXPECT_TRUE(snapshots.RunOne());
  EXPECT_EQ(snapshots.counts().taken, 1) << "it is not wanted any more";
  snapshots.Drop(*first);
  EXPECT_TRUE(snapshots.RunOne());
  EXPECT_EQ(store.removed, first->id.ToString() + " ");
  EXPECT_TRUE(snapshots.idle());
}

}  // namespace
}  // namespace lethe
