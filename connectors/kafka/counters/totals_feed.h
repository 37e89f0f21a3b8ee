// Brings the totals of one counter from their topic into a store.
#ifndef LETHE_CONNECTORS_KAFKA_COUNTERS_TOTALS_FEED_H_
#define LETHE_CONNECTORS_KAFKA_COUNTERS_TOTALS_FEED_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/log_reader.h"
#include "src/counters/counter_store.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/report.h"

namespace lethe::kafka {

// A thread that reads the totals that are committed, of the partitions that this instance owns, from the
// position that the store names, and stores them. It waits for a store that is away, and keeps nobody else
// waiting. Positions are compared once a second, so a store that was set back (a replica that lacked the
// last writes, say) is filled again.
//
// Thread-safe but for Start and Finish.
class TotalsFeed {
 public:
  // `owned` names the partitions that this instance has; it is called from the feed's thread until `stop`,
  // when the lanes give them back, and the last answer holds.
  TotalsFeed(const DaemonOptions& options, const CounterOptions& counter, std::unique_ptr<CounterStore> store,
             std::function<std::vector<int32_t>()> task, const StopFlag& stop);
  ~TotalsFeed();

  void Start();
  // Before the lanes end: these are the partitions to the last.
  void Keep(std::vector<int32_t> partitions);
  // After the lanes have ended: stores what they have committed, and ends the thread. Waits until `patience`
  // is over or `go_on` returns false; then the rest is stored by the next owner of the partitions.
  void Finish(absl::Duration patience, const std::function<bool()>& go_on);

  StoreReport Report() const;

 private:
  void Run();
  // From the positions in the store until it or a broker fails, another has written, or other partitions are
  // owned.
  absl::Status Session();
  absl::Status FindPositions();
  absl::StatusOr<ClientPtr> Assign() const;
  // Adds a message's total to those that are to be stored, and the end of a partition to the position.
  void Take(const rd_kafka_message_t& message);
  StoreBatch& OpenBatch(int32_t partition);
  // Stores them. Aborted: another has written, or the store was set back, and the positions hold no more.
  absl::Status Flush();
  // Whether the store is there and has the positions that it had.
  absl::Status ComparePositions();
  void AskEnds();
  absl::Status IsFitting() const;
  void Publish();
  bool OwnsOthers();
  // Of the store: says what has changed, and counts what failed.
  absl::Status Met(const absl::Status& status);

  const DaemonOptions options_;
  const CounterOptions counter_;
  const std::unique_ptr<CounterStore> store_;
  const std::function<std::vector<int32_t>()> owned_;
  const StopFlag& stop_;
  StopFlag end_;  // of the thread
  std::thread thread_;

  // The thread's own.
  std::vector<int32_t> partitions_;
  std::map<int32_t, int64_t> stored_;  // by partition, the position in the store
  std::map<int32_t, int64_t> read_;    // the same with what is to be stored
  std::vector<StoreBatch> batches_;    // that are to be stored, in this order
  struct Open {
    size_t batch = 0;  // of batches_, that is added to
    size_t bytes = 0;
    absl::flat_hash_map<std::string, size_t> at;  // of keys in it
  };
  std::map<int32_t, Open> open_;  // by partition
  size_t pending_bytes_ = 0;
  ClientPtr asking_;
  LogEnds ends_;
  absl::Time asked_at_ = absl::InfinitePast();
  absl::Time current_at_;  // all that was committed before is in the store
  absl::StatusCode said_ = absl::StatusCode::kUnknown;
  bool said_foreign_ = false;
  rd_kafka_resp_err_t said_reading_ = RD_KAFKA_RESP_ERR_NO_ERROR;

  mutable std::mutex mutex_;
  std::optional<std::vector<int32_t>> kept_;  // guarded by mutex_
  StoreReport report_;                        // guarded by mutex_, as are these
  absl::Time current_report_;                 // current_at_
  std::map<int32_t, int64_t> positions_;      // stored_
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_COUNTERS_TOTALS_FEED_H_
