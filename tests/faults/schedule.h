// What goes wrong when: a schedule of faults, made of one seed.
#ifndef LETHE_TESTS_FAULTS_SCHEDULE_H_
#define LETHE_TESTS_FAULTS_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe::test {

inline constexpr int kMaxInstances = 3;

// To add a kind: tests/README.md, Faults. Kinds are compared with <=, so their order matters.
enum class FaultKind {
  // Of a lethe process.
  kKill,    // SIGKILL; a new one when the fault ends
  kEnd,     // SIGTERM; likewise
  kFreeze,  // SIGSTOP until it ends
  kJoin,    // one more, for good
  kLeave,   // SIGTERM, for good
  // Of its snapshots. In the end it is killed and starts again, so that what it restores from has met them.
  kDamageSnapshots,
  kOldSnapshots,      // when the fault ends they are what they were when it began
  kForeignSnapshots,  // of another configuration
  kFullDisk,          // no file of the process may grow beyond a size
  kBrokenDisk,        // it begins a life in which a call fails: fsync, or making the file
  // Of its connections.
  kCut,
  kDelay,
  kStall,
  kSlow,
  kLoseReplies,
  // Of a broker, which is started again when the fault ends.
  kKillBroker,
  kStopBroker,
  // Of the input.
  kLoseAcks,       // the client writes batches again
  kAbortedInput,   // a transaction in it is aborted
  kAddPartitions,  // to output, counters and input
  kBadClock,       // all records are dated wrongly
};

// Which broker, when there are several.
enum class BrokerRole { kAny, kLeader, kGroupCoordinator, kTransactionCoordinator };

struct Fault {
  FaultKind kind = FaultKind::kKill;
  absl::Duration at;
  absl::Duration lasts;
  int target = 0;  // an instance, a partition, or any number to choose by
  BrokerRole role = BrokerRole::kAny;
  uint64_t seed = 0;  // of what is not to be said in advance
};

// Where the processes save their filters.
enum class SnapshotPlace { kNowhere, kFolderOfEach, kFolderOfAll, kTopic };

struct Schedule {
  uint64_t seed = 0;
  std::string theme;

  int brokers = 1;
  int partitions = 3;
  int instances = 1;  // at the start
  int lanes = 1;
  std::string engine;
  absl::Duration horizon;
  absl::Duration step;  // of the events' times
  int wild_per_mille = 0;
  int copies_within = 1000;
  int most_copies = 3;          // of one event
  int oversized_per_mille = 0;  // records that the output rejects as too large
  int per_second = 1000;
  absl::Duration commit_interval;
  absl::Duration session_timeout;
  absl::Duration transaction_timeout;
  absl::Duration socket_timeout;
  std::string assignment;  // eager or cooperative
  bool static_members = false;
  bool topic_scope = false;  // --scope=topic
  // All of the input is there before the first process starts: so many horizons of it, in uneven partitions,
  // with copies in any of them. 0: it comes meanwhile.
  int backlog_horizons = 0;
  SnapshotPlace snapshots = SnapshotPlace::kNowhere;
  bool from_the_start = false;  // faults begin before the first output is seen
  absl::Duration lasts;
  std::vector<Fault> faults;  // by time
  // When all this is over: the input, under the processes, and it is recreated with other events.
  bool deletes_input = false;

  // What the processes count can be added up: there is one, with one lane, which is not ended on the way.
  // (Who takes a partition over from another counts from 0 again, as a counter may.)
  bool countable() const;
  // Totals of a topic that is gone are not to be gone on with: lethe asks for another topic then.
  bool counts_totals() const { return !deletes_input; }
  // For people: all of it.
  std::string Outline() const;
};

// What a record may have at most to fit into the output, where there are records that do not.
inline constexpr int kOutputMaxMessageBytes = 20'000;

// The same seed gives the same schedule. Twelve seeds in a row have twelve themes.
Schedule MakeSchedule(uint64_t seed);
int ThemeCount();

absl::string_view FaultName(FaultKind kind);
bool OfSnapshots(FaultKind kind);

}  // namespace lethe::test

#endif  // LETHE_TESTS_FAULTS_SCHEDULE_H_
