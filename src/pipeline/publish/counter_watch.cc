#include "src/pipeline/publish/counter_watch.h"

#include <algorithm>

namespace lethe {
namespace {

constexpr absl::Duration kAskEvery = absl::Milliseconds(500);
constexpr int kPartOfTime = 10;

}  // namespace

CountersView CounterWatch::View(size_t top) {
  std::shared_ptr<const Round> known;
  const absl::Time now = clock_.Steady();
  {
    const MutexLock lock(mutex_);
    if (asked_ == nullptr && now >= next_) {
      asked_ = std::make_shared<Round>();
      asked_->counters.resize(counters_.size());
      asked_->begin = now;
      for (int lane = 0; lane < lanes_; ++lane) asked_->waits_for.insert(lane);
    }
    known = known_;
  }
  CountersView view;
  if (known != nullptr) {
    view.partitions = known->partitions;
    view.age = now - known->begin;
  }
  for (size_t i = 0; i < counters_.size(); ++i) {
    CounterView counter{counters_[i].name, counters_[i].output, counters_[i].mode, 0, false, {}};
    if (known != nullptr) {
      counter.keys = known->counters[i].keys;
      counter.too_many = counter.keys > kMostKeys;
      counter.top = CounterReader::Top(known->counters[i].totals, top);
    }
    view.counters.push_back(std::move(counter));
  }
  return view;
}

bool CounterWatch::Wants(int lane) const {
  const MutexLock lock(mutex_);
  return asked_ != nullptr && asked_->waits_for.contains(lane);
}

void CounterWatch::Answer(int lane, const Tasks& tasks) {
  const MutexLock lock(mutex_);
  if (asked_ == nullptr || asked_->waits_for.erase(lane) == 0) return;
  const absl::Time begin = clock_.Steady();
  for (const auto& [id, task] : tasks) {
    if (task->phase() != Phase::kActive || task->flow()->counter_watch != this) continue;
    asked_->partitions.push_back(id.partition);
    for (size_t i = 0; i < counters_.size(); ++i) {
      Round::Counter& counter = asked_->counters[i];
      counter.keys += static_cast<int64_t>(task->sums()[i].totals().size());
      if (counter.keys > kMostKeys) {
        counter.totals.clear();
        continue;
      }
      for (const auto& [key, total] : task->sums()[i].totals()) counter.totals[key] += total;
    }
  }
  const absl::Time now = clock_.Steady();
  asked_->took += now - begin;
  if (!asked_->waits_for.empty()) return;
  std::sort(asked_->partitions.begin(), asked_->partitions.end());
  next_ = std::max(asked_->begin + kAskEvery, now + kPartOfTime * asked_->took);
  known_ = std::exchange(asked_, nullptr);
}

}  // namespace lethe
