// What a worker asks of the cluster, beside the stream of its source.
#ifndef LETHE_SRC_PIPELINE_TASK_CLUSTER_H_
#define LETHE_SRC_PIPELINE_TASK_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/pipeline/restore/restore_plan.h"
#include "src/pipeline/snapshots/snapshots.h"
#include "src/pipeline/task/input_record.h"

namespace lethe {

// The committed offset of a partition.
struct CommittedOffset {
  int64_t offset = -1;  // -1: none
  std::string metadata = {};
};

// Whether the group has committed anything of the topic.
bool HasBegun(const std::vector<CommittedOffset>& committed);

// The log of one partition, as an assignment needs it.
struct LogState {
  int64_t start = 0;                   // the first offset that is there
  int64_t end = 0;                     // the last stable offset
  std::optional<LogTimes> times = {};  // where Assigner::NeedsLogTimes() asks for them
};

// The offset of a record, or a place in the log between records.
struct LogPlace {
  std::string topic;
  int32_t partition = 0;
  int64_t offset = 0;
};

// An answer for each topic, since one topic's trouble must not hide what is known of the others.
template <class T>
using ByTopic = std::map<std::string, absl::StatusOr<T>>;

// Answers questions about the group and about topics; decides nothing. Each call takes a few seconds at most,
// but ReadTotals, and asks of all topics at once: a process may have hundreds. Unavailable: ask again. Not
// thread-safe: it belongs to the worker's thread.
class Cluster {
 public:
  using CommittedOffsets = std::vector<CommittedOffset>;
  using Logs = std::map<int32_t, LogState>;  // by partition

  virtual ~Cluster() = default;

  // By partition, for 0 .. partitions - 1 of any topics. An offset that a transaction is about to commit is
  // waited for.
  virtual ByTopic<CommittedOffsets> AskCommitted(const std::map<std::string, int32_t>& partitions) = 0;
  // NotFound: a partition is not known here yet.
  virtual ByTopic<Logs> AskLogs(const std::map<std::string, std::vector<int32_t>>& partitions) = 0;
  // The timestamp of the first record at or behind each place. InfiniteFuture(): there is none;
  // InfinitePast(): it has none, or there was no answer in time.
  virtual absl::StatusOr<std::vector<absl::Time>> AskTimes(const std::vector<LogPlace>& places) = 0;
  // NotFound: the topic does not exist.
  virtual ByTopic<int32_t> CountPartitions(const std::vector<std::string>& topics) = 0;
  // KIP-516; without those that are not known.
  virtual std::map<std::string, std::string> TopicIds(const std::vector<std::string>& topics) = 0;
  // Reads these partitions of a topic of totals up to their high watermarks, since a commit may be in the
  // group's offsets and not yet there (rule 17). Cancelled: `go_on` returned false.
  virtual absl::Status ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                                  const std::function<void(const InputRecord&)>& see, const GoOn& go_on) = 0;

  // Of one topic.
  absl::StatusOr<CommittedOffsets> Committed(const std::string& topic, int32_t partitions) {
    return std::move(AskCommitted({{topic, partitions}}).at(topic));
  }
  absl::StatusOr<LogState> Log(const std::string& topic, int32_t partition) {
    auto logs = std::move(AskLogs({{topic, {partition}}}).at(topic));
    if (!logs.ok()) return logs.status();
    return logs->at(partition);
  }
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_CLUSTER_H_
