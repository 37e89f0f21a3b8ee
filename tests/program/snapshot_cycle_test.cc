// How many snapshots begin after one commit.
#include "src/pipeline/output/snapshot_cycle.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

class EmptyStore final : public SnapshotStore {
 public:
  absl::Status Write(int32_t, SnapshotId, LiveSnapshot&, const GoOn&) override { return absl::OkStatus(); }
  absl::StatusOr<RestoredPartition> Restore(int32_t, SnapshotId, DedupStage&, const GoOn&) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<std::optional<SnapshotId>> FindYoungest(int32_t, int64_t, const GoOn&) override {
    return std::nullopt;
  }
  absl::Status Remove(const std::vector<PartitionSnapshot>&) override { return absl::OkStatus(); }
  absl::Status DropOlder(int32_t, SnapshotId, std::optional<SnapshotId>, bool) override {
    return absl::OkStatus();
  }
};

class SnapshotCycleTest : public testing::Test {
 protected:
  SnapshotCycleTest() {
    flow_.snapshots = std::make_unique<Snapshots>(std::make_unique<EmptyStore>(), absl::Minutes(5),
                                                  SnapshotWriting{.topic = "in", .clock = clock_});
  }

  // With so many ids.
  void Add(int32_t id, int ids) {
    auto task = std::make_unique<Task>(TopicPartition{0, id}, &flow_);
    task->SetFilter(*flow_.stage->Open(absl::StrCat("in-", id)));
    task->StartFilter(absl::Hours(1), {});
    for (int i = 0; i < ids; ++i) EXPECT_OK(task->filter()->Judge(absl::StrCat(i), clock_.Wall()));
    InputRecord last;
    last.offset = 0;
    task->SetCommitted(1);
    task->Replayed(last, 1);
    task->Activate();
    task->RenewStatus();
    tasks_[task->id()] = std::move(task);
  }
  // How many have begun, in all.
  int Begun() {
    cycle_.Take(tasks_);
    int begun = 0;
    for (const auto& [id, task] : tasks_) begun += task->snapshots().taking != nullptr ? 1 : 0;
    return begun;
  }
  void WriteAll() {
    while (flow_.snapshots->RunOne()) {
    }
  }

  ManualClock clock_;
  Flow flow_{DaemonOptions(), *DedupStage::Create({.memory_limit_bytes = int64_t{256} << 20})};
  SnapshotCycle cycle_{clock_};
  Tasks tasks_;
};

// At one a second a thousand partitions would have a snapshot every 17 minutes.
TEST_F(SnapshotCycleTest, OfManySmallFiltersSixteenBeginAfterACommit) {
  for (int32_t id = 0; id < 20; ++id) Add(id, 100);
  EXPECT_EQ(Begun(), 0) << "none is due";
  clock_.Pass(absl::Minutes(5));
  EXPECT_EQ(Begun(), 16);
  EXPECT_EQ(Begun(), 16) << "they are not written yet";
  WriteAll();
  EXPECT_EQ(Begun(), 20);
}

TEST_F(SnapshotCycleTest, OfLargeFiltersOneBegins) {
  for (int32_t id = 0; id < 2; ++id) Add(id, 2'000'000);
  EXPECT_GT(tasks_.begin()->second->status().filter.memory_bytes, int64_t{8} << 20);
  EXPECT_EQ(Begun(), 0);
  clock_.Pass(absl::Minutes(5));
  EXPECT_EQ(Begun(), 1);
  WriteAll();
  EXPECT_EQ(Begun(), 2);
}

}  // namespace
}  // namespace lethe::test
