// What a lane does with partitions that it was assigned: where each starts, and with which filter.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_ASSIGNMENT_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_ASSIGNMENT_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "connectors/kafka/group/group_state.h"
#include "lethe/stage.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/restore/restore_plan.h"
#include "src/pipeline/task/task.h"

namespace lethe::kafka {

// Why the group may have committed nothing of a partition. Of one that was added after the group began to
// read the topic, or whose topic was recreated and took the commits with it, all records count, whatever
// --start says.
enum class Uncommitted { kNew, kAdded, kRecreated };

// The metadata of an offset that is committed for a partition of the input. NotFound: it has none, and is a
// new beginning. FailedPrecondition: it is of another format or id configuration, or damaged, and the program
// must not go on; the message says where, and what to do.
absl::StatusOr<CommitMetadata> ReadCommitMetadata(const DaemonOptions& options,
                                                  const std::string& id_fingerprint, int32_t partition,
                                                  const CommittedOffset& committed);

// FailedPrecondition, with the remedy, if the group has judged the input with the other scope; Unavailable:
// ask again. The client is of the group; `partitions` are those of the input.
absl::Status CheckScope(const DaemonOptions& options, rd_kafka_t* client, int32_t partitions);

// Decides, for one partition at a time, where reading starts and which filter it has.
class Assigner {
 public:
  // Asked again and again while the snapshot of a partition is loaded: false gives that up.
  using GoOnLoading = std::function<bool(int32_t partition)>;

  // `partitions` are those of the input; `snapshots` is null where none are taken.
  Assigner(const DaemonOptions& options, int32_t partitions, std::string id_fingerprint, DedupStage& stage,
           KeptPartitions& kept, Snapshots* snapshots, GoOnLoading go_on);

  // Whether Prepare is to be told the times of the log.
  bool NeedsLogTimes(const CommittedOffset& committed, const LogState& log) const;

  // The partition, ready to be read from its `next`. A partition that must not be read comes back as kFailed
  // with its problem. FailedPrecondition: the group's commits are of another format or id configuration, and
  // the program must not go on. Cancelled: loading its snapshot was given up.
  absl::StatusOr<std::unique_ptr<Task>> Prepare(int32_t partition, const CommittedOffset& committed,
                                                const LogState& log, Uncommitted uncommitted);

  // The topic has so many partitions, or more: they do not become fewer.
  void SetPartitions(int32_t partitions) { partitions_ = std::max(partitions_, partitions); }
  // Whether it had fewer when the partition last heard of it, and that matters: with Scope::kTopic it does
  // not, since copies meet in a topic that does not grow.
  bool HasGrownFor(const Task& task) const;
  // That is so, and the log of the partition ends at `end`.
  void NoteGrowth(Task& task, int64_t end);

  // Of a partition for which nothing is committed. `begun`: the lane has seen the topic's commits stand.
  static Uncommitted WhyUncommitted(int32_t partition, const std::vector<CommittedOffset>& committed,
                                    bool begun);

  // Whether what the group has committed does not carry the partition's present metadata yet: the offset must
  // be committed with it before the first verdict.
  static bool NeedsFirstCommit(const Task& task, const CommittedOffset& committed);

  // Between records, now and then: where a filter of the process has been refused memory, what is kept of
  // partitions that went long enough ago is given up for it, those that went first first.
  void GiveUpForMemory(absl::Time now);

  // The log is not the one that the snapshot is of: it is not to be used again.
  void Refuse(SnapshotId snapshot) { refused_.insert(snapshot.ToString()); }

 private:
  // Once for each number of partitions, if keys may have moved.
  void WarnOfGrowth(const Task& task);
  // As Prepare, but that nothing is known of the topic's growth.
  absl::StatusOr<std::unique_ptr<Task>> PrepareFilter(int32_t partition, const CommittedOffset& committed,
                                                      const LogState& log, Uncommitted uncommitted);
  // Gives the partition the filter of the snapshot that the commit names. False, with a line in the log that
  // says why, if there is none that is of use; the partition is as it was then. Cancelled: it was given up.
  absl::StatusOr<bool> FromSnapshot(Task& task, const CommitMetadata& metadata, const LogState& log);
  absl::Status CheckSnapshot(const SnapshotPoint& point, SnapshotId id, const CommitMetadata& metadata,
                             const LogState& log) const;
  // Gives it an empty filter that is to be rebuilt from the log.
  void Rebuild(Task& task, const CommitMetadata& metadata, const RestorePlan& plan);
  // The filter will not know all ids of the horizon, because of what is `missing`: says so, and what to do
  // about it. False: by policy the partition is not to be read.
  bool AcceptShortHistory(Task& task, const std::string& missing, const std::string& remedy) const;
  void StartEmpty(Task& task, int64_t origin);
  bool OpenFilter(Task& task, RestartPoint start);
  // One filter that is kept since then, or longer, and says so. False if there is none.
  bool GiveUpKept(absl::Time since = absl::InfiniteFuture());

  const DaemonOptions& options_;
  int32_t partitions_;
  int32_t warned_of_partitions_ = 0;  // as many as they were when it was last said that keys may have moved
  DedupStage& stage_;
  KeptPartitions& kept_;
  Snapshots* const snapshots_;
  const GoOnLoading go_on_;
  const std::string id_fingerprint_;
  std::set<std::string> refused_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_ASSIGNMENT_H_
