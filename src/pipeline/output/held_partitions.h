// Input partitions that cannot go on yet: the output has no partition of their number, or a schema is
// missing.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_HELD_PARTITIONS_H_
#define LETHE_SRC_PIPELINE_OUTPUT_HELD_PARTITIONS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "src/pipeline/output/lane_flow.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/workplace.h"

namespace lethe {

// Holds each of them until it can go on; others go on. Not thread-safe: it belongs to the worker's thread.
class HeldPartitions {
 public:
  HeldPartitions(const Workplace& place, LaneFlows& flows)
      : tasks_(place.tasks),
        flows_(flows),
        source_(place.source),
        sink_(place.sink),
        clock_(place.state.clock),
        schemas_(place.options().record.schemas) {}

  // Whether the output has the partition; if not, holds the task.
  bool HasOutput(Task& task);
  // Holds the task for some seconds: the output of its flow fails, and would keep others from committing.
  void AwaitOutput(Task& task, const std::string& why);
  // Holds the task before its record at `next`, which needs the schema. `records` are that one and what the
  // batch has behind it.
  void AwaitSchema(Task& task, const SchemaNeed& need, RecordRun records);
  // Of a task that waits for a schema: more records, or the end of its log.
  void Keep(const Task& task, RecordRun records);
  // Releases tasks whose partitions the output has now, and those whose schema is known now, or known to be
  // unknown.
  void Look(const Tasks& tasks);
  // Whether a task has just begun to wait for a schema: an answer takes some milliseconds.
  bool ExpectsSchema() const;
  // Also resumes fetching: the client would not fetch a paused partition for a later owner, either.
  void Release(Task& task);
  // After a failed transaction of the task: the output may have changed.
  void Forget(const Task& task) { flows_.Of(task).output_partitions = 0; }

 private:
  void Hold(Task& task, const std::string& why);
  void LookForSchemas(const Tasks& tasks);
  std::string WhyItLacks(const Task& task, const absl::StatusOr<SmallestTopic>& count) const;
  // As the sink does. Where a topic is missing, it is made again without the totals that it had.
  absl::StatusOr<SmallestTopic> CountPartitions(int32_t flow);

  Tasks& tasks_;
  LaneFlows& flows_;
  Source& source_;
  Sink& sink_;
  const Clock& clock_;
  SchemaSource* const schemas_;       // may be null
  std::set<TopicPartition> keeping_;  // whose records the source keeps while they wait for a schema
  int64_t answers_ = 0;               // of the schemas, at the last look
  absl::Time schema_soon_ = absl::InfinitePast();
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_HELD_PARTITIONS_H_
