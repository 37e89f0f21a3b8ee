// Asks about the topics before the first record.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_INSPECT_TOPICS_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_INSPECT_TOPICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topic_list.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/preflight/brokers.h"
#include "src/pipeline/preflight/finding.h"
#include "src/pipeline/task/cluster.h"

namespace lethe {

// Asks again while the brokers are away, or while a topic is missing that may have been created a moment ago
// (Cancelled on stop). PermissionDenied: the brokers refuse this user.
absl::Status AwaitTopics(const DaemonOptions& options, Brokers& brokers, const StopFlag& stop,
                         const Clock& clock, absl::FunctionRef<absl::Status()> ask);

// Of the input and of what is written. NotFound: a topic is missing. FailedPrecondition: the topics do not
// fit. PermissionDenied: the brokers refuse this user the description of a topic. Unavailable: ask again.
absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, Brokers& brokers, absl::Time now);

// WrittenBefore(), of options of both stages. `routers` is of the routers' group; null if there are none.
// nullopt: the group has begun, or starts at the end, or the output is empty, or the user accepts it.
// Unavailable: ask again. `judging` reads committed records.
absl::StatusOr<std::optional<Finding>> FindWrittenBefore(const DaemonOptions& options, Brokers& judging,
                                                         Brokers* routers);
// Before anything is created. FailedPrecondition: FindWrittenBefore() is an error. Logs a warning.
absl::Status RefuseWritten(const DaemonOptions& options, Brokers& judging, Brokers* routers);
// Whether `asked`, the answer about a group's offsets, has been Unavailable for ten seconds although brokers
// answer: so it is where this user may not read the group, which joining it tells. Logs that the output was
// not looked at. `give_up` keeps the time.
bool MayGoOn(const absl::Status& asked, const Clock& clock, absl::Time& give_up);

// By what the group has committed of these topics, which are all that there are, with their partitions. Both
// outlive it.
TopicList::HasCommits HasCommitsBy(Brokers& brokers, const std::map<std::string, int32_t>& listed);
// The topics of the list that are there now. Unavailable: no broker answers. FailedPrecondition: there is
// none that this user sees.
absl::StatusOr<TopicList::Inputs> FindInputs(Brokers& brokers, const TopicList& list);
// Of a list of patterns alone, where the brokers name no topic.
absl::Status SeesNoTopic();

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_INSPECT_TOPICS_H_
