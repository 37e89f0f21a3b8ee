// A partition of an input topic.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_TOPIC_PARTITION_H_
#define LETHE_SRC_PIPELINE_OPTIONS_TOPIC_PARTITION_H_

#include <compare>
#include <cstdint>

namespace lethe {

// The topic is named by the number of its flow (src/pipeline/task/flow.h): it is part of each record.
struct TopicPartition {
  int32_t flow = 0;
  int32_t partition = -1;

  auto operator<=>(const TopicPartition&) const = default;  // NOLINT(modernize-use-nullptr): no pointer
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_TOPIC_PARTITION_H_
