// Whether duplicates are found, and for how long, by the newest records.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_LOG_RULES_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_LOG_RULES_H_

#include <vector>

#include "absl/time/time.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/finding.h"
#include "src/pipeline/preflight/log_sample.h"
#include "src/pipeline/preflight/topic_facts.h"
#include "src/pipeline/task/cluster.h"

namespace lethe {

// The findings about the sample, which was taken `now`.
std::vector<Finding> ApplyLogRules(const DaemonOptions& options, const TopicFacts& input,
                                   const LogSample& sample, absl::Time now);

// What a restart would read of each partition with a commit, as `lethe run` plans it. Before ApplyLogRules():
// sets what the sample says of planned partitions.
std::vector<Finding> ApplyRestartRules(const DaemonOptions& options,
                                       const std::vector<CommittedOffset>& committed, absl::Time now,
                                       LogSample& sample);

// Whether the output accepts the largest record of the sample, which the input may have compressed.
Finding ApplySizeRule(const ProcessOptions& process, const TopicFacts& output, const LogSample& sample);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_LOG_RULES_H_
