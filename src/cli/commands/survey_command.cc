#include "src/cli/commands/survey_command.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "connectors/kafka/group/broker_client.h"
#include "connectors/kafka/topics/topic_reader.h"
#include "connectors/registry/patient_schemas.h"
#include "src/cli/config/units.h"
#include "src/cli/terminal/exit_code.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/log.h"
#include "src/cli/terminal/survey_text.h"
#include "src/cli/terminal/terminal.h"
#include "src/pipeline/options/topic_list.h"
#include "src/pipeline/preflight/inspect_topics.h"
#include "src/survey/survey.h"

namespace lethe {
namespace {

constexpr int64_t kRecords = 1'000'000;

absl::Status StoreInputs(absl::string_view text, std::vector<std::string>& inputs) {
  inputs.clear();
  // A pattern may have commas, and no name has.
  if (IsPattern(text)) {
    inputs.emplace_back(text);
    return absl::OkStatus();
  }
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    if (absl::Status status = StoreTopic(name, inputs.emplace_back()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status StoreRecords(absl::string_view text, SurveyCommandOptions& options) {
  options.all_records = text == "all";
  if (options.all_records || StoreValue({"NUMBER", "1 or more", ""}, text, options.records).ok()) {
    return absl::OkStatus();
  }
  return BadValue(text, "expected a whole number of at least 1, or all");
}

constexpr Setting<SurveyCommandOptions> kSurveySettings[] = {
    BrokersSetting<SurveyCommandOptions>("The Kafka cluster: one or more of its brokers"),
    {"input", "TOPIC|^PATTERN", "", true,
     "Topic to examine; several with commas between them, or a pattern that begins with ^: a line each, and "
     "the list "
     "`topics` for lethe.yaml",
     "orders", By<StoreInputs, At<&SurveyCommandOptions::inputs>>},
    {"id", "FIELD[+FIELD...]", "it is looked for", false,
     "Place of the id in a record: key, value, header:NAME, json:/pointer, avro:/pointer, protobuf:/name, "
     "framed.json:/pointer, or several joined with + (a ? behind optional ones), "
     "or the first of several: A or B",
     "json:/order/id", Value<At<&SurveyCommandOptions::id>>},
    {"records", "NUMBER|all", "1000000", false, "How many of the newest records are read, of all partitions",
     "all", By<StoreRecords, At<>>, "1 or more, or all"},
    {"last", "DURATION", "", false, "Read records that are at most this old, by their timestamps", "24h",
     Value<At<&SurveyCommandOptions::last>>, "1ms or more"},
    {"memory", "SIZE", "256MiB", false, "Memory limit; beyond it, figures are estimated from a sample of ids",
     "1GiB", Value<At<&SurveyCommandOptions::memory_bytes>>, "16MiB or more"},
    FormatSetting<SurveyCommandOptions>("How the report is printed", "output"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.url"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.user"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.password"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.token"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.ca_file"),
    RegistrySetting<SurveyCommandOptions>("schema_registry.timeout"),
    KafkaSetting<SurveyCommandOptions>(),
};

// What one topic says. `text` is there also where the reading ended early; `status` says so.
struct Surveyed {
  std::optional<SurveyText> text;
  absl::Status status;
};

// Reads topics one after the other.
class Surveyor {
 public:
  explicit Surveyor(const SurveyCommandOptions& options)
      : options_(options),
        schemas_(registry::PatientSchemas::Open(options.schema_registry,
                                                [](const std::string& what) { spdlog::warn("{}", what); })),
        interrupted_(CatchInterrupts()) {}

  bool is_interrupted() const { return interrupted_.load(); }

  Surveyed Look(const std::string& input, absl::string_view note = "") {
    kafka::ReadOptions read = {options_.brokers, input, options_.properties.values, options_.records};
    if (options_.last) read.since = absl::Now() - *options_.last;
    if (!options_.records && !options_.all_records && !options_.last) read.newest = kRecords;
    const absl::StatusOr<std::unique_ptr<kafka::TopicReader>> reader =
        kafka::TopicReader::Open(read, [this] { return !is_interrupted(); });
    if (!reader.ok()) return {std::nullopt, reader.status()};
    Survey survey({.id = options_.id, .memory_bytes = options_.memory_bytes, .schemas = schemas_.get()});
    absl::Status status;
    {
      ProgressLine progress("records");
      status = (*reader)->Read([&](const SurveyRecord& record) { survey.Add(record); },
                               [&](int64_t done) {
                                 progress.Show(done, (*reader)->to_read(), note);
                                 return !is_interrupted() && (schemas_ == nullptr || schemas_->status().ok());
                               });
    }
    SurveyReport found = survey.Report();
    // It would take records for broken whose schemas did not come.
    if (schemas_ != nullptr && !schemas_->status().ok()) return {std::nullopt, schemas_->status()};
    SurveyText text = {
        .brokers = options_.brokers,
        .input = input,
        .id_was_given = options_.id.has_value(),
        .has_registry = schemas_ != nullptr,
        .partitions = (*reader)->partitions(),
        .topic = Describe(input),
        .in_topic = (*reader)->in_topic(),
        .to_read = (*reader)->to_read(),
        .is_whole = status.ok() && !is_interrupted(),
        .report = std::move(found),
    };
    for (const auto& [name, value] : options_.properties.values) {
      if (kafka::IsSecretValue(name)) {
        text.secrets.push_back(name);
      } else {
        text.properties.emplace_back(name, value);
      }
    }
    const SurveyReport& report = text.report;
    const bool has_id = report.records == 0 || report.candidates.front().figures.records > 0;
    if (status.ok() && options_.id && !has_id) {
      status =
          NoIdError(report.records, options_.id->ToString(), "the figures tell nothing about duplicates");
    }
    return {std::move(text), status};
  }

 private:
  // As far as the brokers tell.
  TopicFacts Describe(const std::string& input) const {
    DaemonOptions options;
    options.process.brokers = options_.brokers;
    options.process.properties = options_.properties.values;
    const auto brokers = kafka::BrokerClient::Make(options, Isolation::kReadCommitted);
    return brokers.ok() ? (*brokers)->DescribeTopic(input).value_or(TopicFacts()) : TopicFacts();
  }

  const SurveyCommandOptions& options_;
  const std::unique_ptr<registry::PatientSchemas> schemas_;
  const std::atomic<bool>& interrupted_;
};

// The topics that the pattern matches, without those that lethe would write for them, or has written.
absl::StatusOr<std::vector<std::string>> MatchingTopics(const SurveyCommandOptions& options,
                                                        absl::string_view pattern) {
  DaemonOptions topics;
  topics.process.brokers = options.brokers;
  topics.process.properties = options.properties.values;
  topics.input = absl::StrCat("^((", pattern.substr(1), ").*)$");
  topics.output = "$1-unique";
  const auto list = TopicList::Create({topics});
  if (!list.ok()) return list.status();
  const auto brokers = kafka::BrokerClient::Make(topics, Isolation::kReadCommitted);
  if (!brokers.ok()) return brokers.status();
  const auto inputs = FindInputs(**brokers, *list);
  if (!inputs.ok()) {
    return absl::UnavailableError(
        absl::StrCat("no broker answers at ", options.brokers, ": ", inputs.status().message()));
  }
  std::vector<std::string> names;
  for (const DaemonOptions& topic : inputs->topics) {
    if (!absl::EndsWith(topic.input, "-repartition")) names.push_back(topic.input);
  }
  if (names.empty()) return absl::NotFoundError(absl::StrCat("no topic matches ", pattern));
  return names;
}

// A line each: a topic that cannot be read holds up no other.
absl::Status SurveySeveral(const SurveyCommandOptions& options, const std::vector<std::string>& inputs,
                           std::ostream& out) {
  Surveyor surveyor(options);
  absl::Status first;
  std::vector<SurveyedTopic> topics;
  for (const std::string& input : inputs) {
    if (surveyor.is_interrupted()) break;
    Surveyed surveyed =
        surveyor.Look(input, absl::StrCat("topic ", topics.size() + 1, " of ", inputs.size(), ": ", input));
    if (first.ok()) first = surveyed.status;
    topics.push_back({input, std::move(surveyed.text), std::string(surveyed.status.message())});
  }
  if (options.format == ReportFormat::kJson) {
    WriteSurveysJson(topics, out);
  } else {
    WriteSurveys(topics, TextStyle::Of(STDOUT_FILENO), out);
  }
  out.flush();
  return first;
}

}  // namespace

absl::Span<const Setting<SurveyCommandOptions>> SurveySettings() { return kSurveySettings; }

absl::Status RunSurvey(const SurveyCommandOptions& options, std::ostream& out) {
  if (absl::Status checked = CheckRegistryOf({.id = options.id.value_or(IdSpec{})}, options.schema_registry);
      !checked.ok()) {
    return checked;
  }
  // stdout is for the report, and librdkafka's messages about reconnecting help no one.
  StartLog({.level = LogLevel::kWarning});
  const std::string warning = kafka::SecretsOnCommandLine(options.properties.exposed);
  if (!warning.empty()) spdlog::warn("{}", warning);
  if (IsPattern(options.inputs.front())) {
    const auto names = MatchingTopics(options, options.inputs.front());
    return names.ok() ? SurveySeveral(options, *names, out) : names.status();
  }
  if (options.inputs.size() > 1) return SurveySeveral(options, options.inputs, out);
  const Surveyed surveyed = Surveyor(options).Look(options.inputs.front());
  if (!surveyed.text) return surveyed.status;
  if (options.format == ReportFormat::kJson) {
    WriteSurveyJson(*surveyed.text, out);
  } else {
    WriteSurvey(*surveyed.text, TextStyle::Of(STDOUT_FILENO), out);
  }
  out.flush();
  return surveyed.status;
}

}  // namespace lethe
