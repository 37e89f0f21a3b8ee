// Whether the group's commits fit the options.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_GROUP_RULES_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_GROUP_RULES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/finding.h"
#include "src/pipeline/preflight/log_sample.h"
#include "src/pipeline/task/cluster.h"

namespace lethe {

// What the group has committed of the input, by partition.
Finding ApplyCommitRules(const DaemonOptions& options, const std::string& id_fingerprint,
                         const std::vector<CommittedOffset>& committed);

// Where the group would start in the log of its input: what is lost or passes, and what stops a partition, as
// `lethe run` finds it. Before ApplyLogRules(): sets which partitions stop.
std::vector<Finding> ApplyOffsetRules(const DaemonOptions& options,
                                      const std::vector<CommittedOffset>& committed, LogSample& sample);

// If the group begins at the start of its input, and the output has records: an error. A warning if it is not
// certain, since this user may not read them.
Finding WrittenBefore(const DaemonOptions& options, bool is_certain);

// What it has committed could not be asked.
Finding WithoutCommits(const std::string& group, const absl::Status& asked);

// Because of a problem whose message ends with the remedy.
Finding CannotGoOn(const DaemonOptions& options, const absl::Status& problem);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_GROUP_RULES_H_
