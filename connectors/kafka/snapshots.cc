#include "connectors/kafka/snapshots.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/time/clock.h"

namespace lethe::kafka {

Snapshots::Snapshots(std::unique_ptr<SnapshotStore> store, absl::Duration every)
    : store_(std::move(store)), every_(every), thread_([this] { Run(); }) {}

void Snapshots::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    tasks_.clear();
  }
  store_->Stop();
  changed_.notify_all();
  thread_.join();
}

bool Snapshots::idle() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tasks_.empty() && !busy_;
}

void Snapshots::Take(std::shared_ptr<SnapshotTaking> taking) {
  Do([this, taking = std::move(taking)] { Write(*taking); });
}

void Snapshots::Failed(int32_t partition, const absl::Status& why) {
  spdlog::error("no snapshot of partition {}: {}; the stream goes on, and a restart begins with an older one",
                partition, std::string(why.message()));
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counts_.errors;
}

void Snapshots::Named(int32_t partition, SnapshotId id, std::optional<SnapshotId> before) {
  Do([this, partition, id, before] {
    if (absl::Status dropped = store_->DropOlder(partition, id, before); !dropped.ok()) {
      spdlog::warn("an old snapshot of partition {} stays: {}", partition, std::string(dropped.message()));
    }
  });
}

SnapshotCounts Snapshots::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

void Snapshots::Do(std::function<void()> task) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void Snapshots::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (stop_) return;
    {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      task();
    }
    lock.lock();
    busy_ = false;
  }
}

void Snapshots::Write(SnapshotTaking& taking) {
  const absl::Time start = absl::Now();
  const absl::Status written = store_->Write(taking.partition, taking.id, *taking.image);
  // Whatever is said or done before, the lane sees it ended last.
  SnapshotTaking::State ended = SnapshotTaking::State::kShapeChanged;
  if (written.ok()) {
    ended = SnapshotTaking::State::kDone;
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counts_.taken;
    counts_.last_seconds = absl::ToDoubleSeconds(absl::Now() - start);
  } else if (!absl::IsAborted(written) && !absl::IsCancelled(written)) {
    ended = SnapshotTaking::State::kFailed;
    Failed(taking.partition, written);
  }
  taking.state = ended;
  if (!written.ok() || !taking.dropped) return;
  if (absl::Status removed = store_->Remove(taking.partition, taking.id); !removed.ok()) {
    spdlog::warn("{}", std::string(removed.message()));
  }
}

}  // namespace lethe::kafka
