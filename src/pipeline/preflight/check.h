// Checks whether lethe can run with these options, and keep its guarantees.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_CHECK_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_CHECK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "src/pipeline/clock/clock.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topic_list.h"
#include "src/pipeline/preflight/finding.h"
#include "src/pipeline/preflight/probes.h"

namespace lethe {

// What becomes of topics that lethe writes, that do not exist, and that it would not create at the start.
enum class Missing {
  kReport,
  kCreate,  // with the partitions and the settings of the input
};

// Asks the brokers, for half a minute at most, and reads the newest records of the input. Writes no record,
// joins no group and fences no producer; it tries transactions under an id of its own, GROUP/INSTANCE/check.
// With Scope::kTopic it checks both stages and the topic between them, or the right to create it.
std::vector<Finding> Check(const DaemonOptions& options, Probes& probes, const Clock& clock,
                           Missing missing = Missing::kReport);

// How many of the topics are checked.
using ShowTopics = std::function<void(int64_t done, int64_t total)>;
// The same for each topic of a list that is in the cluster, one after the other; each finding names its
// topic. What concerns the process is checked once: brokers, permissions, memory.
std::vector<Finding> Check(const DaemonOptions& process, const TopicList& list, Probes& probes,
                           const Clock& clock, const ShowTopics& show, Missing missing = Missing::kReport);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_CHECK_H_
