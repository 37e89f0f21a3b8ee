// Partitions of the input that have no partition of the same number in the output.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_HELD_PARTITIONS_H_
#define LETHE_SRC_PIPELINE_OUTPUT_HELD_PARTITIONS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/source.h"

namespace lethe {

// Each is held, so that it stops no other, until the output has got its partition.
//
// Not thread-safe: it belongs to the worker's thread.
class HeldPartitions {
 public:
  // The topics that are written to are known to have so many partitions.
  HeldPartitions(int32_t output_partitions, Source& source, Sink& sink)
      : source_(source), sink_(sink), output_partitions_(output_partitions) {}

  // Whether the output has such a partition; if it has not, holds this one.
  bool HasOutput(Task& task);
  // Those that are held go on where the output has got their partitions.
  void Look(const Tasks& tasks);
  // It is as any other again: what the client is told not to fetch, it would not fetch for a later owner.
  void Release(Task& task);
  // After a failed transaction nothing is known of the output.
  void Forget() { output_partitions_ = 0; }

 private:
  Source& source_;
  Sink& sink_;
  int32_t output_partitions_;
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_HELD_PARTITIONS_H_
