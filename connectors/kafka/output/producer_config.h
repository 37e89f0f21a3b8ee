// The properties of a lane's producer.
#ifndef LETHE_CONNECTORS_KAFKA_OUTPUT_PRODUCER_CONFIG_H_
#define LETHE_CONNECTORS_KAFKA_OUTPUT_PRODUCER_CONFIG_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/output/sink.h"

namespace lethe::kafka {

// The compression where the user names none: fast, until a record is too large for its topic.
inline constexpr absl::string_view kQuickCodec = "lz4";
inline constexpr absl::string_view kDenseCodec = "zstd";
bool NamesCodec(const DaemonOptions& options);

// Without callbacks. Transactional with exactly once.
ClientConfig ProducerConfig(const DaemonOptions& options, int lane, const OutputLimits& limits,
                            absl::string_view codec = kQuickCodec);

// The producer's batch.size: the user's or its default, and no more than the broker takes.
int64_t BatchSize(const DaemonOptions& options, int64_t max_batch_bytes);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OUTPUT_PRODUCER_CONFIG_H_
