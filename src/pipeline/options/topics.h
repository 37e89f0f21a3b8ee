// What is known of the topics before the first record.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_TOPICS_H_
#define LETHE_SRC_PIPELINE_OPTIONS_TOPICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/pipeline/options/record_rules.h"

namespace lethe {

struct Topics {
  int32_t partitions = 0;         // of the input
  int32_t output_partitions = 0;  // of the output
  int32_t least_partitions = 0;   // that TopicsOfSamePartition() have; 0: not known
  int64_t input_max_bytes = 0;    // of a batch in it (max.message.bytes)
  // What each topic that is written to takes in one batch (max.message.bytes, segment.bytes); 0: it is not
  // written to.
  int64_t output_max_bytes = 0;
  std::vector<int64_t> counter_max_bytes;  // in the order of the options
  int64_t divert_max_bytes = 0;
  // Of the input, per partition: the last stable offsets; the high watermarks of one that lethe itself has
  // written to, since the answer to a commit comes before its records are stable.
  std::vector<int64_t> end_offsets;
  RecordRules output_rules;
  std::vector<std::string> warnings;

  // A batch that every one of them takes.
  int64_t max_batch_bytes() const;
  // As large as a record may be that comes uncompressed from the input.
  int64_t max_record_bytes() const;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_TOPICS_H_
