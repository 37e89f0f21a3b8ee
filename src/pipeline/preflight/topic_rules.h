// Whether topics fit each other and the options, by their descriptions.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_TOPIC_RULES_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_TOPIC_RULES_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/preflight/finding.h"
#include "src/pipeline/preflight/topic_facts.h"

namespace lethe {

// The check for topics with too few partitions.
inline constexpr char kPartitionsCheck[] = "partitions";

// Findings without reading a record. lethe must not run with an error, unless IsForBeginners().
std::vector<Finding> ApplyTopicRules(const DaemonOptions& options, const AllTopics& topics);

// Whether the error counts only before the group has begun: if the input grows under a running group, records
// without a partition are held.
inline bool IsForBeginners(const Finding& finding) {
  return finding.severity == Finding::Severity::kError && finding.check == kPartitionsCheck;
}

// What is said at the start of these findings: the warnings. FailedPrecondition: lethe must not start.
// `has_begun` is asked if it matters whether the group has committed offsets.
absl::StatusOr<std::vector<std::string>> WarningsAtStart(const std::vector<Finding>& findings,
                                                         absl::FunctionRef<absl::StatusOr<bool>()> has_begun);

// What lanes need of the topics, without `least_partitions`, `end_offsets` and `warnings`.
Topics TopicsOf(const AllTopics& described);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_TOPIC_RULES_H_
