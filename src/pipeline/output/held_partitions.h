// Input partitions without a partition of the same number in the output.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_HELD_PARTITIONS_H_
#define LETHE_SRC_PIPELINE_OUTPUT_HELD_PARTITIONS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/source.h"

namespace lethe {

// Holds each of them until the output has its partition; others go on. Not thread-safe: it belongs to the
// worker's thread.
class HeldPartitions {
 public:
  HeldPartitions(int32_t output_partitions, Source& source, Sink& sink)
      : source_(source), sink_(sink), output_partitions_(output_partitions) {}

  // Whether the output has the partition; if not, holds the task.
  bool HasOutput(Task& task);
  // Releases tasks whose partitions the output has now.
  void Look(const Tasks& tasks);
  // Also resumes fetching: the client would not fetch a paused partition for a later owner, either.
  void Release(Task& task);
  // After a failed transaction: the output may have changed.
  void Forget() { output_partitions_ = 0; }

 private:
  Source& source_;
  Sink& sink_;
  int32_t output_partitions_;
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_HELD_PARTITIONS_H_
