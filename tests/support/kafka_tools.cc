#include "tests/support/kafka_tools.h"

#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lethe::test {
namespace {

// The classes that the scripts of Kafka start.
const std::map<std::string, std::string>& Tools() {
  static const auto& tools = *new std::map<std::string, std::string>{
      {"kafka-acls.sh", "kafka.admin.AclCommand"},
      {"kafka-configs.sh", "kafka.admin.ConfigCommand"},
      {"kafka-console-consumer.sh", "org.apache.kafka.tools.consumer.ConsoleConsumer"},
      {"kafka-consumer-groups.sh", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"},
      {"kafka-topics.sh", "org.apache.kafka.tools.TopicCommand"},
      {"kafka-transactions.sh", "org.apache.kafka.tools.TransactionsCommand"},
  };
  return tools;
}

}  // namespace

absl::StatusOr<Finished> RunKafkaTool(const std::vector<std::string>& command) {
  const auto named = Tools().find(command.at(0));
  if (named == Tools().end()) {
    return absl::NotFoundError(absl::StrCat(command[0], " is none of the tools that are known here"));
  }
  ProcessOptions tool;
  tool.args = {"java",
               "-Xmx128m",
               "-XX:TieredStopAtLevel=1",
               "-XX:+UseSerialGC",
               "-cp",
               absl::StrCat(LETHE_KAFKA_LIBS, "/*"),
               named->second};
  tool.args.insert(tool.args.end(), command.begin() + 1, command.end());
  return RunToEnd(tool, absl::Minutes(2));
}

}  // namespace lethe::test
