// Commands of Kafka's own tools, as messages print them: complete, so that they can be copied and run.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_KAFKA_COMMANDS_H_
#define LETHE_SRC_PIPELINE_OPTIONS_KAFKA_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/pipeline/options/options.h"

namespace lethe {

// "kafka-topics.sh --bootstrap-server kafka:9092 ARGUMENTS".
std::string KafkaCommand(absl::string_view tool, const std::string& brokers, absl::string_view arguments);
// The same; a connection that needs properties (TLS, a login) has them in a file client.properties.
std::string KafkaCommand(absl::string_view tool, const ProcessOptions& process, absl::string_view arguments);

std::string AlterTopic(const ProcessOptions& process, const std::string& topic, absl::string_view config);

// Kafka resets a group's offsets, and deletes them, only while it has no members. `topics`: also
// TOPIC:PARTITION.
std::string ResetOffsets(const ProcessOptions& process, const std::string& group,
                         const std::vector<std::string>& topics, absl::string_view to);
std::string DeleteOffsets(const ProcessOptions& process, const std::string& group,
                          const std::vector<std::string>& topics);

// A sentence about a partition, or topic, where the group cannot go on: what a reset costs, the command, and
// the choice that it leaves.
std::string ResetOrReadAgain(const ProcessOptions& process, const std::string& topic);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_KAFKA_COMMANDS_H_
