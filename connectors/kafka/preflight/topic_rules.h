// Whether topics fit each other and what is asked of lethe, as far as their descriptions tell.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_TOPIC_RULES_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_TOPIC_RULES_H_

#include <vector>

#include "connectors/kafka/topics/finding.h"
#include "connectors/kafka/topics/topic_facts.h"
#include "src/pipeline/options/options.h"

namespace lethe::kafka {

// The check that finds an error where a topic has fewer partitions than are to be written.
inline constexpr char kPartitionsCheck[] = "partitions";

// All that can be said without reading a record. An error is something that lethe must not run with, unless
// IsForBeginners().
std::vector<Finding> ApplyTopicRules(const DaemonOptions& options, const AllTopics& topics);

// Whether what was found is an error only where the group has not begun: where the input has grown under a
// group at work, what has nowhere to go is held, and no more.
inline bool IsForBeginners(const Finding& finding) {
  return finding.severity == Finding::Severity::kError && finding.check == kPartitionsCheck;
}

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_TOPIC_RULES_H_
