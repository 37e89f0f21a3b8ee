// The topics of counters with totals: they are made, and read when a partition is assigned.
#ifndef LETHE_CONNECTORS_KAFKA_COUNTERS_COUNTER_TOTALS_H_
#define LETHE_CONNECTORS_KAFKA_COUNTERS_COUNTER_TOTALS_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/task.h"

namespace lethe::kafka {

// Makes the topics of the totals that are missing: compacted, with as many partitions and replicas as the
// input. Waits for a broker that is away (Cancelled on stop).
absl::Status EnsureTotalsTopics(const DaemonOptions& options, const StopFlag& stop);

// Reads what the counters with totals have come to in these partitions, whose committed offsets were asked
// for before: up to the high watermark, since the commit may have reached the group's offsets and not yet the
// totals. A partition whose totals do not fit its committed offset fails, with the remedy as its problem.
// Unavailable: no broker answers; ask again. Cancelled: `go_on` has said so.
absl::Status RestoreTotals(const DaemonOptions& options, absl::Span<Task* const> partitions,
                           const std::function<bool()>& go_on);

// A consumer of totals that is to be assigned partitions, and commits nothing.
absl::StatusOr<ClientPtr> MakeTotalsReader(const DaemonOptions& options, const char* isolation,
                                           std::vector<Property> defaults = {});

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_COUNTERS_COUNTER_TOTALS_H_
