// Creates the topics that are lethe's own, where they are missing.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_OWN_TOPICS_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_OWN_TOPICS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/brokers.h"
#include "src/pipeline/preflight/topic_facts.h"

namespace lethe {

// Each is created with the input's partitions and replicas; of several inputs, with the most of them. It
// never gets more partitions: where a record is must not change. NotFound: an input does not exist.

// The topics of totals.
absl::Status EnsureTotalsTopics(const DaemonOptions& options, Brokers& brokers);

// The number of partitions of the topic of snapshots.
absl::StatusOr<int32_t> EnsureSnapshotTopic(const DaemonOptions& options, Brokers& brokers);

// The topic between the two stages of `scope: topic`. `routers` is of their group. NotFound, too:
// LostWithTopic(). Unavailable: it was created a moment ago.
absl::Status EnsureRepartitionTopic(const DaemonOptions& options, Brokers& routers);

// Whether this user may create the missing topic; creates nothing.
absl::Status MayCreateRepartitionTopic(const DaemonOptions& options, Brokers& brokers,
                                       const TopicFacts& input);

// Logs LostInTopic(), unless other instances run: they may have begun to route a moment ago, and if the topic
// was deleted, they say so. Each asks for its group; what they cannot tell is not said.
void WarnOfLoss(const DaemonOptions& options, Brokers& routers, Brokers& deduplicators);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_OWN_TOPICS_H_
