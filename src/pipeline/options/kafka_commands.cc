#include "src/pipeline/options/kafka_commands.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe {
namespace {

std::string GroupCommand(const ProcessOptions& process, const std::string& group,
                         const std::vector<std::string>& topics, absl::string_view action) {
  return KafkaCommand(
      "kafka-consumer-groups.sh", process,
      absl::StrCat("--group ", group, " --topic ", absl::StrJoin(topics, " --topic "), " ", action));
}

}  // namespace

std::string KafkaCommand(absl::string_view tool, const std::string& brokers, absl::string_view arguments) {
  return absl::StrCat(tool, " --bootstrap-server ", brokers, " ", arguments);
}

std::string KafkaCommand(absl::string_view tool, const ProcessOptions& process, absl::string_view arguments) {
  const bool has_properties = !process.properties.empty();
  return KafkaCommand(tool, process.brokers,
                      absl::StrCat(has_properties ? "--command-config client.properties " : "", arguments));
}

std::string AlterTopic(const ProcessOptions& process, const std::string& topic, absl::string_view config) {
  return KafkaCommand(
      "kafka-configs.sh", process,
      absl::StrCat("--alter --entity-type topics --entity-name ", topic, " --add-config ", config));
}

std::string ResetOffsets(const ProcessOptions& process, const std::string& group,
                         const std::vector<std::string>& topics, absl::string_view to) {
  return GroupCommand(process, group, topics, absl::StrCat("--reset-offsets ", to, " --execute"));
}

std::string DeleteOffsets(const ProcessOptions& process, const std::string& group,
                          const std::vector<std::string>& topics) {
  return GroupCommand(process, group, topics, "--delete-offsets");
}

std::string ResetOrReadAgain(const ProcessOptions& process, const std::string& topic) {
  return absl::StrCat(
      kCostOfReset, "Stop every instance, then ",
      ResetOffsets(process, process.group, {topic}, "--to-latest"),
      ": it reads only records sent from now on; with --to-earliest in the place of --to-latest "
      "it reads the whole log, and writes all of it to the output again");
}

}  // namespace lethe
