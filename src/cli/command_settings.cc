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

absl::Status StoreWithoutId(absl::string_view text, FilterCommandOptions::WithoutId& target) {
  using WithoutId = FilterCommandOptions::WithoutId;
  return StoreChoice<WithoutId, 3>(
      text, {{{"pass", WithoutId::kPass}, {"drop", WithoutId::kDrop}, {"fail", WithoutId::kFail}}}, target);
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
     "Place of the id in a line: value, json:/pointer, or several joined with +", "json:/id",
     [](absl::string_view text, FilterCommandOptions& options) {
       return StoreField(IdSpec::Parse(text), options.id);
     }},
    {"horizon", "DURATION", "24h", false, "How late a copy may come after the first", "1h",
     [](absl::string_view text, FilterCommandOptions& options) { return StoreHorizon(text, options.stage); }},
    {"fpp", "NUMBER", "1e-6", false, "Share of unique lines that may be taken for duplicates", "1e-6",
     [](absl::string_view text, FilterCommandOptions& options) { return StoreFpp(text, options.stage); }},
    {"memory", "SIZE", "1GiB", false, "Memory limit for the filter", "1GiB",
     [](absl::string_view text, FilterCommandOptions& options) { return StoreMemory(text, options.stage); }},
    {"engine", "NAME", "compact", false,
     "Filter engine: compact, exact, published; without the guarantees: bloom, recycled, opposite", "exact",
     [](absl::string_view text, FilterCommandOptions& options) { return StoreEngine(text, options); }},
    {"on_duplicate", "drop|tag", "drop", false, "Handling of duplicates: tag keeps and marks them", "tag",
     [](absl::string_view text, FilterCommandOptions& options) {
       using OnDuplicate = FilterCommandOptions::OnDuplicate;
       return StoreChoice<OnDuplicate>(text, {{{"drop", OnDuplicate::kDrop}, {"tag", OnDuplicate::kTag}}},
                                       options.on_duplicate);
     }},
    {"time", "FIELD", "the time of reading", false,
     "Place of the time in a line: RFC 3339 or Unix milliseconds", "json:/time",
     [](absl::string_view text, FilterCommandOptions& options) {
       return StoreField(Field::Parse(text), options.time);
     }},
    {"on_missing_id", "pass|drop|fail", "pass", false,
     "Handling of a line without a usable id: fail ends at it, with code 1", "fail",
     [](absl::string_view text, FilterCommandOptions& options) {
       return StoreWithoutId(text, options.on_missing_id);
     }},
    {"on_malformed", "pass|drop|fail", "pass", false, "Handling of a line whose JSON is broken", "drop",
     [](absl::string_view text, FilterCommandOptions& options) {
       return StoreWithoutId(text, options.on_malformed);
     }},
    FormatSetting<FilterCommandOptions>("How the summary is printed, on stderr", "summary"),
    SwitchSetting<FilterCommandOptions, &FilterCommandOptions::quiet>("quiet", "Print no summary"),
    {"FILE", "FILE", "", false, "What to read; standard input if none is named", "",
     [](absl::string_view text, FilterCommandOptions& options) {
       options.files.emplace_back(text);
       return absl::OkStatus();
     },
     "", "", /*many=*/true},
};

constexpr Setting<DemoOptions> kDemoSettings[] = {
    {"events", "NUMBER", "100000", false, "How many events to send", "100000",
     [](absl::string_view text, DemoOptions& options) {
       return Store(text, ParseWhole<int64_t>(text, 1, 1'000'000'000'000), options.events);
     }},
    {"rate", "NUMBER", "0", false, "Events per second; 0 is as fast as they go", "1000",
     [](absl::string_view text, DemoOptions& options) {
       return Store(text, ParseWhole<int64_t>(text, 0, 1'000'000'000), options.rate);
     }},
    {"brokers", "HOST:PORT,...", "a broker in the program", false, "The Kafka cluster", "localhost:9092",
     [](absl::string_view text, DemoOptions& options) {
       return StoreText(text, "expected one or more brokers, such as localhost:9092", options.brokers);
     }},
    {"kill", "NUMBER", "0", false, "How often the daemon is killed on the way", "3",
     [](absl::string_view text, DemoOptions& options) {
       return Store(text, ParseWhole<int>(text, 0, 1000), options.kill);
     }},
    {"seed", "NUMBER", "a random one", false, "Repeat a run: its seed", "42",
     [](absl::string_view text, DemoOptions& options) {
       return Store(text, ParseWhole<uint64_t>(text, 0, std::numeric_limits<uint64_t>::max()), options.seed);
     }},
    {"format", "json|avro", "json", false,
     "Form of the events: JSON, or Avro in two versions of a schema, with a registry in the program", "avro",
     [](absl::string_view text, DemoOptions& options) {
       if (text != "json" && text != "avro") return BadValue(text, "expected json or avro");
       options.avro = text == "avro";
       return absl::OkStatus();
     }},
    SwitchSetting<DemoOptions, &DemoOptions::serve>("serve", "Keep the status page up at the end"),
    {"port", "NUMBER", "9464 with --serve or --adapt, if it is free", false,
     "Port of the status page; with --adapt the second engine has the next one", "9464",
     [](absl::string_view text, DemoOptions& options) {
       return Store(text, ParseWhole<int>(text, 1, 65534), options.port);
     }},
    SwitchSetting<DemoOptions, &DemoOptions::adapt>("adapt",
                                                    "Show filters that follow a load instead: a day in a "
                                                    "minute with engine: published, compact beside it"),
    {"day", "DURATION", "1m", false, "How long the day of --adapt takes", "20s",
     [](absl::string_view text, DemoOptions& options) {
       if (absl::Status stored = Store(text, ParseDuration(text), options.day); !stored.ok()) return stored;
       return options.day >= absl::Seconds(1) ? absl::OkStatus() : BadValue(text, "expected 1s or more");
     }},
};

// Checks a value as a stage does, and tells it apart from one that is not given.
template <class Value>
absl::Status StoreGiven(absl::string_view text,
                        absl::Status (*store)(absl::string_view text, StageOptions& stage),
                        Value StageOptions::*option, std::optional<Value>& target) {
  StageOptions stage;
  if (absl::Status status = store(text, stage); !status.ok()) return status;
  target = stage.*option;
  return absl::OkStatus();
}

constexpr Setting<PlanCommandOptions> kPlanSettings[] = {
    {"rate", "NUMBER", "", false, "Unique events per second, of all partitions; also 20k/s, 5M/d", "20k/s",
     [](absl::string_view text, PlanCommandOptions& options) {
       return Store(text, ParseRate(text), options.request.rate);
     }},
    {"horizon", "DURATION", "", false, "How late a copy may come after the first", "24h",
     [](absl::string_view text, PlanCommandOptions& options) {
       return StoreGiven(text, StoreHorizon, &StageOptions::horizon, options.request.horizon);
     }},
    {"fpp", "NUMBER", "", false, "Share of unique events that may be dropped", "1e-6",
     [](absl::string_view text, PlanCommandOptions& options) {
       return StoreGiven(text, StoreFpp, &StageOptions::target_fpp, options.request.target_fpp);
     }},
    {"memory", "SIZE", "", false, "Memory limit for all filters together", "1GiB",
     [](absl::string_view text, PlanCommandOptions& options) {
       return StoreGiven(text, StoreMemory, &StageOptions::memory_limit_bytes, options.request.memory_bytes);
     }},
    FormatSetting<PlanCommandOptions>("How the plan is printed", "output"),
};

constexpr Setting<InspectCommandOptions> kInspectSettings[] = {
    FormatSetting<InspectCommandOptions>("How it is printed", "output"),
    {"SNAPSHOT", "FILE", "", true, "The snapshot", "orders-0.snapshot",
     [](absl::string_view text, InspectCommandOptions& options) {
       return StoreText(text, "expected a file", options.path);
     }},
};

constexpr Setting<CheckCommandOptions> kCheckSettings[] = {
    FormatSetting<CheckCommandOptions>("How the findings are printed", ""),
    SwitchSetting<CheckCommandOptions, &CheckCommandOptions::quiet>("quiet",
                                                                    "Print warnings and errors only"),
};

}  // namespace

absl::Span<const Setting<FilterCommandOptions>> FilterSettings() { return kFilterSettings; }
absl::Span<const Setting<DemoOptions>> DemoSettings() { return kDemoSettings; }
absl::Span<const Setting<PlanCommandOptions>> PlanSettings() { return kPlanSettings; }
absl::Span<const Setting<InspectCommandOptions>> InspectSettings() { return kInspectSettings; }
absl::Span<const Setting<CheckCommandOptions>> CheckSettings() { return kCheckSettings; }

}  // namespace lethe
