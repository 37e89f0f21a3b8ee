#include "src/cli/command_settings.h"

#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "src/cli/config/removed.h"
#include "src/cli/config/units.h"

namespace lethe {
namespace {

using OnDuplicate = FilterCommandOptions::OnDuplicate;
using FilterWithoutId = FilterCommandOptions::WithoutId;

absl::Status AddFile(absl::string_view text, std::vector<std::string>& files) {
  files.emplace_back(text);
  return absl::OkStatus();
}

absl::Status StoreEngine(absl::string_view text, FilterCommandOptions& options) {
  if (const std::string removed = RemovedText(absl::StrCat("engine: ", text)); !removed.empty()) {
    return BadValue(text, removed);
  }
  const absl::StatusOr<AnyEngine> engine = ParseEngine(text);
  if (!engine.ok()) {  // the place, which the caller says, ends with the key
    return absl::InvalidArgumentError(absl::StripPrefix(engine.status().message(), "engine: "));
  }
  options.stage.engine = engine->own;
  options.reference = engine->reference;
  return absl::OkStatus();
}

constexpr Setting<FilterCommandOptions> kFilterSettings[] = {
    {"id", "FIELD[+FIELD...]", "", true,
     "Place of the id in a line: value, json:/pointer, or several joined with + (a ? behind optional ones), "
     "or the first of several: A or B",
     "json:/id", Value<At<&FilterCommandOptions::id>>},
    {"horizon", "DURATION", "24h", false, "How late a copy may come after the first", "1h",
     By<StoreHorizon, At<&FilterCommandOptions::stage>>},
    {"fpp", "NUMBER", "1e-6", false, "Share of unique lines that may be taken for duplicates", "1e-6",
     By<StoreFpp, At<&FilterCommandOptions::stage>>},
    {"memory", "SIZE", "1GiB", false, "Memory limit for the filter", "1GiB",
     By<StoreMemory, At<&FilterCommandOptions::stage>>},
    {"engine", "NAME", "compact", false,
     "Filter engine: compact, exact, published; without the guarantees: bloom, recycled, opposite", "exact",
     By<StoreEngine, At<>>},
    {"on_duplicate", "drop|tag", "drop", false, "Handling of duplicates: tag keeps and marks them", "tag",
     Choice<At<&FilterCommandOptions::on_duplicate>, OnDuplicate::kDrop, OnDuplicate::kTag>},
    {"time", "FIELD", "the time of reading", false, "Place of the time in a line: RFC 3339 or Unix time",
     "json:/time", Value<At<&FilterCommandOptions::time>>},
    {"time_unit", "s|ms|us|ns", "ms", false,
     "Unit of times that are numbers; if it is not given, times of another unit end the command with code 3",
     "s",
     Choice<At<&FilterCommandOptions::time_unit>, TimeUnit::kSeconds, TimeUnit::kMilliseconds,
            TimeUnit::kMicroseconds, TimeUnit::kNanoseconds>},
    {"on_missing_id", "pass|drop|fail", "pass", false,
     "Handling of a line without a usable id: fail ends at it, with code 1", "fail",
     Choice<At<&FilterCommandOptions::on_missing_id>, FilterWithoutId::kPass, FilterWithoutId::kDrop,
            FilterWithoutId::kFail>},
    {"on_malformed", "pass|drop|fail", "pass", false, "Handling of a line whose JSON is broken", "drop",
     Choice<At<&FilterCommandOptions::on_malformed>, FilterWithoutId::kPass, FilterWithoutId::kDrop,
            FilterWithoutId::kFail>},
    FormatSetting<FilterCommandOptions>("How the summary is printed, on stderr", "summary"),
    SwitchSetting<FilterCommandOptions, &FilterCommandOptions::quiet>("quiet", "Print no summary"),
    {"FILE", "FILE", "", false, "What to read; standard input if none is named", "",
     By<AddFile, At<&FilterCommandOptions::files>>, "", "", /*many=*/true},
};

constexpr Setting<DemoOptions> kDemoSettings[] = {
    {"events", "NUMBER", "100000", false, "How many events to send", "100000",
     Value<At<&DemoOptions::events>>, "1 to 1000000000000"},
    {"rate", "NUMBER", "0", false, "Events per second; 0 is as fast as they go", "1000",
     Value<At<&DemoOptions::rate>>, "0 to 1000000000"},
    {"brokers", "HOST:PORT,...", "a broker in the program", false, "The Kafka cluster", "localhost:9092",
     Value<At<&DemoOptions::brokers>>},
    {"kill", "NUMBER", "0", false, "How often the daemon is killed on the way", "3",
     Value<At<&DemoOptions::kill>>, "0 to 1000"},
    {"seed", "NUMBER", "a random one", false, "Repeat a run: its seed", "42", Value<At<&DemoOptions::seed>>},
    {"format", "json|avro", "json", false,
     "Form of the events: JSON, or Avro in two versions of a schema, with a registry in the program", "avro",
     Choice<At<&DemoOptions::avro>, false, true>},
    SwitchSetting<DemoOptions, &DemoOptions::serve>("serve", "Keep the status page up at the end"),
    {"port", "NUMBER", "9464 with --serve or --adapt, if it is free", false,
     "Port of the status page; with --adapt the second engine has the next one", "9464",
     Value<At<&DemoOptions::port>>, "1 to 65534"},
    SwitchSetting<DemoOptions, &DemoOptions::adapt>("adapt",
                                                    "Show filters that follow a load instead: a day in a "
                                                    "minute with engine: published, compact beside it"),
    {"day", "DURATION", "1m", false, "How long the day of --adapt takes", "20s", Value<At<&DemoOptions::day>>,
     "1s or more"},
};

// Checks a value as a stage does, and tells it apart from one that is not given.
template <auto kStore, auto kOption, auto kTarget>
absl::Status OfStage(const Setting<PlanCommandOptions>& /*setting*/, absl::string_view text,
                     PlanCommandOptions& options) {
  StageOptions stage;
  absl::Status status = kStore(text, stage);
  if (status.ok()) options.request.*kTarget = stage.*kOption;
  return status;
}

constexpr Setting<PlanCommandOptions> kPlanSettings[] = {
    {"rate", "NUMBER", "", false, "Unique events per second, of all partitions; also 20k/s, 5M/d", "20k/s",
     Parsed<ParseRate, At<&PlanCommandOptions::request, &PlanRequest::rate>>},
    {"horizon", "DURATION", "", false, "How late a copy may come after the first", "24h",
     OfStage<StoreHorizon, &StageOptions::horizon, &PlanRequest::horizon>},
    {"fpp", "NUMBER", "", false, "Share of unique events that may be dropped", "1e-6",
     OfStage<StoreFpp, &StageOptions::target_fpp, &PlanRequest::target_fpp>},
    {"memory", "SIZE", "", false, "Memory limit for all filters together", "1GiB",
     OfStage<StoreMemory, &StageOptions::memory_limit_bytes, &PlanRequest::memory_bytes>},
    FormatSetting<PlanCommandOptions>("How the plan is printed", "output"),
};

constexpr Setting<InspectCommandOptions> kInspectSettings[] = {
    FormatSetting<InspectCommandOptions>("How it is printed", "output"),
    {"SNAPSHOT", "FILE", "", true, "The snapshot", "orders-0.snapshot",
     Value<At<&InspectCommandOptions::path>>},
};

constexpr Setting<CheckCommandOptions> kCheckSettings[] = {
    FormatSetting<CheckCommandOptions>("How the findings are printed", ""),
    SwitchSetting<CheckCommandOptions, &CheckCommandOptions::quiet>("quiet",
                                                                    "Print warnings and errors only"),
    SwitchSetting<CheckCommandOptions, &CheckCommandOptions::create>(
        "create", "Create the topics that are missing, with the input's partitions and settings"),
};

}  // namespace

absl::Span<const Setting<FilterCommandOptions>> FilterSettings() { return kFilterSettings; }
absl::Span<const Setting<DemoOptions>> DemoSettings() { return kDemoSettings; }
absl::Span<const Setting<PlanCommandOptions>> PlanSettings() { return kPlanSettings; }
absl::Span<const Setting<InspectCommandOptions>> InspectSettings() { return kInspectSettings; }
absl::Span<const Setting<CheckCommandOptions>> CheckSettings() { return kCheckSettings; }

}  // namespace lethe
