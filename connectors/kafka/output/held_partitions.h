// Partitions of the input that have no partition of the same number in the output.
#ifndef LETHE_CONNECTORS_KAFKA_OUTPUT_HELD_PARTITIONS_H_
#define LETHE_CONNECTORS_KAFKA_OUTPUT_HELD_PARTITIONS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "connectors/kafka/group/source.h"
#include "connectors/kafka/output/output.h"

namespace lethe::kafka {

// Each is held, so that it stops no other, until the output has got its partition.
//
// Not thread-safe: it belongs to the worker's thread.
class HeldPartitions {
 public:
  // The topics that are written to are known to have so many partitions.
  HeldPartitions(int32_t output_partitions, Source& source, Output& output)
      : source_(source), output_(output), output_partitions_(output_partitions) {}

  // Whether the output has such a partition; if it has not, holds this one.
  bool HasOutput(OwnedPartition& owned);
  // Those that are held go on where the output has got their partitions.
  void Look(const OwnedPartitions& owned);
  // It is as any other again: what the client is told not to fetch, it would not fetch for a later owner.
  void Release(OwnedPartition& owned);
  // After a failed transaction nothing is known of the output.
  void Forget() { output_partitions_ = 0; }

 private:
  Source& source_;
  Output& output_;
  int32_t output_partitions_;
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OUTPUT_HELD_PARTITIONS_H_
