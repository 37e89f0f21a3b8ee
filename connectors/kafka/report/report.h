// What the daemon says of itself, for metrics, the page and tests. Plain values.
#ifndef LETHE_CONNECTORS_KAFKA_REPORT_REPORT_H_
#define LETHE_CONNECTORS_KAFKA_REPORT_REPORT_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lethe/status.h"
#include "src/pipeline/histogram.h"
#include "src/pipeline/id_watch.h"

namespace lethe::kafka {

// Every input record ends under exactly one of the first eight. Counted when the transaction that carried it
// out has committed, so a record that was judged twice because of an abort counts once.
struct RecordCounts {
  int64_t unique = 0;
  int64_t duplicate = 0;
  int64_t suspect = 0;        // a duplicate to the filter, but not to the second opinion
  int64_t missing_id = 0;     // without a verdict
  int64_t malformed = 0;      // without a verdict
  int64_t undeliverable = 0;  // the topic that it was for refuses it for good
  int64_t unreadable = 0;     // could not be fetched, and were passed over
  int64_t suppressed = 0;     // read again to rebuild the filter; its result is already out
  // What was done with the first seven: the policies' part. Every one of them is in exactly one of these.
  int64_t passed = 0;
  int64_t tagged = 0;
  int64_t diverted = 0;
  int64_t dropped = 0;
  // Beside those: what counters were changed by, and how often a passed record could not be counted by one;
  // records without a key, and such whose timestamp is not believed.
  int64_t counter_updates = 0;
  int64_t malformed_delta = 0;
  int64_t overflowed_delta = 0;  // a total would have left 64 bits
  int64_t unkeyed = 0;
  int64_t future = 0;  // dated further ahead than max_future

  RecordCounts& operator+=(const RecordCounts& other) {
    unique += other.unique;
    duplicate += other.duplicate;
    suspect += other.suspect;
    missing_id += other.missing_id;
    malformed += other.malformed;
    undeliverable += other.undeliverable;
    unreadable += other.unreadable;
    suppressed += other.suppressed;
    passed += other.passed;
    tagged += other.tagged;
    diverted += other.diverted;
    dropped += other.dropped;
    counter_updates += other.counter_updates;
    malformed_delta += other.malformed_delta;
    overflowed_delta += other.overflowed_delta;
    unkeyed += other.unkeyed;
    future += other.future;
    return *this;
  }
};

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

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_REPORT_REPORT_H_
