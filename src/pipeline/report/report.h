// The daemon's report, for metrics, the page and tests. Plain values.
#ifndef LETHE_SRC_PIPELINE_REPORT_REPORT_H_
#define LETHE_SRC_PIPELINE_REPORT_REPORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/status.h"
#include "src/assertion.h"
#include "src/pipeline/report/duplicate_watch.h"
#include "src/pipeline/report/shared_id_watch.h"
#include "src/pipeline/report/watches.h"
#include "src/record/schema_source.h"
#include "src/record/timestamp.h"

namespace lethe {

// Of one counter by one record.
struct CounterCounts {
  int64_t updates = 0;
  int64_t malformed = 0;   // a passed record that a counter cannot count
  int64_t overflowed = 0;  // a total would have left 64 bits, or been one too many

  CounterCounts& operator+=(const CounterCounts& other) {
    updates += other.updates;
    malformed += other.malformed;
    overflowed += other.overflowed;
    return *this;
  }
};

// Each input record is in exactly one of the first eight. Counted after the commit, so a record that an abort
// has had judged twice counts once.
struct RecordCounts {
  int64_t unique = 0;
  int64_t duplicate = 0;
  int64_t missing_id = 0;     // without a verdict
  int64_t malformed = 0;      // without a verdict
  int64_t undeliverable = 0;  // the output refuses it for good
  int64_t unreadable = 0;     // could not be fetched; skipped
  int64_t suppressed = 0;     // replayed to restore the filter
  // The dispositions of the first seven: each record is in exactly one.
  int64_t passed = 0;
  int64_t tagged = 0;
  int64_t diverted = 0;
  int64_t dropped = 0;
  CounterCounts counters = {};
  int64_t unkeyed = 0;      // without a key
  int64_t future = 0;       // dated further ahead than max_future
  int64_t suspicious = 0;   // duplicates that differ from others of an id that many events share
  int64_t expired = 0;      // written, and older than the output keeps records
  int64_t later_place = 0;  // ids from another place than the first of `id`
  int64_t partial_id = 0;   // ids without an optional part

  RecordCounts& operator+=(const RecordCounts& other) {
    unique += other.unique;
    duplicate += other.duplicate;
    missing_id += other.missing_id;
    malformed += other.malformed;
    undeliverable += other.undeliverable;
    unreadable += other.unreadable;
    suppressed += other.suppressed;
    passed += other.passed;
    tagged += other.tagged;
    diverted += other.diverted;
    dropped += other.dropped;
    counters += other.counters;
    unkeyed += other.unkeyed;
    future += other.future;
    suspicious += other.suspicious;
    expired += other.expired;
    later_place += other.later_place;
    partial_id += other.partial_id;
    return *this;
  }
};

// As Prometheus' histograms. Invariant: counts()[i] values are above bounds()[i - 1] and not above
// bounds()[i]; the last count is for values above all bounds. Not thread-safe.
class Histogram {
 public:
  Histogram() = default;  // without bounds: counts only
  // `bounds` ascend, and outlive the histogram.
  explicit Histogram(absl::Span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {
    LETHE_ASSERT(std::is_sorted(bounds.begin(), bounds.end()));
  }

  void Add(double value, int64_t times = 1) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    counts_[static_cast<size_t>(bucket)] += times;
    sum_ += value * static_cast<double>(times);
  }

  absl::Span<const double> bounds() const { return bounds_; }
  absl::Span<const int64_t> counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  absl::Span<const double> bounds_;
  std::vector<int64_t> counts_ = {0};
  double sum_ = 0;
};

// Of the process.
struct SnapshotCounts {
  int64_t taken = 0;
  int64_t errors = 0;       // not written: a full disk, say
  double last_seconds = 0;  // duration of the last one

  SnapshotCounts& operator+=(const SnapshotCounts& other) {
    taken += other.taken;
    errors += other.errors;
    last_seconds = std::max(last_seconds, other.last_seconds);
    return *this;
  }
};

enum class Phase {
  kChecking,   // the kept filter is compared with the log
  kRestoring,  // the filter is rebuilt from the log
  kActive,     // events are judged
  kHeld,       // not read until the output has such a partition, or a schema is known; `problem` says so
  kFailed,     // not read; `problem` says why and what to do
};

// How far a partition's log is processed.
struct LogReport {
  int64_t committed = 0;       // the next offset to process, as committed
  int64_t position = 0;        // the next offset to read
  int64_t high_watermark = 0;  // the end of the log, as last fetched; 0 if not known
  bool is_answered = true;     // false: the brokers do not tell where it ends now, and the lag is not known

  // Records that are not committed yet. 0 at the end of the log, whose last offsets may be control records.
  int64_t lag() const {
    return position >= high_watermark ? 0 : std::max<int64_t>(high_watermark - committed, 0);
  }
};

// The last restore of a filter, and where the next one would begin.
struct RestoreReport {
  int64_t from = 0;  // reads [from, to)
  int64_t to = 0;
  int64_t left = 0;                                 // offsets to go
  absl::Duration time_left = absl::ZeroDuration();  // infinite while it is not known
  int64_t snapshot_offset = -1;                     // of the snapshot that the commits name; -1: none
  int64_t restart = 0;                              // R, as committed; 0 if not known
};

struct PartitionReport {
  int32_t partition = 0;
  int32_t flow = 0;   // of its topic
  std::string topic;  // the input
  absl::Duration horizon = absl::ZeroDuration();
  Phase phase = Phase::kRestoring;
  std::string problem;
  RecordCounts counts;
  LogReport log;
  RestoreReport restore;
  int64_t unread_deleted = 0;  // lost records: offsets deleted by retention and skipped
  int64_t counted_keys = 0;    // of all counters with totals
  bool short_history = false;  // ids of the horizon are missing: copies may pass
  // Since then an open transaction of a producer hides the records at `log.position`; InfiniteFuture(): it
  // does not, or has not for long.
  absl::Time open_transaction_since = absl::InfiniteFuture();
  // Two records that differ, of an id that many share.
  std::optional<SharedIdWatch::Pair> shared_id = std::nullopt;
  // The share of duplicates has jumped, since a time of the wall clock.
  std::optional<DuplicateWatch::Jump> duplicates_jumped = std::nullopt;
  // Most of the latest records that were written to `output` are older than it keeps records.
  std::optional<ExpiryWatch::Stretch> expiring = std::nullopt;
  std::string output;
  bool keys_moved = false;  // the topic grew within the horizon: copies may be in different partitions
  // Up to a quarter of a second old, or older if the lane has many partitions.
  PartitionStatus filter;

  std::string Name() const { return absl::StrCat(topic, "-", partition); }
};

struct LaneHistograms {
  Histogram batch_records;        // polled at once
  Histogram transaction_seconds;  // from its first record to the end of its commit
  Histogram commit_seconds;       // the commit alone
  Histogram latency_seconds;      // of records: from their timestamp to the end of the commit
};

// Of a consumer or a producer, by librdkafka.
struct ClientReport {
  bool known = false;                                // statistics have come
  absl::Duration round_trip = absl::ZeroDuration();  // the mean of the slowest broker
  int64_t queued_messages = 0;                       // fetched ahead, or to be sent
  int64_t queued_bytes = 0;
  int64_t received_bytes = 0;
  int64_t sent_bytes = 0;
  int64_t request_timeouts = 0;
  absl::Duration throttled =
      absl::ZeroDuration();  // by quotas: the sum of what brokers stated since the start
};

// Of a member of the group.
struct MemberReport {
  bool joined = false;                                    // has an assignment, even an empty one
  absl::Duration unassigned_for = absl::ZeroDuration();   // 0 if joined
  absl::Duration session_timeout = absl::ZeroDuration();  // after which the group removes a member
};

// The latest records of a topic nearly all lack a usable id.
struct WithoutId {
  std::string topic;
  IdWatch::Stretch records;
};

// Most of the latest timestamps of a topic are of another unit.
struct WrongTimes {
  std::string topic;
  TimeUnitCheck times;
};

struct TransactionCounts {
  int64_t committed = 0;
  int64_t aborted = 0;
  int64_t fences = 0;
  int64_t renewals = 0;
};

struct LaneReport {
  int lane = 0;
  MemberReport member;
  bool at_end = false;  // every partition has reached the end offset of the start
  std::string waiting;  // for what; empty: nothing
  // Shares of the last ten seconds in which quotas held the consumer or the producer back; 0 if below a
  // tenth.
  double consumer_throttled = 0;
  double producer_throttled = 0;
  std::optional<WithoutId> without_id;
  std::optional<WrongTimes> wrong_times;
  TransactionCounts transactions;
  RecordCounts totals;  // committed since the start, also of revoked partitions
  LaneHistograms histograms;
  ClientReport consumer;
  ClientReport producer;
  std::vector<PartitionReport> partitions;
  std::map<std::string, std::string> gone;  // topics that cannot be read, and what to do
  // The router: partitions of the input that stand still, and are not waited for.
  std::vector<std::string> passed_over;
};

// A store of a counter's totals.
struct StoreReport {
  std::string counter;
  std::string store = {};                        // its address
  bool connected = false;                        // as of the last call
  std::string problem = {};                      // empty: none
  int64_t lag = 0;                               // offsets of this instance's totals that are not stored
  absl::Duration behind = absl::ZeroDuration();  // all that was committed longer ago is stored
  int64_t totals = 0;                            // stored
  int64_t failures = 0;                          // failed calls
};

// An input topic.
struct TopicReport {
  std::string input;
  std::string output;
  absl::string_view engine = "";
  absl::Duration horizon = absl::ZeroDuration();
  double fpp_target = 0;
  std::string problem = {};                   // why it is not read; empty: it is
  std::vector<std::string> routed_from = {};  // with Scope::kTopic: the inputs, and `input` is lethe's own
  bool is_named = true;                       // false: only a pattern matches it

  // The topics that the user has named.
  std::string origin() const { return routed_from.empty() ? input : absl::StrJoin(routed_from, ", "); }
};

struct DaemonReport {
  std::optional<SchemaFigures> schemas;  // of the schema registry, if there is one
  std::string brokers;                   // as configured
  std::vector<TopicReport> topics;
  TopicReport first;  // the only topic, or the first one of the configuration
  std::string group;
  std::string instance;
  int64_t memory_used_bytes = 0;
  int64_t memory_limit_bytes = 0;
  SnapshotCounts snapshots;
  std::vector<LaneReport> lanes;
  std::vector<StoreReport> stores;
  // The routers of Scope::kTopic. Their `unique` counts routed records.
  std::vector<LaneReport> routing_lanes;
  // Members of lethe's groups that are not lethe's, by name and host.
  std::vector<std::string> foreign_members;
  // Empty if the daemon is ready: every lane has joined and waits for nothing, and the partitions of at least
  // one topic are all active.
  std::vector<std::string> not_ready;
  // It is ready, but for these topics.
  std::vector<std::string> but_for;
  bool is_answered = true;  // false: the brokers do not answer; then no partition's log is answered, either
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_REPORT_H_
