// `lethe survey`: a first look at one's own topic, before anything is set up.
//
//   lethe survey --brokers localhost:9092 --input orders
#ifndef LETHE_SRC_CLI_COMMANDS_SURVEY_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_SURVEY_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/cli/config/setting.h"
#include "src/pipeline/options/options.h"
#include "src/record/record_reader.h"

namespace lethe {

struct SurveyCommandOptions {
  std::string brokers;
  std::vector<std::string> inputs;  // names, or one pattern
  std::optional<IdSpec> id;         // nullopt: it is looked for
  // Read of all partitions together; nullopt: no bound. If nothing is said, a million, or what `last` bounds.
  std::optional<int64_t> records;
  bool all_records = false;
  std::optional<absl::Duration> last;
  int64_t memory_bytes = int64_t{256} << 20;
  ReportFormat format = ReportFormat::kText;
  registry::RegistryOptions schema_registry;
  GivenProperties properties;
};

absl::Span<const Setting<SurveyCommandOptions>> SurveySettings();

// Reads each topic, without a trace in it, and writes the report to `out`: also when it is interrupted
// (SIGINT, SIGTERM) or the broker goes away on the way, which is then the error. A bar goes to stderr if that
// is a terminal.
absl::Status RunSurvey(const SurveyCommandOptions& options, std::ostream& out);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_SURVEY_COMMAND_H_
