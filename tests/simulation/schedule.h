// What happens in a simulation: its shape, and its faults, all made of one seed.
#ifndef LETHE_TESTS_SIMULATION_SCHEDULE_H_
#define LETHE_TESTS_SIMULATION_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace lethe::simulation {

enum class FaultKind {
  // Of a process.
  kKill,           // at once; a new one comes when the fault has passed
  kKillAtCall,     // as it makes the call of an interface that is so many after the time
  kEnd,            // it is asked to end; likewise
  kFreeze,         // it stands still, and then goes on as if nothing had happened
  kStall,          // its lanes do, while its clients go on; the group removes it
  kJoin,           // one more, for good
  kLeave,          // it is asked to end, for good
  kExpel,          // the group removes it: it polls too rarely
  kCut,            // no broker answers it
  kLoseAnswers,    // it learns nothing of its next commits, and its producer is lost
  kRefuseCommits,  // its next commits are refused
  kLateRequests,   // many of its requests come twice, the second time late, and many answers never
  // Of its snapshots.
  kDamageSnapshots,  // all that are there
  kLoseSnapshots,
  // Of the cluster.
  kAway,         // no broker answers anybody
  kSlowMarkers,  // the ends of transactions take seconds to reach the logs
  kBrokerClock,  // the brokers' clocks jump ahead, and open transactions have timed out
  kWallClock,    // the clocks of all processes jump
  // Of one topic.
  kAddPartition,   // to it, and to what it is written to
  kAddTopic,       // one more comes, with what it is written to
  kRetention,      // what no restart needs is deleted
  kDeleteMore,     // what a restart needs is deleted, or what is not read yet
  kCutLog,         // a log loses the end of what was judged, and grows again
  kMissingOutput,  // its output, or its deltas' topic, is deleted, and created again
  kRefusedOutput,  // nobody may write there
  kRecreate,       // it is deleted, and created again after so long; the group's offsets go with it, or stay
  kForeignCommit,  // another program, or a lethe of another version or configuration, has committed
  kAbortedInput,   // a transaction that is aborted
  kOpenInput,      // one that is open for so long, and then committed or aborted
  kBadClock,       // records are dated wrongly
  kFastClock,      // records are dated ahead by nearly as much as is believed, or by a little more
  kUnreadable,     // a batch that nobody can read
};

struct Fault {
  FaultKind kind = FaultKind::kKill;
  absl::Duration at;
  absl::Duration lasts;
  int target = 0;      // an instance, or any number to choose by
  int topic = 0;       // likewise
  int64_t number = 0;  // of calls, of commits, or any number
};

// Of topics: whether it lasts until all other topics are done.
inline bool LastsLong(const Fault& fault) { return fault.number == 3; }

inline constexpr int kMostTopics = 3;
inline std::string NameOfTopic(int topic) { return std::string(1, static_cast<char>('a' + topic)); }

// What happens when all that was sent is judged.
enum class Epilogue {
  kNone,
  kCutLog,           // while no process runs, a log loses the end of what was judged, and grows again
  kCutLogUnderLife,  // likewise, while all stand still
  kLoseOffsets,  // while no process runs, the group's offsets are deleted, and outputs have records, or none
  kReset,        // an operator resets the group's offsets, forward or back, while no process runs
  kResetUnderLife,  // likewise, while all stand still
  kSetBack,         // the group's offsets are those of earlier commits, while all stand still
  kForeignCommit,   // a lethe of another version or configuration commits, while all stand still
  kTwin,            // a second process runs as one instance
  kDeleteUnread,    // all of a log is deleted, also what is not read, and nothing follows
};

enum class SnapshotPlace { kNowhere, kOfEach, kOfAll };
enum class Counting { kNothing, kDeltas, kTotals };

struct Schedule {
  uint64_t seed = 0;  // of all that is decided on the way

  bool are_brokers_old = false;  // of Kafka before 4.0
  int topics = 1;                // at the begin
  int routed_topics = 0;         // the first so many have `scope: topic`
  int ways = 1;                  // inputs of each of these, which are merged
  bool is_backlog = false;       // all of their records are there before anybody reads them
  // Topics of a stranger, whose names match the processes' patterns, and which would displace others if they
  // could. They come while faults do.
  int strangers = 0;
  int stopping_topic = -1;  // it stops before what has no id and what cannot be read; -1: none does
  int partitions = 2;       // of each topic
  int instances = 1;
  int lanes = 1;
  int filters = 0;  // for which a process has memory, at first; 0: for all
  bool is_cooperative = false;
  bool has_static_members = false;
  bool keeps_places = false;  // of static members, also when they are asked to end
  bool accepts_output =
      true;  // a group may begin where the output has records; else the operator says so later
  bool skips_deleted = false;   // what is deleted before it is read is lost, and no topic stops for it
  bool stops_at_short = false;  // a topic stops where ids of the horizon are not known
  bool names_input = false;     // in a header of what is written
  bool is_exact = false;        // the engine
  bool renews = false;          // copies
  bool tags = false;            // copies, which go to the output
  int shards = 1;               // of each filter
  absl::Duration commit_interval;
  absl::Duration session_timeout;
  absl::Duration transaction_timeout;
  absl::Duration horizon;
  absl::Duration skew;  // of the clock of every second instance
  absl::Duration step;  // of the records' times
  // In bursts of so many, where a step is short, the next so long after the one before; 0: without.
  int burst = 0;
  absl::Duration silence;
  int records = 100;     // in each topic
  absl::Duration lasts;  // in which they are sent
  int copies_of_ten = 3;
  int copies_within = 100;
  int wild_of_hundred = 0;
  int past_of_hundred = 0;     // are dated five horizons too early, in the middle third
  bool is_past_first = false;  // or in the first half
  int without_id_of_hundred = 0;
  int oversized_of_hundred = 0;
  bool names_refused = false;
  Counting counting = Counting::kNothing;
  SnapshotPlace snapshots = SnapshotPlace::kNowhere;
  absl::Duration snapshots_every;
  std::vector<Fault> faults;  // by time
  Epilogue epilogue = Epilogue::kNone;

  // Else the processes are told the one topic by its name.
  bool is_list() const;
  // For people, a line for the shape and one for each fault.
  std::string Story() const;
};

Schedule MakeSchedule(uint64_t seed);

std::string FaultText(const Fault& fault);
// Whether it meets one instance, or what that has.
bool IsOfProcess(FaultKind kind);

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_SCHEDULE_H_
