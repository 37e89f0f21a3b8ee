// What the daemon is told.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_OPTIONS_H_
#define LETHE_SRC_PIPELINE_OPTIONS_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lethe/options.h"
#include "src/pipeline/options/policies.h"
#include "src/record/record_reader.h"

namespace lethe {

enum class Start { kEarliest, kLatest };
// Where ids are unique: in each partition of the input, or in all of them.
enum class Scope { kPartition, kTopic };
// As in a configuration, and in commit metadata.
inline const char* ScopeName(Scope scope) { return scope == Scope::kTopic ? "topic" : "partition"; }
enum class Delivery { kExactlyOnce, kAtLeastOnce };

// What is done where the filter cannot know all that it must: a log that is too short, a raised horizon.
enum class OnShortHistory { kContinue, kFail };
// What is done where records were deleted before they were read.
enum class OnUnreadDeleted { kFail, kContinue };

// How the group moves partitions: all of them stop when one moves, or only that one does.
enum class Assignment { kEager, kCooperative };

// When a lane that starts again within session.timeout.ms takes its own place in the group back, as a static
// member: partitions do not move then, and nobody waits for the member that has gone.
enum class StaticMembership {
  kNever,
  kAfterCrash,  // a clean stop leaves the group, so that others take the partitions at once
  kAlways,      // also after a clean stop, after which nobody has the partitions until it is back
};

// Where snapshots go: to a folder, to a topic, or (both empty) nowhere.
struct SnapshotOptions {
  std::string folder;
  std::string topic;
  absl::Duration every = absl::Minutes(5);
};

enum class CounterMode {
  kDelta,  // what a commit has added
  kTotal,  // what a key has come to in the partition
};

// What unique events count, and the topic that it goes to.
struct CounterOptions {
  std::string name;                        // letters, digits, '.', '_' and '-'; unique
  CounterMode mode = CounterMode::kDelta;  // kTotal only with exactly once
  CounterSpec spec;
  std::string output;  // of no other counter
  // Where totals are brought to beside: redis://HOST:PORT/DATABASE. Empty: nowhere.
  std::string store = {};
  std::string store_password = {};
};

// A librdkafka property, passed through.
using Property = std::pair<std::string, std::string>;

struct DaemonOptions {
  std::string brokers;  // bootstrap.servers
  std::string input;
  std::string output;
  std::string group;
  std::string instance;  // stable, and unique in the group

  Scope scope = Scope::kPartition;
  Start start = Start::kEarliest;  // for a group that has committed nothing
  Delivery delivery = Delivery::kExactlyOnce;
  int lanes = 1;
  Assignment assignment = Assignment::kEager;
  StaticMembership static_membership = StaticMembership::kNever;
  absl::Duration commit_interval = absl::Milliseconds(100);
  bool exit_at_end = false;
  // After so long, and three commit intervals, a lane that is behind and commits nothing is not ready. Tests
  // have less.
  absl::Duration stall_patience = absl::Seconds(30);

  RecordSpec record;
  Policies policies;
  std::string divert;  // the topic for what is diverted; empty unless policies.diverts()
  std::vector<CounterOptions> counters;
  StageOptions stage;
  // A record dated further ahead of this machine's clock has no time: it moves no stream time.
  absl::Duration max_future = absl::Hours(1);
  SnapshotOptions snapshots;
  OnShortHistory on_short_history = OnShortHistory::kContinue;
  OnUnreadDeleted on_unread_deleted = OnUnreadDeleted::kFail;

  std::vector<Property> properties;

  // Of the lanes of one of the two stages of Scope::kTopic (stage_options.h); the user does not set them.
  bool routes = false;                 // copies the input to the output by id, and judges nothing
  std::string routed_from;             // the topic from which the input was routed; empty if it was not
  std::vector<std::string> routed_to;  // of those that copy: where the records get their partition back

  // The input, or the topic from which it was routed.
  const std::string& origin() const { return routed_from.empty() ? input : routed_from; }
  // What is read of each record that is judged.
  RecordSpec RecordAndCounters() const {
    RecordSpec spec = record;
    for (const CounterOptions& counter : counters) spec.counters.push_back(counter.spec);
    return spec;
  }
};

// What must not change from one run of a group to the next. Where records are routed, that is also to how
// many partitions.
std::string IdFingerprint(const DaemonOptions& options, int32_t output_partitions);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_OPTIONS_H_
