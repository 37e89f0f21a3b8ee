// What belongs to one input topic: its output, id, horizon, policies, counters and filters.
#ifndef LETHE_SRC_PIPELINE_TASK_FLOW_H_
#define LETHE_SRC_PIPELINE_TASK_FLOW_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lethe/stage.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/snapshots/snapshots.h"
#include "src/sync/mutex.h"

namespace lethe {

class CounterWatch;
class RoutedSources;

// For all workers of a process. Set before they start, or before it is added to the flows of those that run;
// from then on it stays as it is.
struct Flow {
  Flow(DaemonOptions of, std::unique_ptr<DedupStage> filters)
      : options(std::move(of)), stage(std::move(filters)) {}

  void SetTopics(Topics of) {
    topics = std::move(of);
    id_fingerprint = IdFingerprint(options, topics.output_partitions);
  }
  // "orders-3"
  std::string NameOf(int32_t partition) const { return absl::StrCat(options.input, "-", partition); }

  int32_t number = 0;     // of the process's flows
  DaemonOptions options;  // those of the process are the same in all flows
  Topics topics;
  std::string id_fingerprint;
  std::unique_ptr<DedupStage> stage;
  std::unique_ptr<Snapshots> snapshots;   // null: none are taken; ends before the stage
  CounterWatch* counter_watch = nullptr;  // may be null
  // Of routers: the inputs that go to the same output, in all lanes and instances; null: only this worker's.
  RoutedSources* sources = nullptr;
};

// The flows of a process, by number. They are added, and never removed. Thread-safe.
class Flows {
 public:
  Flow& Add(std::unique_ptr<Flow> flow) {
    const MutexLock lock(mutex_);
    flow->number = static_cast<int32_t>(flows_.size());
    Flow& added = *flows_.emplace_back(std::move(flow));
    by_input_.emplace(added.options.input, &added);
    return added;
  }
  int32_t size() const {
    const MutexLock lock(mutex_);
    return static_cast<int32_t>(flows_.size());
  }
  Flow& at(int32_t number) const {
    const MutexLock lock(mutex_);
    return *flows_.at(static_cast<size_t>(number));
  }
  // Before the workers start: the process has a list of topics, of which one or none may be here.
  void SetList() { is_list_ = true; }
  // Whether the trouble of one topic is its own, and not the worker's.
  bool are_several() const { return is_list_ || size() > 1; }
  // By the input's name; null: there is none.
  Flow* Find(absl::string_view input) const {
    const MutexLock lock(mutex_);
    const auto found = by_input_.find(input);
    return found == by_input_.end() ? nullptr : found->second;
  }

 private:
  bool is_list_ = false;
  mutable Mutex mutex_;
  std::deque<std::unique_ptr<Flow>> flows_ ABSL_GUARDED_BY(mutex_);
  std::map<absl::string_view, Flow*> by_input_ ABSL_GUARDED_BY(mutex_);  // views of the flows' options
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_FLOW_H_
