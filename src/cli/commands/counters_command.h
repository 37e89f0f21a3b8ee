// `lethe counters`: the totals of a counter, from its topic.
//
//   lethe counters --brokers localhost:9092 --topic likes --top 20
#ifndef LETHE_SRC_CLI_COMMANDS_COUNTERS_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_COUNTERS_COMMAND_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/cli/config/setting.h"
#include "src/pipeline/options/options.h"

namespace lethe {

struct CountersCommandOptions {
  enum class Output { kTable, kJson, kCsv };

  std::string brokers;
  std::string topic;
  std::optional<int> top;  // nullopt: every key
  Output output = Output::kTable;
  bool follow = false;
  GivenProperties properties;
};

absl::Span<const Setting<CountersCommandOptions>> CountersSettings();

// Reads the topic, without a trace in it, and writes keys and totals to `out`, the largest first. With
// `follow` it continues, and writes changes every second, until it is interrupted. DataLoss, when
// all is written: the topic has records that no counter has written.
absl::Status RunCounters(const CountersCommandOptions& options, std::ostream& out);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_COUNTERS_COMMAND_H_
