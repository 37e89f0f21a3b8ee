// Whether the topics that lethe writes keep the records that it will read.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_RETENTION_RULES_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_RETENTION_RULES_H_

#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/brokers.h"
#include "src/pipeline/preflight/finding.h"
#include "src/pipeline/preflight/topic_facts.h"

namespace lethe {

// A topic that gets the records with their own timestamps.
struct KeptIn {
  const char* role;
  const TopicFacts* topic;
};

// A warning for each of the topics whose retention is shorter than the age of the oldest record that is to be
// read of `input`, by what the group of `brokers` has committed of it: Kafka deletes such records soon after
// lethe has written them. Asks the brokers for offsets only, unless there are such records. Empty, too, if
// the brokers do not tell.
std::vector<Finding> FindExpiring(const DaemonOptions& options, const TopicFacts& input,
                                  absl::Span<const KeptIn> topics, Brokers& brokers, absl::Time now);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_RETENTION_RULES_H_
