// The topic between the two stages of `scope: topic`: its settings, and whether it may be created.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_REPARTITION_RULES_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_REPARTITION_RULES_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/finding.h"
#include "src/pipeline/preflight/topic_facts.h"
#include "src/pipeline/task/cluster.h"

namespace lethe {

// An error if the repartition topic is missing and the routers' group has routed records: those that were not
// judged are lost, and so are known ids. nullopt: nothing is lost if the topic is created, as after a reset
// of that group.
std::optional<Finding> LostWithTopic(const DaemonOptions& options,
                                     const std::vector<CommittedOffset>& committed);

// A warning if the topic is there, the routers' group has routed records, and the deduplicators' group has no
// committed offset of some of its partitions: committed offsets are deleted with a topic. The first
// deduplicators commit where they start within moments.
std::optional<Finding> LostInTopic(const DaemonOptions& options, const std::vector<CommittedOffset>& routed,
                                   const std::vector<CommittedOffset>& judged);

// The topic accepts every record of the input: its timestamps have no bounds, since a record may be routed
// long after it was sent.
TopicConfig RepartitionConfig(const TopicFacts& input);

// Of a missing topic: whether this user may create it.
Finding CreationFinding(const DaemonOptions& options, const TopicFacts& input, const absl::Status& may);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_REPARTITION_RULES_H_
