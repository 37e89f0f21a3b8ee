// Where an assigned partition starts, and with which filter.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_ASSIGNER_H_
#define LETHE_SRC_PIPELINE_ASSIGN_ASSIGNER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lethe/stage.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topic_partition.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/task.h"

namespace lethe {

// Why the group has committed nothing of a partition. All records count, whatever --start says, of one that
// was added after the group began to read the topic, or whose topic was recreated.
enum class Uncommitted { kNew, kAdded, kRecreated };

// Tells why the group has committed nothing of some partitions of a topic by what it has committed of the
// others: their metadata is parsed once, since a topic may have thousands.
class UncommittedReason {
 public:
  // `begun`: the lane has seen committed offsets of the topic.
  UncommittedReason(const std::vector<CommittedOffset>& committed, bool begun);
  Uncommitted Of(int32_t partition) const;

 private:
  int32_t first_added_ = INT32_MAX;  // the topic had only lower partitions when the group began to read it
  bool is_recreated_ = false;
};

// The metadata of a committed offset. NotFound: it has none, and starts over. FailedPrecondition: it is
// damaged, or of another format or id configuration; the message says where, and what to do.
absl::StatusOr<CommitMetadata> ReadCommitMetadata(const DaemonOptions& options,
                                                  const std::string& id_fingerprint, int32_t partition,
                                                  const CommittedOffset& committed);

// FailedPrecondition: the group has judged the input with the other scope. Unavailable: ask again. `ask` is
// for what the group has committed of a topic; `partitions` are the input's.
using AskCommittedOf =
    std::function<absl::StatusOr<std::vector<CommittedOffset>>(const std::string& topic, int32_t partitions)>;
absl::Status CheckScope(const DaemonOptions& options, int32_t partitions, const AskCommittedOf& ask);

// Why a partition stops whose input was deleted and created again by the same name. `committed`: the next
// offset by the group.
std::string RecreatedUnread(const DaemonOptions& options, int32_t partition, int64_t committed);

// Fails the partition, which is then not read any more, and logs why.
void FailPartition(Task& task, std::string problem);

// Decides, for one partition of a flow at a time, where reading starts and which filter it has.
class Assigner {
 public:
  // Asked several times a second while a snapshot is loaded; false cancels that.
  using GoOnLoading = std::function<bool(TopicPartition partition)>;

  Assigner(const Flow& flow, KeptPartitions& kept, GoOnLoading go_on);

  // Whether Prepare() needs the times of the log.
  bool NeedsLogTimes(const CommittedOffset& committed, const LogState& log) const;

  // The partition, ready to be read from its `next`; kFailed if it must not be read. FailedPrecondition: the
  // group's commits do not fit, and the program must stop (see ReadCommitMetadata). Cancelled: loading its
  // snapshot was cancelled.
  absl::StatusOr<std::unique_ptr<Task>> Prepare(int32_t partition, const CommittedOffset& committed,
                                                const LogState& log, Uncommitted uncommitted,
                                                absl::Time wall_now);

  // Whether the log names each partition whose snapshot is loaded.
  void SetNamed(bool are_named) { are_named_ = are_named; }
  // Never lowers the number.
  void SetPartitions(int32_t partitions) { partitions_ = std::max(partitions_, partitions); }
  int32_t partitions() const { return partitions_; }
  // It had partitions whose committed offsets were valid.
  bool has_begun() const { return has_begun_; }
  void SetBegun() { has_begun_ = true; }
  // The input's, of the partitions that are prepared from now on; empty: not known.
  void SetTopicId(std::string id) { topic_id_ = std::move(id); }
  // Whether there is memory for the filters of so many more partitions; drops kept filters for it, as
  // GiveUpForMemory() does.
  bool MakeRoomForFilters(int64_t partitions, absl::Time now);
  // Whether the input has grown since the task last noted it, and that matters: with Scope::kTopic copies
  // meet in a topic that does not grow.
  bool HasGrownFor(const Task& task) const;
  // Notes that it has grown; the log of the partition ends at `end`.
  void NoteGrowth(Task& task, int64_t end);

  // Whether the committed offset lacks the partition's metadata: it must be committed with it before the
  // first verdict.
  static bool NeedsFirstCommit(const Task& task, const CommittedOffset& committed);

  // Called now and then: if a filter was refused memory, drops kept filters of partitions that left long
  // enough ago, oldest first.
  void GiveUpForMemory(absl::Time now);

  // The snapshot is of another log, and must not be used again.
  void Refuse(SnapshotId snapshot) { refused_.insert(snapshot.ToString()); }

 private:
  // Warns that keys may have moved, once for each number of partitions.
  void WarnOfGrowth(const Task& task);
  // Prepare() without the growth of the topic.
  absl::StatusOr<std::unique_ptr<Task>> PrepareFilter(int32_t partition, const CommittedOffset& committed,
                                                      const LogState& log, Uncommitted uncommitted,
                                                      absl::Time wall_now);
  // Loads a snapshot of the partition. Cancelled: loading was cancelled. Other errors: it cannot be used.
  absl::StatusOr<RestoredPartition> LoadSnapshot(const Task& task, SnapshotId id, const LogState& log);
  // Loads the filter of the snapshot that the commit names. False: it cannot be used (logged), and the task
  // is unchanged. Cancelled: loading was cancelled.
  absl::StatusOr<bool> FromSnapshot(Task& task, const CommitMetadata& metadata, const LogState& log);
  // The group has committed an offset without lethe's metadata: begins a new life there, with the ids that
  // the kept filter or a snapshot knows. Cancelled: loading the snapshot was cancelled.
  absl::StatusOr<std::unique_ptr<Task>> StartOver(std::unique_ptr<Task> task, std::unique_ptr<Task> kept,
                                                  const CommittedOffset& committed, const LogState& log,
                                                  absl::Time wall_now);
  // Loads the filter of the youngest snapshot that was taken before the committed offset. False: there is
  // none that can be used, and the task is unchanged.
  absl::StatusOr<bool> FromYoungestSnapshot(Task& task, const LogState& log);
  // Starts with an empty filter, to be rebuilt from the log.
  void Rebuild(Task& task, const CommitMetadata& metadata, const RestorePlan& plan);
  // Logs that the filter will lack ids of the horizon, because of `missing`, and the remedy. False: the
  // policy is to fail the partition.
  bool AcceptShortHistory(Task& task, const std::string& missing, const std::string& remedy) const;
  void StartEmpty(Task& task, int64_t origin);
  void OpenFilter(Task& task, RestartPoint start);
  // Drops one filter that is kept since then, or longer. False if there is none.
  bool GiveUpKept(absl::Time since = absl::InfiniteFuture());

  const Flow& flow_;
  const DaemonOptions& options_;
  int32_t partitions_;
  int32_t warned_of_partitions_ = 0;  // the number at the last warning that keys may have moved
  DedupStage& stage_;
  KeptPartitions& kept_;
  const GoOnLoading go_on_;
  bool has_begun_ = false;
  bool are_named_ = true;
  std::set<std::string> refused_;
  std::string topic_id_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_ASSIGNER_H_
