// Checks whether lethe can run with these options, and keep its guarantees.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_CHECK_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_CHECK_H_

#include <vector>

#include "connectors/kafka/preflight/log_sample.h"
#include "connectors/kafka/topics/finding.h"
#include "src/pipeline/options/options.h"

namespace lethe::kafka {

// Asks the brokers, for half a minute at most, and reads the newest records of the input. Writes no record,
// joins no group and fences no producer; it tries transactions under an id of its own, GROUP/INSTANCE/check.
// With Scope::kTopic it checks both stages and the topic between them, or the right to create it.
std::vector<Finding> Check(const DaemonOptions& options);

// The findings about the sample.
struct TopicFacts;
std::vector<Finding> ApplyLogRules(const DaemonOptions& options, const TopicFacts& input,
                                   const LogSample& sample);
// Whether the output accepts the largest record of the sample, which the input may have compressed.
Finding ApplySizeRule(const TopicFacts& output, const LogSample& sample);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_CHECK_H_
