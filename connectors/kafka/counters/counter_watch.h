// The largest totals of this instance, for the status page.
#ifndef LETHE_CONNECTORS_KAFKA_COUNTERS_COUNTER_WATCH_H_
#define LETHE_CONNECTORS_KAFKA_COUNTERS_COUNTER_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/time/time.h"
#include "lethe/counters.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/task.h"

namespace lethe::kafka {

struct CounterView {
  std::string name;
  std::string output;
  CounterMode mode = CounterMode::kDelta;
  // The rest with totals only. Keys of all partitions are as many at most; some may be in several.
  int64_t keys = 0;
  bool too_many = false;                                  // to be listed here
  std::vector<std::pair<std::string, absl::int128>> top;  // the largest first
};

struct CountersView {
  std::vector<CounterView> counters;
  // Whose totals these are: what other instances own, or is being restored, is not in them.
  std::vector<int32_t> partitions;
  int32_t all_partitions = 0;                     // of the input; 0: not known yet
  absl::Duration age = absl::InfiniteDuration();  // of what is known; infinite: nothing yet
};

// Totals belong to the lanes' threads. So View() leaves a request, and each lane adds its totals up when it
// next publishes its figures. Without requests that costs nothing, and with them a tenth of a lane's time at
// most.
//
// Thread-safe.
class CounterWatch {
 public:
  // Of a counter, in all partitions of the instance.
  static constexpr int64_t kMostKeys = 250'000;

  CounterWatch(const std::vector<CounterOptions>& counters, int lanes) : counters_(counters), lanes_(lanes) {}

  // What was last known, with so many keys of each counter; asks for more.
  CountersView View(size_t top);

  // Whether somebody has asked, and this lane has not answered.
  bool Wants(int lane) const;
  void Answer(int lane, const std::map<int32_t, std::unique_ptr<Task>>& task);

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
  mutable std::mutex mutex_;
  std::shared_ptr<Round> asked_;        // guarded by mutex_, as are these; null: nobody waits
  std::shared_ptr<const Round> known_;  // complete, and never changed
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_COUNTERS_COUNTER_WATCH_H_
