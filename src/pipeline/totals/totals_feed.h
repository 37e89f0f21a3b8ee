// Brings the totals of one counter from their topic into a store.
#ifndef LETHE_SRC_PIPELINE_TOTALS_TOTALS_FEED_H_
#define LETHE_SRC_PIPELINE_TOTALS_TOTALS_FEED_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lethe/secret_hash.h"
#include "src/counters/counter_store.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/task/input_record.h"
#include "src/pipeline/totals/totals_log.h"
#include "src/sync/mutex.h"

namespace lethe {

// A thread that reads the committed totals of this instance's partitions, from the position in the store, and
// stores them. It waits for a store that is away, and holds up nothing else. It compares positions once a
// second, and fills a store again that was set back (a replica without the last writes, say).
//
// Thread-safe but for Start and Finish.
class TotalsFeed {
 public:
  // `owned` returns this instance's partitions; the feed's thread calls it until `stop`, when lanes release
  // them and the last answer stays valid.
  TotalsFeed(const DaemonOptions& options, const CounterOptions& counter, std::unique_ptr<CounterStore> store,
             std::unique_ptr<TotalsLog> log, std::function<std::vector<int32_t>()> owned,
             const StopFlag& stop, const Clock& clock = SystemClock());
  ~TotalsFeed();

  void Start();
  // Before the lanes end: the present partitions are the final ones.
  void KeepOwned();
  // After the lanes have ended: stores their last commits and ends the thread. Waits until `patience` is over
  // or `go_on` returns false; the next owner of the partitions stores the rest.
  void Finish(absl::Duration patience, const std::function<bool()>& go_on);

  StoreReport Report() const;

 private:
  void Run();
  void Stop();
  // Runs until the store or a broker fails, the position in the store changes, or other partitions are owned.
  absl::Status Session();
  // The positions in the store, by partition.
  absl::StatusOr<std::map<int32_t, int64_t>> AskStore();
  absl::Status FindPositions();
  // Adds a record to the open batch of its partition.
  void Take(const InputRecord& record);
  StoreBatch& OpenBatch(int32_t partition);
  // Stores the batches. Aborted: the store has another position than expected.
  absl::Status Flush();
  // Aborted: the store has another position than expected.
  absl::Status ComparePositions();
  void UpdateEnds();
  // Whether the store's positions can be those of the topic. Aborted: it is not known.
  absl::Status CheckFit();
  void Publish();
  bool OwnsOthers();
  // Logs a change of the store's state, and counts failures.
  absl::Status Met(const absl::Status& status);

  const DaemonOptions options_;
  const CounterOptions counter_;
  const std::unique_ptr<CounterStore> store_;
  const std::unique_ptr<TotalsLog> log_;
  const std::function<std::vector<int32_t>()> owned_;
  const StopFlag& stop_;
  const Clock& clock_;
  StopFlag end_;                           // of the thread
  std::unique_ptr<StartedThread> thread_;  // null: it has not begun, or has ended

  // The thread's own.
  std::vector<int32_t> partitions_;
  std::map<int32_t, int64_t> stored_;  // by partition, the position in the store
  std::map<int32_t, int64_t> read_;    // the same with what is to be stored
  std::vector<StoreBatch> batches_;    // that are to be stored, in this order
  struct Open {
    size_t batch = 0;  // of batches_, that is added to
    size_t bytes = 0;
    SecretHashMap<size_t> at;  // of keys in it
  };
  std::map<int32_t, Open> open_;  // by partition
  size_t pending_bytes_ = 0;
  std::map<int32_t, int64_t> ends_;
  absl::Time asked_at_ = absl::InfinitePast();
  absl::Time current_at_;  // all that was committed before is in the store
  absl::StatusCode said_ = absl::StatusCode::kUnknown;
  bool said_foreign_ = false;
  std::string said_reading_;

  mutable Mutex mutex_;
  std::optional<std::vector<int32_t>> kept_ ABSL_GUARDED_BY(mutex_);
  StoreReport report_ ABSL_GUARDED_BY(mutex_);
  absl::Time current_report_ ABSL_GUARDED_BY(mutex_);             // current_at_
  std::map<int32_t, int64_t> positions_ ABSL_GUARDED_BY(mutex_);  // stored_
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TOTALS_TOTALS_FEED_H_
