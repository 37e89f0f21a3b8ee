// Ids that are unique in the whole topic (`scope: topic`), or in several: routers copy each input, exactly
// once, to a topic of lethe's own, by the hash of the id, so that all copies of an id are in one partition.
// Deduplicators judge that topic.
//
// Routers are lanes with a Router in the judge's place, with the same transactions, rebalances and refusals.
// A routed record keeps its key, value, timestamp and headers, and gets two more headers, which the
// deduplicator removes: its partition and offset in the input. Of merged inputs it gets a third one, with the
// input's name.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_STAGE_OPTIONS_H_
#define LETHE_SRC_PIPELINE_OPTIONS_STAGE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"

namespace lethe {

// GROUP-INPUT-repartition; of merged inputs, whose list may change, GROUP-OUTPUT-repartition.
std::string RepartitionTopic(const DaemonOptions& options);

// GROUP-repartition: the routers' own.
std::string RoutingGroup(const DaemonOptions& options);
// The options of the routers of one of the inputs, and of the deduplicators.
DaemonOptions RoutingOptions(const DaemonOptions& options, const std::string& input);
DaemonOptions JudgingOptions(const DaemonOptions& options);
// How far a source partition may be ahead of the slowest one, for this horizon.
absl::Duration LeadOf(absl::Duration horizon);
// The policies that apply to routers.
Policies RoutingPolicies(const Policies& policies);

// Why a commit by another id than the options' does not fit, and what to do.
std::string OtherId(const DaemonOptions& options);
// The topics of which the group has committed offsets if it has judged this input with another scope, or with
// inputs merged or not.
std::vector<std::string> TopicsOfOtherScope(const DaemonOptions& options);
// What to do when the repartition topic of deduplicators, or of a router, was deleted: their options.
std::string LostRepartitionTopic(const DaemonOptions& half);
// By which a commit names the totals of a counter: of its name, and of their topic.
uint64_t TotalsFingerprint(const CounterOptions& counter);
// The horizon that the user has set.
absl::Duration StatedHorizon(const DaemonOptions& options);

// All topics that are written, also the one between the two stages where the options are of both.
std::vector<std::string> WrittenTopics(const DaemonOptions& options);

// Before the advice to reset a group.
inline constexpr char kCostOfReset[] =
    "After a reset lethe does not know the events before the new offset: copies of them pass until the "
    "horizon has gone by. ";

// To read the input from its start once more, without writing its records to the output again: flags.
std::string StartOver(const DaemonOptions& options);

// The topics whose records keep the partition of the input, here or in the next stage. A record whose
// partition they lack must wait.
std::vector<std::string> TopicsOfSamePartition(const DaemonOptions& options);
// The one of these that has the fewest partitions, by `count`. Its error if it has one for any written topic:
// NotFound for one that does not exist.
absl::StatusOr<SmallestTopic> LeastPartitions(
    const DaemonOptions& options, absl::FunctionRef<absl::StatusOr<int32_t>(const std::string& topic)> count);

// The memory limit that so many partitions of the input need on one instance, rounded up to KiB.
int64_t LeastMemory(const DaemonOptions& options, int32_t partitions);
// It, beside the one that the user has set.
std::string LeastMemoryText(const DaemonOptions& options, int32_t partitions);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_STAGE_OPTIONS_H_
