// The properties of a lane's producer.
#ifndef LETHE_CONNECTORS_KAFKA_OUTPUT_PRODUCER_CONFIG_H_
#define LETHE_CONNECTORS_KAFKA_OUTPUT_PRODUCER_CONFIG_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/output/codec_choice.h"
#include "src/pipeline/output/sink.h"

namespace lethe::kafka {

// Without callbacks. Transactional with exactly once.
ClientConfig ProducerConfig(const DaemonOptions& options, int lane, const OutputLimits& limits,
                            absl::string_view codec = CodecChoice::kQuick);

// The producer's batch.size: the user's or its default, and no more than the broker takes.
int64_t BatchSize(const DaemonOptions& options, int64_t max_batch_bytes);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OUTPUT_PRODUCER_CONFIG_H_
