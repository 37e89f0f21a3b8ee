// Reads the topics of counters with totals, when a partition is assigned.
#ifndef LETHE_CONNECTORS_KAFKA_COUNTERS_COUNTER_TOTALS_H_
#define LETHE_CONNECTORS_KAFKA_COUNTERS_COUNTER_TOTALS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/snapshots/snapshots.h"
#include "src/pipeline/task/input_record.h"

namespace lethe::kafka {

// As Cluster::ReadTotals.
absl::Status ReadTotals(const DaemonOptions& options, const std::string& topic,
                        const std::vector<int32_t>& partitions,
                        const std::function<void(const InputRecord&)>& see, const GoOn& go_on);

// A consumer of totals, without an assignment yet.
absl::StatusOr<ClientPtr> MakeTotalsReader(const DaemonOptions& options, const char* isolation,
                                           std::vector<Property> defaults = {});

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_COUNTERS_COUNTER_TOTALS_H_
