// The oracle: what a run has left behind, judged by the log alone.
//
// It knows nothing of filters. It reads the input and the output, finds for each output record the input
// record that it was, and so has each input record's verdict: passed or dropped. Then it holds the verdicts
// against the promise, partition by partition and in the order of the log:
//
//   - What is out is in the input, unchanged (key, value, headers, timestamp), in the input's order, once.
//   - An id's first record is passed. A record without an id is passed.
//   - A copy is dropped as long as stream time is at most a horizon beyond that of the pass before it.
//   - After the horizon either verdict is right, for a while: a window is never exactly the horizon. Both are
//     counted. A copy that comes later than `forgotten_after` must pass, counted from the last record of its
//     id: what a rebuild has read again is remembered from there.
//   - A record that is too large for the output is not out, and its id was not passed.
//   - The counters' deltas are, per partition and key, the sum of what was passed; so is the last total.
//   - No transaction is open in what was written, and the group has committed one past the last record,
//     or beyond it what is no record.
//   - A filter holds the ids of the last horizon, and none that had to be forgotten; its time is stream time.
//   - The verdicts that the processes counted, where none was killed, are these verdicts.
//
// Stream time is the running maximum of the median of the last 101 timestamps, but for those in the future.
// It starts when the middle half of them lies within 1/32 of the horizon, at the latest when 303 were seen.
// Until then everything is within the horizon.
//
// A filter may also take a new id for one that it knows (a false positive), and the oracle calls that a loss:
// its target is to be set so low that none is to be expected in all schedules together.
#ifndef LETHE_TESTS_FAULTS_JUDGE_H_
#define LETHE_TESTS_FAULTS_JUDGE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {

// An event of the faulty stream: {"send":7,"id":"a-3","country":"is","amount":-3}. `send` is another for each
// time that the application sends, so the copies that a client makes on its own have the same; an event may
// have no id.
struct FaultyEvent {
  int64_t send = -1;
  std::string id;
  std::string country;
  int64_t amount = 0;
  std::string pad;  // makes it too large for the output

  std::string ToJson() const;
  // False if it is none, as ToJson() writes them.
  static bool Parse(absl::string_view json, FaultyEvent* event);
};

struct TopicEnds {
  std::vector<int64_t> stable;  // the last stable offset
  std::vector<int64_t> end;     // the high watermark
};

struct CountedVerdicts {
  int64_t unique = 0;
  int64_t duplicate = 0;
  int64_t missing_id = 0;
  int64_t undeliverable = 0;
};

// What the filter of a partition says of itself when all is committed.
struct HeldIds {
  int64_t ids = 0;
  absl::Time stream_time;
  bool lacks_some = false;  // as it may say: where memory is short, or the history
};

// Records as KafkaClient::ReadAll returns them, with read_committed.
struct Evidence {
  absl::Duration horizon;
  // Ids are unique in the topic. Then order is kept for each id, and counters are sums over all partitions.
  bool topic_scope = false;
  // With it: copies are in any partition, all within the horizon of the first, by their timestamps. Each id
  // is passed once then, whichever of its records that is.
  bool scattered = false;
  // Records dated after it count as records without a time.
  absl::Time latest_time = absl::InfiniteFuture();
  // A filter from before the input may have lent its clock: how long ago a record passed that came before
  // this one's moved, cannot be told, and a copy of it may pass.
  bool clock_may_be_older = false;
  // When each sending was made. Where many records are dated wrongly nobody can tell by their timestamps how
  // far apart they are, and those that were sent a horizon apart may pass. Null: the timestamps tell.
  std::function<int64_t(int64_t sending)> sent_ms;
  // By how much the clocks that say so may differ from each other and from one time to another.
  absl::Duration clocks_differ;
  // Values of more bytes are not for the output.
  size_t output_takes_bytes = SIZE_MAX;
  std::vector<Record> input;
  std::vector<Record> output;
  bool deltas_are_counted = true;
  std::vector<Record> deltas;
  bool totals_are_counted = false;
  std::vector<Record> totals;
  TopicEnds output_ends;
  TopicEnds delta_ends;
  TopicEnds total_ends;
  std::vector<int64_t> committed;  // by partition of the input
  // Where the input ends, by partition, with what is no record: a group may commit up to there. Empty: one
  // past the last record.
  std::vector<int64_t> input_ends;
  std::optional<CountedVerdicts> counted;
  // After so much stream time without a record of it an id is forgotten. Infinite: nothing says so.
  absl::Duration forgotten_after = absl::InfiniteDuration();
  // The horizon begins again with each record of an id.
  bool renews = false;
  // Without a rebuild: counted from the last record that was passed.
  bool is_rebuilt = true;
  // Of the filters, by partition; nullopt: not known.
  std::vector<std::optional<HeldIds>> held;
};

struct Judgement {
  std::vector<std::string> problems;  // in words; none: all is as promised
  int64_t records = 0;
  int64_t passed = 0;
  int64_t dropped = 0;
  int64_t undeliverable = 0;
  // Of both: copies from after the horizon.
  int64_t late_passed = 0;
  int64_t late_dropped = 0;
  int64_t surely_late = 0;         // of those that passed: they had to
  int64_t late_undeliverable = 0;  // of late_dropped: whether the output was asked nobody knows
  int64_t without_id = 0;          // of those that passed
  int64_t unkeyed = 0;
  int64_t future = 0;         // dated after latest_time
  int64_t client_copies = 0;  // records of one and the same sending, but for the first
  // Of the problems.
  int64_t lost = 0;
  int64_t repeated = 0;
  int64_t foreign = 0;
  int64_t changed = 0;
  int64_t reordered = 0;

  Judgement& operator+=(const Judgement& more);
};

Judgement Judge(const Evidence& evidence);

}  // namespace lethe::test

#endif  // LETHE_TESTS_FAULTS_JUDGE_H_
