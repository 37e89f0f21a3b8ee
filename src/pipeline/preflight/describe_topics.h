// What the cluster says of the topics that the options name.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_DESCRIBE_TOPICS_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_DESCRIBE_TOPICS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/brokers.h"
#include "src/pipeline/preflight/topic_facts.h"

namespace lethe {

// Errors name the topic's role and the remedy.

// Of several inputs, the most that any of those that exist has or takes. NotFound: none exists.
absl::StatusOr<TopicFacts> DescribeInputs(const DaemonOptions& options, const std::vector<std::string>& names,
                                          Brokers& brokers);
// NotFound: one is missing that lethe does not create.
absl::StatusOr<AllTopics> DescribeTopics(const DaemonOptions& options, Brokers& brokers);
// NotFound: the list of all topics that this user may describe, with their partitions, lacks one that lethe
// does not create. It asks nothing, and so cannot tell whether the topic is missing, or hidden.
absl::Status CheckListed(const DaemonOptions& options, const std::map<std::string, int32_t>& listed);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_DESCRIBE_TOPICS_H_
