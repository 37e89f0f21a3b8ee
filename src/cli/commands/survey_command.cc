#include "src/cli/commands/survey_command.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <memory>

#include "absl/time/clock.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "connectors/kafka/topics/topic_reader.h"
#include "connectors/registry/patient_schemas.h"
#include "src/cli/config/units.h"
#include "src/cli/terminal/exit_code.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/log.h"
#include "src/cli/terminal/survey_text.h"
#include "src/cli/terminal/terminal.h"
#include "src/survey/survey.h"

namespace lethe {
namespace {

constexpr int64_t kRecords = 1'000'000;

constexpr Setting<SurveyCommandOptions> kSettings[] = {
    BrokersSetting<SurveyCommandOptions>("The Kafka cluster: one or more of its brokers"),
    {"input", "TOPIC", "", true, "Topic to examine", "orders",
     [](absl::string_view text, SurveyCommandOptions& options) { return StoreTopic(text, options.input); }},
    {"id", "FIELD[+FIELD...]", "it is looked for", false,
     "Place of the id in a record: key, value, header:NAME, json:/pointer, avro:/pointer, protobuf:/name, "
     "framed.json:/pointer, or several joined with +",
     "json:/order/id",
     [](absl::string_view text, SurveyCommandOptions& options) {
       return StoreField(IdSpec::Parse(text), options.id);
     }},
    {"records", "NUMBER|all", "1000000", false, "How many of the newest records are read, of all partitions",
     "all",
     [](absl::string_view text, SurveyCommandOptions& options) {
       options.all_records = text == "all";
       if (options.all_records) return absl::OkStatus();
       if (ParseWhole<int64_t>(text, 1, std::numeric_limits<int64_t>::max()).ok()) {
         return Store(text, ParseWhole<int64_t>(text, 1, std::numeric_limits<int64_t>::max()),
                      options.records);
       }
       return BadValue(text, "expected a whole number of at least 1, or all");
     },
     "1 or more, or all"},
    {"last", "DURATION", "", false, "Read records that are at most this old, by their timestamps", "24h",
     [](absl::string_view text, SurveyCommandOptions& options) {
       return Store(text, ParseDuration(text), options.last);
     },
     "1ms or more"},
    {"memory", "SIZE", "256MiB", false, "Memory limit; beyond it, figures are estimated from a sample of ids",
     "1GiB",
     [](absl::string_view text, SurveyCommandOptions& options) {
       const absl::StatusOr<int64_t> bytes = ParseBytes(text);
       if (bytes.ok() && *bytes < (int64_t{16} << 20)) return BadValue(text, "expected at least 16MiB");
       return Store(text, bytes, options.memory_bytes);
     },
     "16MiB or more"},
    FormatSetting<SurveyCommandOptions>("How the report is printed", "output"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.url"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.user"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.password"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.token"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.ca_file"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.timeout"),
    KafkaSetting<SurveyCommandOptions>(),
};

}  // namespace

absl::Span<const Setting<SurveyCommandOptions>> SurveySettings() { return kSettings; }

absl::Status RunSurvey(const SurveyCommandOptions& options, std::ostream& out) {
  if (absl::Status checked = CheckRegistryOf({.id = options.id.value_or(IdSpec{})}, options.schema_registry);
      !checked.ok()) {
    return checked;
  }
  // stdout is for the report, and librdkafka's messages about reconnecting help no one.
  StartLog({.level = LogLevel::kWarning});
  const std::string warning = kafka::SecretsOnCommandLine(options.properties.exposed);
  if (!warning.empty()) spdlog::warn("{}", warning);
  kafka::ReadOptions read = {options.brokers, options.input, options.properties.values, options.records};
  if (options.last) read.since = absl::Now() - *options.last;
  if (!options.records && !options.all_records && !options.last) read.newest = kRecords;
  const absl::StatusOr<std::unique_ptr<kafka::TopicReader>> reader = kafka::TopicReader::Open(read);
  if (!reader.ok()) return reader.status();
  const auto schemas = registry::PatientSchemas::Open(
      options.schema_registry, [](const std::string& what) { spdlog::warn("{}", what); });
  Survey survey({.id = options.id, .memory_bytes = options.memory_bytes, .schemas = schemas.get()});
  const std::atomic<bool>& interrupted = CatchInterrupts();
  absl::Status status;
  {
    ProgressLine progress("records");
    status = (*reader)->Read([&](const SurveyRecord& record) { survey.Add(record); },
                             [&](int64_t done) {
                               progress.Show(done, (*reader)->to_read());
                               return !interrupted.load() && (schemas == nullptr || schemas->status().ok());
                             });
  }
  SurveyReport found = survey.Report();
  // It would take records for broken whose schemas did not come.
  if (schemas != nullptr && !schemas->status().ok()) return schemas->status();
  std::vector<Property> properties;
  std::vector<std::string> secrets;
  for (const auto& [name, value] : options.properties.values) {
    if (kafka::IsSecretValue(name)) {
      secrets.push_back(name);
    } else {
      properties.emplace_back(name, value);
    }
  }
  const SurveyText text = {
      .brokers = options.brokers,
      .input = options.input,
      .properties = std::move(properties),
      .secrets = std::move(secrets),
      .id_was_given = options.id.has_value(),
      .has_registry = schemas != nullptr,
      .partitions = (*reader)->partitions(),
      .in_topic = (*reader)->in_topic(),
      .to_read = (*reader)->to_read(),
      .is_whole = status.ok() && !interrupted.load(),
      .report = std::move(found),
  };
  if (options.format == ReportFormat::kJson) {
    WriteSurveyJson(text, out);
  } else {
    WriteSurvey(text, TextStyle::Of(STDOUT_FILENO), out);
  }
  out.flush();
  const SurveyReport& report = text.report;
  const bool has_id = report.records == 0 || report.candidates.front().figures.records > 0;
  if (status.ok() && options.id && !has_id) {
    return NoIdError(report.records, options.id->ToString(), "the figures tell nothing about duplicates");
  }
  return status;
}

}  // namespace lethe
