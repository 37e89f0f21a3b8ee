// What becomes of snapshots that no commit names, whenever that turns out, and when the program ends.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "src/pipeline/snapshots/snapshots.h"

namespace lethe::kafka {
namespace {

// Snapshots by their ids. Writing one ends when it is let end, or is given up.
class FakeStore final : public SnapshotStore {
 public:
  absl::Status Write(int32_t, SnapshotId id, LiveSnapshot&, const GoOn& go_on) override {
    ++writing_;
    while (!may_end_) {
      if (!go_on()) return absl::CancelledError("given up");
      std::this_thread::yield();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    ++there_[id.ToString()];
    ++written_;
    return absl::OkStatus();
  }
  absl::StatusOr<RestoredPartition> Restore(int32_t, SnapshotId, DedupStage&, const GoOn&) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<std::optional<SnapshotId>> FindYoungest(int32_t, int64_t, const GoOn&) override {
    return std::nullopt;
  }
  absl::Status Remove(const std::vector<PartitionSnapshot>& snapshots) override {
    while (hangs_ && !stopped()) std::this_thread::yield();
    if (stopped()) return absl::UnavailableError("the broker is away");
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const PartitionSnapshot& each : snapshots) --there_[each.id.ToString()];
    return absl::OkStatus();
  }
  absl::Status DropOlder(int32_t, SnapshotId, std::optional<SnapshotId>, bool) override {
    return absl::OkStatus();
  }

  void LetEnd() { may_end_ = true; }
  void Hang() { hangs_ = true; }
  int writing() const { return writing_; }  // begun so far
  int written() const { return written_; }
  // Less than none: it was removed twice, or before it was there.
  std::map<std::string, int> there() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return there_;
  }
  int count() const {
    int count = 0;
    for (const auto& [id, there] : this->there()) count += there;
    return count;
  }

 private:
  std::atomic<bool> may_end_ = false;
  std::atomic<bool> hangs_ = false;
  std::atomic<int> writing_ = 0;
  std::atomic<int> written_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, int> there_;  // guarded by mutex_
};

using State = SnapshotTaking::State;

class SnapshotHandoverTest : public testing::Test {
 protected:
  SnapshotHandoverTest() {
    auto store = std::make_unique<FakeStore>();
    store_ = store.get();
    snapshots_ = std::make_unique<Snapshots>(std::move(store), absl::Minutes(5),
                                             SnapshotWriting{.thread = thread_.get()});
  }
  std::shared_ptr<SnapshotTaking> Take() {
    auto taking = std::make_shared<SnapshotTaking>();
    taking->id = SnapshotId::New(++offset_, absl::Now());
    taking->image = *filter_->BeginSnapshot({}, {});
    snapshots_->Take(taking);
    return taking;
  }
  static void Await(const std::function<bool()>& met) {
    while (!met()) std::this_thread::yield();
  }

  std::unique_ptr<DedupStage> stage_ = *DedupStage::Create({.memory_limit_bytes = int64_t{64} << 20});
  std::unique_ptr<Partition> filter_ = *stage_->Open("p");
  FakeStore* store_;
  std::unique_ptr<Snapshots> snapshots_;
  const std::unique_ptr<SnapshotThread> thread_ = std::make_unique<SnapshotThread>();  // ends first
  int64_t offset_ = 0;
};

TEST_F(SnapshotHandoverTest, OneThatIsDoneAndThenDroppedIsRemoved) {
  store_->LetEnd();
  const auto dropped = Take();
  const auto stays = Take();
  Await([&] { return dropped->state == State::kDone && stays->state == State::kDone; });
  EXPECT_EQ(store_->count(), 2);
  snapshots_->Drop(*dropped);
  thread_->Stop();
  EXPECT_EQ(store_->there()[dropped->id.ToString()], 0);
  EXPECT_EQ(store_->there()[stays->id.ToString()], 1);
}

TEST_F(SnapshotHandoverTest, OneThatIsDroppedIsWrittenNoFurther) {
  const auto dropped = Take();
  Await([&] { return store_->writing() == 1; });
  snapshots_->Drop(*dropped);
  Await([&] { return snapshots_->idle(); });
  EXPECT_EQ(store_->count(), 0);
  // Nor is one begun that had to wait.
  const auto first = Take();
  Await([&] { return store_->writing() == 2; });
  snapshots_->Drop(*Take());
  store_->LetEnd();
  Await([&] { return snapshots_->idle(); });
  EXPECT_EQ(store_->writing(), 2);
  EXPECT_EQ(store_->count(), 1);
}

// Both come at the same moment, again and again: it is removed once, whoever is second.
TEST_F(SnapshotHandoverTest, ExactlyOneOfBothHasItRemoved) {
  store_->LetEnd();
  for (int i = 0; i < 20'000; ++i) {
    const auto taking = Take();
    while (store_->written() == i) {
    }
    for (std::atomic<int> wait = i % 100; wait > 0; --wait) {
    }
    snapshots_->Drop(*taking);
  }
  thread_->Stop();
  for (const auto& [id, there] : store_->there()) EXPECT_EQ(there, 0) << id;
}

TEST_F(SnapshotHandoverTest, AtTheEndOnlyTombstonesAreWritten) {
  store_->LetEnd();
  const auto done = Take();
  Await([&] { return done->state == State::kDone; });
  snapshots_->GiveUpWriting();
  EXPECT_FALSE(snapshots_->idle());
  const int before = store_->writing();
  const auto late = Take();
  // The lane ends, and drops what it has.
  snapshots_->Drop(*done);
  snapshots_->Drop(*late);
  thread_->Stop();
  EXPECT_EQ(store_->writing(), before);
  EXPECT_EQ(store_->count(), 0);
}

TEST_F(SnapshotHandoverTest, TheEndWaitsForNoBroker) {
  const auto under_way = Take();
  Await([&] { return store_->writing() == 1; });
  snapshots_->GiveUpWriting();
  Await([&] { return under_way->state == State::kShapeChanged; });
  store_->LetEnd();
  store_->Hang();
  under_way->state = State::kDone;
  snapshots_->Drop(*under_way);
  thread_->Stop();  // the store hangs until it is told to stop
}

}  // namespace
}  // namespace lethe::kafka
