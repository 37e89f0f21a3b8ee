// What a worker asks of the cluster, beside the stream of its source.
#ifndef LETHE_SRC_PIPELINE_TASK_CLUSTER_H_
#define LETHE_SRC_PIPELINE_TASK_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
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

// Answers questions about the group and about topics; decides nothing. Each call takes a few seconds at most,
// but ReadTotals. Unavailable: ask again. Not thread-safe: it belongs to the worker's thread.
class Cluster {
 public:
  virtual ~Cluster() = default;

  // By partition, for 0 .. partitions - 1 of any topic. An offset that a transaction is about to commit is
  // waited for.
  virtual absl::StatusOr<std::vector<CommittedOffset>> Committed(const std::string& topic,
                                                                 int32_t partitions) = 0;
  // NotFound: the partition is not known here yet.
  virtual absl::StatusOr<LogState> Log(const std::string& topic, int32_t partition) = 0;
  // The timestamp of the first record at or behind the offset. InfiniteFuture(): there is none;
  // InfinitePast(): it has none.
  virtual absl::StatusOr<absl::Time> TimeAt(const std::string& topic, int32_t partition, int64_t offset) = 0;
  // NotFound: the topic does not exist.
  virtual absl::StatusOr<int32_t> CountPartitions(const std::string& topic) = 0;
  // KIP-516; empty: not known.
  virtual std::string TopicId(const std::string& topic) = 0;
  // Reads these partitions of a topic of totals up to their high watermarks, since a commit may be in the
  // group's offsets and not yet there (rule 17). Cancelled: `go_on` returned false.
  virtual absl::Status ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                                  const std::function<void(const InputRecord&)>& see, const GoOn& go_on) = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_CLUSTER_H_
