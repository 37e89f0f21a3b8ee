// The options of the daemon.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_OPTIONS_H_
#define LETHE_SRC_PIPELINE_OPTIONS_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lethe/options.h"
#include "src/record/record_reader.h"

namespace lethe {

enum class Action {
  kPass,    // written to the output as it is
  kDrop,    // not written
  kTag,     // written to the output, with a header that says why
  kDivert,  // written to the dead-letter topic, with the reason and its place as headers
  kFail,    // its partition stops before it
};

// The filter cannot know all ids of the horizon: the log is too short, or the horizon was raised.
enum class OnShortHistory { kContinue, kFail };
// Retention has deleted unread records.
enum class OnUnreadDeleted { kFail, kContinue };

// Handling of duplicates, of bad records, and of what the log lacks.
struct Policies {
  Action on_duplicate = Action::kDrop;      // kDrop, kTag or kDivert
  Action on_missing_id = Action::kPass;     // kPass, kDrop, kDivert or kFail
  Action on_malformed = Action::kPass;      // the same
  Action on_undeliverable = Action::kDrop;  // kDrop, kDivert or kFail
  Action on_unreadable = Action::kFail;     // kFail or kDrop
  // For an event that passes and cannot be counted. kPass, or kDivert: a copy is diverted.
  Action on_uncountable = Action::kPass;
  // For a duplicate that differs from others of an id that many events share. kDrop, kPass, kDivert or kFail.
  Action on_suspicious_id = Action::kDrop;
  OnShortHistory on_short_history = OnShortHistory::kContinue;
  OnUnreadDeleted on_unread_deleted = OnUnreadDeleted::kFail;

  bool diverts() const {
    return on_duplicate == Action::kDivert || on_missing_id == Action::kDivert ||
           on_malformed == Action::kDivert || on_suspicious_id == Action::kDivert ||
           on_undeliverable == Action::kDivert || on_uncountable == Action::kDivert;
  }
};

enum class Start { kEarliest, kLatest };
// Where ids are unique: in each input partition, or in the whole topic.
enum class Scope { kPartition, kTopic };
// As in the configuration and in commit metadata.
inline const char* ScopeName(Scope scope) { return scope == Scope::kTopic ? "topic" : "partition"; }
enum class Delivery { kExactlyOnce, kAtLeastOnce };

// When a partition moves, all partitions stop, or only that one.
enum class Assignment { kEager, kCooperative };

// When a lane that restarts within session.timeout.ms takes its place in the group back, as a static member,
// so that no partition moves.
enum class StaticMembership {
  kNever,
  kAfterCrash,  // a clean stop leaves the group: others take the partitions at once
  kAlways,      // also after a clean stop: nobody has the partitions until it is back
};

// Snapshots go to a folder or to a topic; both empty: no snapshots.
struct SnapshotOptions {
  std::string folder;
  std::string topic;
  absl::Duration every = absl::Minutes(5);
};

enum class CounterMode {
  kDelta,  // the sum of a commit
  kTotal,  // the running total of the key in the partition
};

// A counter of unique events, and its output topic.
struct CounterOptions {
  std::string name;                        // letters, digits, '.', '_' and '-'; unique
  CounterMode mode = CounterMode::kDelta;  // kTotal only with exactly once
  CounterSpec spec;
  std::string output;  // the topic; of no other counter
  // With kTotal: keys that have a total, in each partition of the input; others are uncountable.
  size_t max_keys = 1'000'000;
  // A store that also gets the totals: redis://HOST:PORT/DATABASE. Empty: none.
  std::string store = {};
  std::string store_password = {};
};

// A librdkafka property, passed through.
using Property = std::pair<std::string, std::string>;

// What the router of Scope::kTopic does: it copies the input to the output by id.
struct Routing {
  std::vector<std::string> to;  // topics where records get their partition back
  // How far a source partition may be ahead of the slowest one that has records to read, by the records'
  // timestamps. Infinite: as far as it likes.
  absl::Duration lead = absl::InfiniteDuration();
  // A source partition that holds others, and stands still for this long, is not waited for.
  absl::Duration source_patience = absl::Minutes(1);
};

// Which half of Scope::kTopic the options are of (stage_options.h); not set by the user.
struct Half {
  std::optional<Routing> routing;        // the router
  std::vector<std::string> routed_from;  // the deduplicator: the topics from which the input was routed
};

// What all topics of a process share.
struct ProcessOptions {
  std::string brokers;  // bootstrap.servers
  std::string group;
  std::string instance;  // stable, and unique in the group
  Delivery delivery = Delivery::kExactlyOnce;
  int lanes = 1;
  Assignment assignment = Assignment::kEager;
  StaticMembership static_membership = StaticMembership::kNever;
  absl::Duration commit_interval = absl::Milliseconds(100);
  bool exit_at_end = false;
  // A lane with lag that commits nothing for this long plus three commit intervals is not ready. Shorter in
  // tests.
  absl::Duration stall_patience = absl::Seconds(30);
  SnapshotOptions snapshots;
  std::vector<Property> properties;
};

struct DaemonOptions {
  ProcessOptions process;

  std::string input;  // of several, the first
  // Inputs that are merged: the same events come by several ways. Empty: there is one.
  std::vector<std::string> merged;
  std::string input_header;  // of output records: the input that they came from; empty: none
  std::string output;
  std::string divert;  // the dead-letter topic; empty unless policies.diverts()
  std::vector<CounterOptions> counters;

  Scope scope = Scope::kPartition;
  Start start = Start::kEarliest;  // without a committed offset
  // Whether a group may start at the beginning of its input where the output has records.
  bool accept_nonempty_output = false;
  RecordSpec record;
  // A record dated further ahead of this machine's clock counts as one without a time.
  absl::Duration max_future = absl::Hours(1);
  Policies policies;
  StageOptions stage;
  Half half;

  // Whether both halves are meant.
  bool has_two_stages() const { return scope == Scope::kTopic && !half.routing && half.routed_from.empty(); }
  // Where both are meant: all that are merged.
  std::vector<std::string> inputs() const {
    return merged.empty() || half.routing || !half.routed_from.empty() ? std::vector<std::string>{input}
                                                                       : merged;
  }
  // How far back a filter must know all ids.
  absl::Duration known_horizon() const { return half.routing ? absl::ZeroDuration() : stage.horizon; }
  // What totals name as their topic: the input, or the topic from which it was routed; of merged inputs,
  // whose list may grow, the output.
  const std::string& origin() const {
    if (!merged.empty()) return output;
    return half.routed_from.empty() ? input : half.routed_from.front();
  }
  // The fields to read of each judged record.
  RecordSpec RecordAndCounters() const {
    RecordSpec spec = record;
    for (const CounterOptions& counter : counters) spec.counters.push_back(counter.spec);
    return spec;
  }
};

// What must stay the same from one run of a group to the next: the id, and for the router the number of
// output partitions.
inline std::string IdFingerprint(const DaemonOptions& options, int32_t output_partitions) {
  const std::string fingerprint = options.record.id.Fingerprint();
  return options.half.routing ? absl::StrCat(fingerprint, "/", output_partitions) : fingerprint;
}

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_OPTIONS_H_
