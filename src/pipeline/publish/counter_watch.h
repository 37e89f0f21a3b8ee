// The largest totals of this instance, for the status page.
#ifndef LETHE_SRC_PIPELINE_PUBLISH_COUNTER_WATCH_H_
#define LETHE_SRC_PIPELINE_PUBLISH_COUNTER_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/numeric/int128.h"
#include "absl/time/time.h"
#include "lethe/counters.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/task.h"
#include "src/sync/mutex.h"

namespace lethe {

struct CounterView {
  std::string name;
  std::string output;
  CounterMode mode = CounterMode::kDelta;
  // The rest with totals only. A key of several partitions counts several times.
  int64_t keys = 0;
  bool too_many = false;                                  // to be listed here
  std::vector<std::pair<std::string, absl::int128>> top;  // the largest first
};

struct CountersView {
  std::vector<CounterView> counters;
  // The partitions with totals here: without those of other instances, or being restored.
  std::vector<int32_t> partitions;
  int32_t all_partitions = 0;                     // of the input; 0: not known yet
  absl::Duration age = absl::InfiniteDuration();  // of what is known; infinite: nothing yet
};

// Totals belong to the lanes' threads. View() leaves a request, and each lane sums its totals when it next
// publishes. That takes a tenth of a lane's time at most, and none without requests.
//
// Thread-safe.
class CounterWatch {
 public:
  // The most keys of a counter that are summed, over all partitions of the instance.
  static constexpr int64_t kMostKeys = 250'000;

  CounterWatch(const std::vector<CounterOptions>& counters, int lanes, const Clock& clock = SystemClock())
      : counters_(counters), lanes_(lanes), clock_(clock) {}

  // The last known sums, with the `top` largest totals of each counter; requests newer ones.
  CountersView View(size_t top);

  // Whether a request waits for this lane.
  bool Wants(int lane) const;
  // Counts those of its flow.
  void Answer(int lane, const Tasks& tasks);

 private:
  struct Round {
    struct Counter {
      int64_t keys = 0;
      CounterReader::Totals totals;  // empty if there are too many
    };
    std::vector<Counter> counters;
    std::vector<int32_t> partitions;
    std::set<int> waits_for;
    absl::Time begin;
    absl::Duration took = absl::ZeroDuration();  // all lanes together
  };

  const std::vector<CounterOptions> counters_;
  const int lanes_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::shared_ptr<Round> asked_ ABSL_GUARDED_BY(mutex_);        // null: no request
  std::shared_ptr<const Round> known_ ABSL_GUARDED_BY(mutex_);  // complete, and never changed
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PUBLISH_COUNTER_WATCH_H_
