// The topics of counters with totals: creates them, and reads them when a partition is assigned.
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

// Creates missing topics of totals: compacted, with the input's partitions and replicas. Waits for a broker
// that is away (Cancelled on stop).
absl::Status EnsureTotalsTopics(const DaemonOptions& options, const StopFlag& stop);

// Reads the totals of these partitions, after their committed offsets: up to the high watermark, since a
// commit may be in the group's offsets and not yet in the totals. A partition whose totals do not fit its
// committed offset fails. Unavailable: no broker answers; ask again. Cancelled: `go_on` returned false.
absl::Status RestoreTotals(const DaemonOptions& options, absl::Span<Task* const> partitions,
                           const std::function<bool()>& go_on);

// A consumer of totals, without an assignment yet.
absl::StatusOr<ClientPtr> MakeTotalsReader(const DaemonOptions& options, const char* isolation,
                                           std::vector<Property> defaults = {});

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_COUNTERS_COUNTER_TOTALS_H_
