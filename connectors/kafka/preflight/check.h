// Looks whether lethe can run with these options, and whether it would keep what is promised.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_CHECK_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_CHECK_H_

#include <vector>

#include "connectors/kafka/preflight/log_sample.h"
#include "connectors/kafka/topics/finding.h"
#include "src/pipeline/options/options.h"

namespace lethe::kafka {

// Asks the brokers, for half a minute at most, and reads the newest records of the input. It writes no
// record, joins no group and fences nobody; what it tries of transactions it does under a transactional id
// of its own, GROUP/INSTANCE/check. With Scope::kTopic it looks at both stages: both groups, and the topic
// between them or the right to make it.
std::vector<Finding> Check(const DaemonOptions& options);

// The part that looks at what was read.
struct TopicFacts;
std::vector<Finding> ApplyLogRules(const DaemonOptions& options, const TopicFacts& input,
                                   const LogSample& sample);
// Whether the output takes the largest record of the input's sample, which the input may have taken
// compressed.
Finding ApplySizeRule(const TopicFacts& output, const LogSample& sample);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_CHECK_H_
