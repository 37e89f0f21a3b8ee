// Checks whether lethe can run with these options, and keep its guarantees.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_CHECK_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_CHECK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "connectors/kafka/preflight/log_sample.h"
#include "connectors/kafka/topics/finding.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topic_list.h"

namespace lethe::kafka {

// Asks the brokers, for half a minute at most, and reads the newest records of the input. Writes no record,
// joins no group and fences no producer; it tries transactions under an id of its own, GROUP/INSTANCE/check.
// With Scope::kTopic it checks both stages and the topic between them, or the right to create it.
std::vector<Finding> Check(const DaemonOptions& options);

// How many of the topics are checked.
using ShowTopics = std::function<void(int64_t done, int64_t total)>;
// The same for each topic of a list that is in the cluster, one after the other; each finding names its
// topic. What concerns the process is checked once: brokers, permissions, memory.
std::vector<Finding> Check(const DaemonOptions& process, const TopicList& list, const ShowTopics& show);

// What topics need together of the memory of their process.
struct MemoryNeed {
  int64_t topics = 0;
  int64_t partitions = 0;
  int64_t least_bytes = 0;    // for the smallest filters
  double rate = 0;            // records a second
  int64_t planned_bytes = 0;  // for `rate`, where it can be planned

  void Add(const DaemonOptions& topic, int32_t its_partitions, double its_rate);
};
Finding ApplyMemoryRule(const MemoryNeed& need, int64_t limit_bytes);

// Of the sample's last hour, in records a second.
double RateOf(const LogSample& sample);
// The limit that `lethe plan` proposes for the rate; 0: the rate is too low to tell, or the engine has no
// plan.
absl::StatusOr<int64_t> PlannedMemory(const DaemonOptions& options, double rate);

// The findings about the sample.
struct TopicFacts;
std::vector<Finding> ApplyLogRules(const DaemonOptions& options, const TopicFacts& input,
                                   const LogSample& sample);
// Whether the output accepts the largest record of the sample, which the input may have compressed.
Finding ApplySizeRule(const TopicFacts& output, const LogSample& sample);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_CHECK_H_
