// The command-line tools that come with Kafka, run as their scripts run them.
#ifndef LETHE_TESTS_SUPPORT_KAFKA_TOOLS_H_
#define LETHE_TESTS_SUPPORT_KAFKA_TOOLS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/process.h"

namespace lethe::test {

// `command` begins with the name of a script: {"kafka-topics.sh", "--list", ...}.
absl::StatusOr<Finished> RunKafkaTool(const std::vector<std::string>& command);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_KAFKA_TOOLS_H_
