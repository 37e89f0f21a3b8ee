// What the daemon says of itself, for metrics, the page and tests. Plain values.
#ifndef LETHE_SRC_PIPELINE_REPORT_REPORT_H_
#define LETHE_SRC_PIPELINE_REPORT_REPORT_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lethe/status.h"
#include "src/pipeline/report/histogram.h"
#include "src/pipeline/report/id_watch.h"
#include "src/pipeline/report/record_counts.h"

namespace lethe {

// Of the process.
struct SnapshotCounts {
  int64_t taken = 0;
  int64_t errors = 0;       // could not be written: a full disk, say
  double last_seconds = 0;  // that the last one took
};

enum class Phase {
  kChecking,   // the filter that was kept is compared with the log
  kRestoring,  // the filter is rebuilt from the log
  kActive,     // events are judged
  kHeld,       // nothing is read until the output has such a partition; `problem` says so
  kFailed,     // nothing is read; `problem` says why and what to do
};

struct PartitionReport {
  int32_t partition = 0;
  Phase phase = Phase::kRestoring;
  std::string problem;
  RecordCounts counts;
  int64_t committed = 0;       // the next offset to process, as committed
  int64_t position = 0;        // the next offset to read
  int64_t high_watermark = 0;  // the end of the log, as last fetched; 0 if not known
  int64_t restore_from = 0;    // of the last rebuild: reads [restore_from, restore_to)
  int64_t restore_to = 0;
  int64_t restore_left = 0;          // offsets to go
  absl::Duration restore_time_left;  // infinite while it is not known
  int64_t snapshot_offset = -1;      // of the snapshot that the commits name; -1: none
  int64_t unread_deleted = 0;  // offsets that were passed over, since the log does not have them any more
  int64_t counted_keys = 0;    // of all counters with totals
  int64_t restart = 0;         // R, as committed: no rebuild needs what is before it; 0 if not known
  bool short_history = false;  // the filter does not know all ids of the horizon: duplicates may pass
  bool keys_moved = false;     // the topic grew within the horizon: copies may be in different partitions
  // When it was last asked: up to a quarter of a second ago, or longer where a lane has many partitions.
  PartitionStatus filter;

  // Records that are not committed yet. A position at the end of the log counts as all: the last offsets may
  // be control records.
  int64_t lag() const {
    return position >= high_watermark ? 0 : std::max<int64_t>(high_watermark - committed, 0);
  }
};

struct LaneHistograms {
  Histogram batch_records;        // polled at once
  Histogram transaction_seconds;  // from its first record to the end of its commit
  Histogram commit_seconds;       // the commit alone
  Histogram latency_seconds;      // of records: from their timestamp to the end of the commit
};

// Of a consumer or a producer, by librdkafka.
struct ClientReport {
  bool known = false;                                // it has told its figures
  absl::Duration round_trip = absl::ZeroDuration();  // the mean of the slowest broker
  int64_t queued_messages = 0;                       // fetched ahead, or to be sent
  int64_t queued_bytes = 0;
  int64_t received_bytes = 0;
  int64_t sent_bytes = 0;
  int64_t request_timeouts = 0;
};

struct LaneReport {
  int lane = 0;
  bool joined = false;                                    // has an assignment, be it of no partition
  absl::Duration unassigned_for = absl::ZeroDuration();   // how long it has not
  absl::Duration session_timeout = absl::ZeroDuration();  // after which the group gives up a member
  bool at_end = false;  // every partition has reached the end that was read at the start
  std::string waiting;  // what it waits for; empty: nothing
  std::optional<IdWatch::Stretch> without_id;  // the latest records, if nearly all lack a usable id
  int64_t commits = 0;
  int64_t aborts = 0;
  int64_t fences = 0;
  RecordCounts totals;  // committed since the start, of partitions that it has lost, too
  LaneHistograms histograms;
  ClientReport consumer;
  ClientReport producer;
  std::vector<PartitionReport> partitions;
};

// Of a store that a counter's totals are brought to.
struct StoreReport {
  std::string counter;
  std::string store = {};    // where it is
  bool connected = false;    // as of the last call
  std::string problem = {};  // what is waited for; empty: nothing
  int64_t lag = 0;           // offsets of the totals of this instance's partitions that are not stored
  absl::Duration behind = absl::ZeroDuration();  // all that was committed longer ago is stored
  int64_t totals = 0;                            // that were stored
  int64_t failures = 0;                          // calls of it that failed
};

struct DaemonReport {
  std::string input;
  std::string output;
  std::string group;
  std::string instance;
  absl::string_view engine = "";
  absl::Duration horizon = absl::ZeroDuration();
  double fpp_target = 0;
  int64_t memory_used_bytes = 0;
  int64_t memory_limit_bytes = 0;
  SnapshotCounts snapshots;
  std::vector<LaneReport> lanes;
  std::vector<StoreReport> stores;
  // The first stage of Scope::kTopic: what it reads, and its lanes. Their `unique` is what was routed.
  std::string routing_input;
  std::vector<LaneReport> routing_lanes;
  // Empty if the daemon is ready: every lane has joined, waits for nothing, and its partitions are active.
  std::vector<std::string> not_ready;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_REPORT_H_
