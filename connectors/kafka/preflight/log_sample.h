// Samples of the input's log.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_LOG_SAMPLE_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_LOG_SAMPLE_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/log_sample.h"
#include "src/pipeline/task/cluster.h"

namespace lethe::kafka {

// Reads some 20,000 records at most, for ten seconds at most, with MakeAskingClient()'s client.
// PermissionDenied: the user may not read.
absl::StatusOr<LogSample> SampleLog(const DaemonOptions& options, rd_kafka_t* client, int32_t partitions);

// The timestamp of the first record at or after each place. InfiniteFuture: there is none; InfinitePast: it
// has none, or did not come in time. Takes ten seconds at most; errors as SampleLog.
absl::StatusOr<std::vector<absl::Time>> AskTimes(rd_kafka_t* client, const std::vector<LogPlace>& places);

// The age of each partition's first record at or after its offset in `next`; zero: there is none, or the
// offset is negative. Takes ten seconds at most; errors as SampleLog.
absl::StatusOr<std::vector<absl::Duration>> AskLag(rd_kafka_t* client, const std::string& topic,
                                                   const std::vector<int64_t>& next);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_LOG_SAMPLE_H_
