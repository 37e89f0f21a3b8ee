#include "src/pipeline/snapshots/snapshots.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

// Part of the seconds that a service has to end in.
constexpr absl::Duration kRemovePatience = absl::Seconds(1);

}  // namespace

Snapshots::Snapshots(std::unique_ptr<SnapshotStore> store, absl::Duration every, SnapshotWriting writing)
    : store_(std::move(store)), every_(every), writing_(std::move(writing)) {
  if (writing_.thread != nullptr) writing_.thread->Add(*this);
}

std::string Snapshots::NameOf(int32_t partition) const {
  return absl::StrCat(writing_.topic, "-", partition);
}

bool Snapshots::idle() const {
  if (writing_.thread != nullptr && !writing_.thread->idle()) return false;
  const MutexLock lock(mutex_);
  return writes_ && tasks_.empty() && to_remove_.empty() && !busy_;
}

void Snapshots::Take(std::shared_ptr<SnapshotTaking> taking) {
  Do([this, taking = std::move(taking)] { Write(*taking); });
}

void Snapshots::Drop(SnapshotTaking& taking) {
  const SnapshotTaking::State before = taking.state.exchange(SnapshotTaking::State::kDropped);
  if (before == SnapshotTaking::State::kDone) Remove({taking.partition, taking.id});
}

void Snapshots::Remove(PartitionSnapshot snapshot) {
  {
    const MutexLock lock(mutex_);
    to_remove_.push_back(snapshot);
  }
  Wake();
}

void Snapshots::Wake() {
  if (writing_.thread != nullptr) writing_.thread->Wake();
}

void Snapshots::Failed(int32_t partition, const absl::Status& why) {
  spdlog::error(
      "{}: could not save a snapshot: {}; processing continues, and a restart uses an older snapshot",
      NameOf(partition), std::string(why.message()));
  const MutexLock lock(mutex_);
  ++counts_.errors;
}

void Snapshots::Named(int32_t partition, SnapshotId id, std::optional<SnapshotId> before, bool is_first) {
  Do([this, partition, id, before, is_first] {
    if (absl::Status dropped = store_->DropOlder(partition, id, before, is_first); !dropped.ok()) {
      spdlog::warn("{}: could not remove an old snapshot: {}", NameOf(partition),
                   std::string(dropped.message()));
    }
  });
}

SnapshotCounts Snapshots::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

void Snapshots::Do(std::function<void()> task) {
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  Wake();
}

bool Snapshots::RunOne() {
  MutexLock lock(mutex_);
  std::function<void()> task;
  if (!to_remove_.empty()) {
    task = [this, all = std::exchange(to_remove_, {})] {
      if (absl::Status removed = store_->Remove(all); !removed.ok()) {
        spdlog::warn("{}: could not remove an unused snapshot: {}", writing_.topic,
                     std::string(removed.message()));
      }
    };
  } else if (!tasks_.empty()) {
    task = std::move(tasks_.front());
    tasks_.pop_front();
  } else {
    return false;
  }
  busy_ = true;
  lock.Unlock();
  task();
  task = nullptr;
  lock.Lock();
  busy_ = false;
  return true;
}

void Snapshots::Write(SnapshotTaking& taking) {
  const absl::Time start = writing_.clock.Steady();
  const GoOn go_on = [&] { return writes_ && taking.state == SnapshotTaking::State::kRunning; };
  const absl::Status written = go_on() ? store_->Write(taking.partition, taking.id, *taking.image, go_on)
                                       : absl::CancelledError("the snapshot is not wanted any more");
  // Set last, after logs and counts.
  SnapshotTaking::State ended = SnapshotTaking::State::kShapeChanged;
  if (written.ok()) {
    ended = SnapshotTaking::State::kDone;
    const double seconds = absl::ToDoubleSeconds(writing_.clock.Steady() - start);
    const bool is_named = writing_.thread != nullptr && writing_.thread->TakeNamesNext();
    spdlog::log(is_named ? spdlog::level::info : spdlog::level::debug, "{}: snapshot written in {:.1f} s",
                NameOf(taking.partition), seconds);
    const MutexLock lock(mutex_);
    ++counts_.taken;
    counts_.last_seconds = seconds;
  } else if (!absl::IsAborted(written) && !absl::IsCancelled(written)) {
    ended = SnapshotTaking::State::kFailed;
    if (writing_.thread != nullptr) writing_.thread->NameNext();
    Failed(taking.partition, written);
  }
  const bool was_dropped = taking.state.exchange(ended) == SnapshotTaking::State::kDropped;
  if (was_dropped && written.ok()) Remove({taking.partition, taking.id});
}

SnapshotThread::SnapshotThread(const Clock& clock) : clock_(clock), thread_(clock.Start([this] { Run(); })) {}

void SnapshotThread::Add(Snapshots& snapshots) {
  const MutexLock lock(mutex_);
  all_.push_back(&snapshots);
}

void SnapshotThread::Wake() {
  const MutexLock lock(mutex_);
  busy_ = true;
  woken_.Wake();
}

void SnapshotThread::GiveUpWriting() {
  const MutexLock lock(mutex_);
  for (Snapshots* snapshots : all_) snapshots->GiveUpWriting();
}

void SnapshotThread::Stop() {
  if (thread_ == nullptr) return;
  GiveUpWriting();
  const absl::Time deadline = clock_.Steady() + kRemovePatience;
  while (busy_ && clock_.Await(rests_, deadline - clock_.Steady())) continue;
  if (busy_) spdlog::warn("could not remove unused snapshots: there was no time");
  stop_ = true;
  {
    const MutexLock lock(mutex_);
    for (Snapshots* snapshots : all_) snapshots->store().Stop();
  }
  woken_.Wake();
  thread_->Join();
  thread_.reset();
}

void SnapshotThread::Run() {
  while (!stop_) {
    clock_.Await(woken_, absl::InfiniteDuration());
    for (bool has_worked = true; has_worked;) {
      std::vector<Snapshots*> all;
      {
        const MutexLock lock(mutex_);
        all = all_;
      }
      // One of each topic in turn.
      has_worked = false;
      for (Snapshots* snapshots : all) has_worked = (!stop_ && snapshots->RunOne()) || has_worked;
    }
    {
      const MutexLock lock(mutex_);
      busy_ = woken_.is_woken();
    }
    if (!busy_) rests_.Wake();
  }
}

}  // namespace lethe
