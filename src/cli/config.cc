#include "src/cli/config.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "connectors/http/http_server.h"
#include "connectors/kafka/fixed_properties.h"
#include "connectors/kafka/repartition.h"
#include "lethe/event.h"
#include "src/cli/suggestion.h"
#include "src/cli/units.h"

namespace lethe {
namespace {

constexpr absl::string_view kKafka = "kafka";
constexpr absl::string_view kCounter = "counter";
// The sections whose keys are settings.
constexpr absl::string_view kSections[] = {"snapshots", kCounter, "log"};
constexpr absl::string_view kFromEnvironment = ", from the environment";
constexpr absl::string_view kCounterKeys[] = {"counter.key", "counter.delta", "counter.output"};

// A transaction must be over well before the broker's own limit for it, which is 30 s.
absl::Status StoreCommitInterval(absl::string_view text, absl::Duration& target) {
  absl::StatusOr<absl::Duration> interval = ParseDuration(text);
  if (interval.ok() && (*interval < absl::Milliseconds(1) || *interval > absl::Seconds(10))) {
    return BadValue(text, "expected a duration from 1ms to 10s");
  }
  return Store(text, std::move(interval), target);
}

absl::Status StoreHttp(absl::string_view text, std::string& target) {
  if (text != "off") {
    if (absl::Status status = http::HttpAddress::Parse(text).status(); !status.ok()) {
      return BadValue(text, absl::StrCat(status.message(), ", or off"));
    }
  }
  target = std::string(text);
  return absl::OkStatus();
}

// Written more often than that, one snapshot would follow the other.
absl::Status StoreSnapshotInterval(absl::string_view text, absl::Duration& target) {
  absl::StatusOr<absl::Duration> interval = ParseDuration(text);
  if (interval.ok() && *interval < absl::Seconds(1)) return BadValue(text, "expected a duration from 1s up");
  return Store(text, std::move(interval), target);
}

absl::Status StoreSnapshotPlace(absl::string_view text, kafka::SnapshotOptions& target) {
  target.folder.clear();
  target.topic.clear();
  if (text == "off") return absl::OkStatus();
  absl::string_view place = text;
  if (absl::ConsumePrefix(&place, "topic:")) return StoreTopic(place, target.topic);
  if (!absl::ConsumePrefix(&place, "folder:") || place.empty()) {
    return BadValue(text, "expected folder:PATH, such as folder:/var/lib/lethe, or topic:NAME, or off");
  }
  target.folder = std::string(place);
  return absl::OkStatus();
}

using kafka::Action;
using kafka::Assignment;
using kafka::Delivery;
using kafka::OnShortHistory;
using kafka::OnUnreadDeleted;
using kafka::Scope;
using kafka::Start;

// What can be done with a record that has no usable id.
absl::Status StoreActionWithoutId(absl::string_view text, Action& target) {
  return StoreChoice<Action, 4>(text,
                                {{{"pass", Action::kPass},
                                  {"drop", Action::kDrop},
                                  {"divert", Action::kDivert},
                                  {"fail", Action::kFail}}},
                                target);
}

// What is written to the output is known to the second opinion from then on.
absl::Status StoreActionOnSuspect(absl::string_view text, kafka::DaemonOptions& target) {
  Action& action = target.policies.on_suspect;
  const absl::Status stored = StoreChoice<Action, 4>(text,
                                                     {{{"pass", Action::kPass},
                                                       {"drop", Action::kDrop},
                                                       {"tag", Action::kTag},
                                                       {"divert", Action::kDivert}}},
                                                     action);
  target.stage.pass_suspects = target.policies.passes_suspects();
  return stored;
}

constexpr Setting<RunConfig> kSettings[] = {
    {"brokers", "HOST:PORT,...", "", true, "The Kafka cluster: one or more of its brokers", "localhost:9092",
     [](absl::string_view text, RunConfig& config) {
       return StoreText(text, "expected one or more brokers, such as localhost:9092", config.daemon.brokers);
     }},
    {"input", "TOPIC", "", true, "The topic that is read", "orders",
     [](absl::string_view text, RunConfig& config) { return StoreTopic(text, config.daemon.input); }},
    {"output", "TOPIC", "", true, "The topic that what is no duplicate is written to; it must exist",
     "orders-unique",
     [](absl::string_view text, RunConfig& config) { return StoreTopic(text, config.daemon.output); }},
    {"id", "FIELD[+FIELD...]", "", true,
     "Where a record's id is: key, value, header:NAME, json:/pointer, or several joined with +",
     "json:/order/id",
     [](absl::string_view text, RunConfig& config) {
       return StoreField(IdSpec::Parse(text), config.daemon.record.id);
     }},
    {"scope", "partition|topic", "partition", false,
     "Where copies are looked for: in the partition, for keyed records, or in the whole topic", "topic",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Scope>(text, {{{"partition", Scope::kPartition}, {"topic", Scope::kTopic}}},
                                 config.daemon.scope);
     }},
    {"horizon", "DURATION", "24h", false, "How late a copy may come after the first", "24h",
     [](absl::string_view text, RunConfig& config) { return StoreHorizon(text, config.daemon.stage); },
     "1ms to 36525d"},
    {"fpp", "NUMBER", "1e-6", false, "The share of good events that may be taken for duplicates", "1e-6",
     [](absl::string_view text, RunConfig& config) { return StoreFpp(text, config.daemon.stage); },
     "1e-12 to 0.1"},
    {"memory", "SIZE", "1GiB", false, "The limit for all filters together", "1GiB",
     [](absl::string_view text, RunConfig& config) { return StoreMemory(text, config.daemon.stage); },
     "64KiB or more"},
    {"at_memory_limit", "shorten_window|exceed_fpp", "shorten_window", false,
     "What gives way at the memory limit: late copies pass, or more good events are dropped", "exceed_fpp",
     [](absl::string_view text, RunConfig& config) { return StoreAtMemoryLimit(text, config.daemon.stage); }},
    {"engine", "NAME", "sliced", false,
     "The filter: sliced, published, exact, epoch_table, or, without the guarantees: bloom, recycled, "
     "opposite",
     "exact",
     [](absl::string_view text, RunConfig& config) { return StoreEngine(text, config.daemon.stage); }},
    {"adaptation", "budget|paper", "budget", false,
     "How the filter adapts to its load: the engine's own way, or, with published, its paper's", "paper",
     [](absl::string_view text, RunConfig& config) { return StoreAdaptation(text, config.daemon.stage); }},
    {"second_opinion", "none|opposite", "none", false,
     "Who is asked again about what the filter calls a duplicate: an array of ids, as many as fit; what it "
     "does not confirm is a suspect",
     "opposite",
     [](absl::string_view text, RunConfig& config) { return StoreSecondOpinion(text, config.daemon.stage); }},
    {"on_duplicate", "drop|tag|divert", "drop", false,
     "What becomes of a duplicate: tag passes it with a header that says so", "tag",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Action, 3>(
           text, {{{"drop", Action::kDrop}, {"tag", Action::kTag}, {"divert", Action::kDivert}}},
           config.daemon.policies.on_duplicate);
     }},
    {"on_suspect", "pass|drop|tag|divert", "pass", false,
     "What becomes of a suspect: a good event, or a copy that was forgotten", "tag",
     [](absl::string_view text, RunConfig& config) { return StoreActionOnSuspect(text, config.daemon); }},
    {"on_missing_id", "pass|drop|divert|fail", "pass", false,
     "What becomes of a record without a usable id: fail stops its partition", "divert",
     [](absl::string_view text, RunConfig& config) {
       return StoreActionWithoutId(text, config.daemon.policies.on_missing_id);
     }},
    {"on_malformed", "pass|drop|divert|fail", "pass", false,
     "What becomes of a record whose JSON is broken, if the id is in it", "divert",
     [](absl::string_view text, RunConfig& config) {
       return StoreActionWithoutId(text, config.daemon.policies.on_malformed);
     }},
    {"on_undeliverable", "drop|divert|fail", "drop", false,
     "What becomes of a record that the output refuses for good, such as one that is too large", "divert",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Action, 3>(
           text, {{{"drop", Action::kDrop}, {"divert", Action::kDivert}, {"fail", Action::kFail}}},
           config.daemon.policies.on_undeliverable);
     }},
    {"divert", "TOPIC", "", false,
     "The topic for what is diverted; it must exist, with as many partitions as the input", "orders-diverted",
     [](absl::string_view text, RunConfig& config) { return StoreTopic(text, config.daemon.divert); }},
    {"group", "NAME", "lethe-INPUT", false, "The consumer group; its offsets and transactions bear the name",
     "lethe-orders",
     [](absl::string_view text, RunConfig& config) {
       return StoreText(text, "expected the name of a consumer group", config.daemon.group);
     }},
    {"instance", "NAME", "the host's name", false, "This process's name: stable, and unique in the group",
     "lethe-0",
     [](absl::string_view text, RunConfig& config) {
       return StoreText(text, "expected a name that is stable and unique in the group",
                        config.daemon.instance);
     }},
    {"start", "earliest|latest", "earliest", false, "Where to start if the group has committed nothing",
     "latest",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Start>(text, {{{"earliest", Start::kEarliest}, {"latest", Start::kLatest}}},
                                 config.daemon.start);
     }},
    {"delivery", "exactly_once|at_least_once", "exactly_once", false,
     "Whether a crash may repeat what was on its way", "at_least_once",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Delivery>(
           text, {{{"exactly_once", Delivery::kExactlyOnce}, {"at_least_once", Delivery::kAtLeastOnce}}},
           config.daemon.delivery);
     }},
    {"lanes", "NUMBER", "1", false, "Pipelines in this process, each a consumer and a producer with a thread",
     "2",
     [](absl::string_view text, RunConfig& config) {
       return Store(text, ParseWhole<int>(text, 1, 64), config.daemon.lanes);
     },
     "1 to 64"},
    {"assignment", "eager|cooperative", "eager", false,
     "Whether all partitions stop when one moves to another instance, or that one alone", "cooperative",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Assignment>(
           text, {{{"eager", Assignment::kEager}, {"cooperative", Assignment::kCooperative}}},
           config.daemon.assignment);
     }},
    {"static_membership", "true|false", "false", false,
     "Whether a restart within the group's session timeout keeps its partitions", "true",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<bool>(text, {{{"true", true}, {"false", false}}}, config.daemon.static_membership);
     }},
    {"commit_interval", "DURATION", "100ms", false, "How long a transaction stays open: delay against cost",
     "100ms",
     [](absl::string_view text, RunConfig& config) {
       return StoreCommitInterval(text, config.daemon.commit_interval);
     },
     "1ms to 10s"},
    {"on_short_history", "continue|fail", "continue", false,
     "Where the log does not reach back to the horizon: let the copies of what is gone pass, or stop", "fail",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<OnShortHistory>(
           text, {{{"continue", OnShortHistory::kContinue}, {"fail", OnShortHistory::kFail}}},
           config.daemon.on_short_history);
     }},
    {"on_unread_deleted", "fail|continue", "fail", false,
     "Where records were deleted before they were read: stop, or go on without them", "continue",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<OnUnreadDeleted>(
           text, {{{"fail", OnUnreadDeleted::kFail}, {"continue", OnUnreadDeleted::kContinue}}},
           config.daemon.on_unread_deleted);
     }},
    {"snapshots.to", "folder:PATH|topic:NAME|off", "off", false,
     "Where the filters are saved, so that a restart reads less again", "folder:/var/lib/lethe",
     [](absl::string_view text, RunConfig& config) {
       return StoreSnapshotPlace(text, config.daemon.snapshots);
     }},
    {"snapshots.every", "DURATION", "5m", false, "How often each partition's filter is saved", "5m",
     [](absl::string_view text, RunConfig& config) {
       return StoreSnapshotInterval(text, config.daemon.snapshots.every);
     },
     "1s or more"},
    {"counter.key", "FIELD", "", false, "What a unique event counts for", "json:/country",
     [](absl::string_view text, RunConfig& config) {
       return StoreField(Field::Parse(text), config.daemon.record.counter_key);
     }},
    {"counter.delta", "FIELD", "", false, "The whole number that it counts", "json:/amount",
     [](absl::string_view text, RunConfig& config) {
       return StoreField(Field::Parse(text), config.daemon.record.counter_delta);
     }},
    {"counter.output", "TOPIC", "", false,
     "The topic that the counts are written to, one delta for each key in each commit", "orders-by-country",
     [](absl::string_view text, RunConfig& config) {
       return StoreTopic(text, config.daemon.counter_output);
     }},
    {"http", "HOST:PORT|off", "127.0.0.1:9464", false, "Where metrics and health are served",
     "127.0.0.1:9464",
     [](absl::string_view text, RunConfig& config) { return StoreHttp(text, config.http); }},
    {"metrics", "partition|topic", "partition", false,
     "Metrics of each partition, or one figure for all that the process has of the topic", "topic",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<bool>(text, {{{"partition", true}, {"topic", false}}},
                                config.metrics_per_partition);
     }},
    {"log.level", "debug|info|warning|error", "info", false, "The least that is logged", "warning",
     [](absl::string_view text, RunConfig& config) { return StoreLogLevel(text, config.log.level); }},
    {"log.format", "text|json", "text", false, "How the log is written: for people, or an object per line",
     "json",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<LogFormat>(text, {{{"text", LogFormat::kText}, {"json", LogFormat::kJson}}},
                                     config.log.format);
     }},
};

const Setting<RunConfig>* FindSetting(absl::string_view key) {
  for (const Setting<RunConfig>& setting : kSettings) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

// The section that a key belongs to; empty at the top level.
absl::string_view SectionOf(absl::string_view key) {
  const size_t dot = key.find('.');
  return dot == absl::string_view::npos ? "" : key.substr(0, dot);
}

bool IsSection(absl::string_view key) { return key == kKafka || absl::c_linear_search(kSections, key); }

std::vector<std::string> KeysOf(absl::string_view section) {
  std::vector<std::string> keys;
  for (const Setting<RunConfig>& setting : kSettings) {
    if (SectionOf(setting.key) == section) keys.emplace_back(setting.key);
  }
  if (!section.empty()) return keys;
  for (const absl::string_view name : kSections) keys.emplace_back(name);
  keys.emplace_back(kKafka);
  return keys;
}

absl::Status CheckProperty(const std::string& name, const std::string& place) {
  const std::optional<absl::string_view> reason = kafka::WhyFixed(name);
  if (!reason) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(place, ": this property cannot be set: ", *reason));
}

absl::string_view Found(ConfigEntry::Shape shape) {
  switch (shape) {
    case ConfigEntry::Shape::kText:
      return "a single value";
    case ConfigEntry::Shape::kNothing:
      return "nothing";
    case ConfigEntry::Shape::kList:
      return "a list";
    case ConfigEntry::Shape::kMap:
      return "a section of keys";
  }
  return "";
}

// Puts a configuration together, and remembers where each value came from, since whether values agree with
// one another is only known at the end.
class Assembler {
 public:
  explicit Assembler(std::string file_name) : file_name_(std::move(file_name)) {}

  absl::Status AddFile(const ConfigText& file);
  absl::Status AddFlags(const RunFlags& flags);
  absl::StatusOr<RunConfig> Finish();
  // Once Finish has said that it is right.
  std::vector<EffectiveValue> Effective() const;

 private:
  absl::Status AddEntry(const ConfigEntry& entry, const std::string& place);
  absl::Status Set(const Setting<RunConfig>& setting, absl::string_view text, const std::string& place,
                   const std::string& origin);
  void SetProperty(const std::string& name, const std::string& value, const std::string& origin);
  EffectiveValue EffectiveProperty(const kafka::Property& property) const;
  absl::Status CheckMissing() const;
  absl::Status CheckTopics() const;
  absl::Status CheckDivert() const;
  absl::Status CheckScope() const;
  absl::Status CheckStage() const;

  const std::string file_name_;  // empty if there is none
  RunConfig config_;
  std::map<std::string, std::string, std::less<>> places_;    // by key
  std::map<std::string, EffectiveValue, std::less<>> given_;  // by key; those of `kafka` by "kafka.NAME"
};

absl::Status UnknownKey(const ConfigEntry& entry, const std::string& place) {
  const std::vector<std::string> keys = KeysOf(entry.section);
  std::string hint;
  if (std::optional<std::string> nearest = Nearest(entry.Path(), keys)) {
    hint = absl::StrCat("did you mean ", *nearest, "?");
  } else if (entry.section.empty() && FindSetting(entry.key) != nullptr) {
    hint = absl::StrCat("write ", entry.key.substr(entry.key.find('.') + 1), " under '", SectionOf(entry.key),
                        ":'");
  } else if (entry.section.empty() && absl::StrContains(entry.key, '.')) {
    hint = "a property of librdkafka goes under 'kafka:'";
  } else {
    hint = absl::StrCat("the keys are ", absl::StrJoin(keys, ", "));
  }
  return absl::InvalidArgumentError(absl::StrCat(place, ": unknown key; ", hint));
}

absl::Status Assembler::AddFile(const ConfigText& file) {
  absl::StatusOr<std::vector<ConfigEntry>> entries = ParseConfigText(file);
  if (!entries.ok()) return entries.status();
  for (const ConfigEntry& entry : *entries) {
    const std::string place = absl::StrCat(file.name, ":", entry.line, ": ", entry.Path());
    if (absl::Status status = AddEntry(entry, place); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Assembler::AddEntry(const ConfigEntry& entry, const std::string& place) {
  const bool is_section = entry.section.empty() && IsSection(entry.key);
  const bool is_property = entry.section == kKafka;
  const Setting<RunConfig>* setting = nullptr;
  if (!is_section && !is_property) {
    // `counter.key: x` at the top level would otherwise be a second way to say the same.
    const bool is_dotted = entry.section.empty() && absl::StrContains(entry.key, '.');
    setting = is_dotted ? nullptr : FindSetting(entry.Path());
    if (setting == nullptr) return UnknownKey(entry, place);
  }
  const ConfigEntry::Shape wanted = is_section ? ConfigEntry::Shape::kMap : ConfigEntry::Shape::kText;
  if (entry.shape != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": expected ", Found(wanted), ", found ", Found(entry.shape)));
  }
  if (is_section) return absl::OkStatus();
  absl::StatusOr<std::string> text = ExpandReferences(entry.text);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat(place, ": ", text.status().message()));
  const bool is_expanded = *text != entry.text && absl::StrContains(entry.text, "${");
  const std::string origin =
      absl::StrCat(file_name_, ":", entry.line, is_expanded ? kFromEnvironment : absl::string_view());
  if (!is_property) return Set(*setting, *text, place, origin);
  if (absl::Status status = CheckProperty(entry.key, place); !status.ok()) return status;
  SetProperty(entry.key, *text, origin);
  return absl::OkStatus();
}

absl::Status Assembler::AddFlags(const RunFlags& flags) {
  for (const auto& [key, text] : flags.values) {
    if (absl::Status status = Set(*FindSetting(key), text, FlagOf(key), FlagOf(key)); !status.ok())
      return status;
  }
  const absl::StatusOr<std::vector<kafka::Property>> properties = ParseProperties(flags.kafka);
  if (!properties.ok()) return properties.status();
  for (const auto& [name, value] : *properties) SetProperty(name, value, "--kafka");
  config_.daemon.exit_at_end = flags.exit_at_end;
  return absl::OkStatus();
}

absl::Status Assembler::Set(const Setting<RunConfig>& setting, absl::string_view text,
                            const std::string& place, const std::string& origin) {
  if (absl::Status status = setting.set(text, config_); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", status.message()));
  }
  places_[std::string(setting.key)] = place;
  config_.texts[std::string(setting.key)] = std::string(text);
  given_[std::string(setting.key)] = {std::string(setting.key), std::string(text), origin};
  return absl::OkStatus();
}

void Assembler::SetProperty(const std::string& name, const std::string& value, const std::string& origin) {
  const std::string key = absl::StrCat(kKafka, ".", name);
  given_[key] = {key, value, origin};
  std::vector<kafka::Property>& properties = config_.daemon.properties;
  const auto same = std::find_if(properties.begin(), properties.end(),
                                 [&](const kafka::Property& property) { return property.first == name; });
  if (same == properties.end()) {
    properties.emplace_back(name, value);
  } else {
    same->second = value;
  }
}

absl::Status Assembler::CheckMissing() const {
  const bool counts = std::any_of(std::begin(kCounterKeys), std::end(kCounterKeys),
                                  [&](absl::string_view key) { return places_.contains(key); });
  std::vector<std::string> missing;
  for (const Setting<RunConfig>& setting : kSettings) {
    const bool needed = setting.required || (counts && absl::StartsWith(setting.key, "counter."));
    if (needed && !places_.contains(setting.key)) {
      const std::string name = file_name_.empty()
                                   ? FlagOf(setting.key)
                                   : absl::StrCat(setting.key, " (or ", FlagOf(setting.key), ")");
      missing.push_back(absl::StrCat(name, ", for example ", setting.example));
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file_name_, file_name_.empty() ? "" : ": ", "missing ", absl::StrJoin(missing, "; ")));
}

// A topic that is written and also read, or written as two things, would go round or be unreadable.
absl::Status Assembler::CheckTopics() const {
  const kafka::DaemonOptions& daemon = config_.daemon;
  const std::pair<absl::string_view, const std::string*> topics[] = {
      {"input", &daemon.input},
      {"output", &daemon.output},
      {"counter.output", &daemon.counter_output},
      {"divert", &daemon.divert},
      {"snapshots.to", &daemon.snapshots.topic}};
  for (size_t later = 1; later < std::size(topics); ++later) {
    for (size_t earlier = 0; earlier < later; ++earlier) {
      if (!topics[later].second->empty() && *topics[earlier].second == *topics[later].second) {
        return absl::InvalidArgumentError(absl::StrCat(places_.find(topics[later].first)->second, ": \"",
                                                       *topics[later].second, "\" is also the ",
                                                       topics[earlier].first, "; expected another topic"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Assembler::CheckDivert() const {
  const kafka::Policies& policies = config_.daemon.policies;
  if (!policies.diverts() || !config_.daemon.divert.empty()) return absl::OkStatus();
  for (const auto& [key, action] : {std::pair("on_duplicate", policies.on_duplicate),
                                    {"on_suspect", policies.on_suspect},
                                    {"on_missing_id", policies.on_missing_id},
                                    {"on_malformed", policies.on_malformed},
                                    {"on_undeliverable", policies.on_undeliverable}}) {
    if (action != Action::kDivert) continue;
    return absl::InvalidArgumentError(absl::StrCat(places_.find(key)->second,
                                                   ": divert needs a topic: set divert (or --divert), for "
                                                   "example orders-diverted"));
  }
  return absl::OkStatus();
}

// The group's name is part of the name of a topic then.
absl::Status Assembler::CheckScope() const {
  if (config_.daemon.scope != Scope::kTopic || IsTopicName(kafka::RepartitionTopic(config_.daemon))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(places_.find("scope")->second, ": topic needs a topic of its own, and \"",
                   kafka::RepartitionTopic(config_.daemon),
                   "\" is no name of one; choose a shorter group, of letters, digits, '.', '_' and '-'"));
}

// Each value was good by itself; an engine may have limits of its own.
absl::Status Assembler::CheckStage() const {
  const absl::Status status = Validate(config_.daemon.stage);
  if (status.ok()) return status;
  // What the stage complains of, and the key to blame for it.
  constexpr std::pair<absl::string_view, absl::string_view> kBlamed[] = {
      {"adaptation: ", "adaptation"},
      {"second_opinion: ", "second_opinion"},
      {"pass_suspects: ", "on_suspect"}};
  absl::string_view message = status.message();
  absl::string_view key = "engine";
  for (const auto& [complaint, blamed] : kBlamed) {
    if (absl::ConsumePrefix(&message, complaint)) key = blamed;
  }
  const auto place = places_.find(key);
  if (place == places_.end()) return status;
  return absl::InvalidArgumentError(absl::StrCat(place->second, ": ", message));
}

absl::StatusOr<RunConfig> Assembler::Finish() {
  if (absl::Status status = CheckMissing(); !status.ok()) return status;
  if (absl::Status status = CheckTopics(); !status.ok()) return status;
  if (absl::Status status = CheckDivert(); !status.ok()) return status;
  if (!config_.daemon.policies.diverts()) config_.daemon.divert.clear();  // nothing would be written to it
  if (absl::Status status = CheckStage(); !status.ok()) return status;
  config_.fingerprint = FingerprintOf(config_);
  if (config_.daemon.group.empty()) config_.daemon.group = absl::StrCat("lethe-", config_.daemon.input);
  if (absl::Status status = CheckScope(); !status.ok()) return status;
  if (config_.daemon.instance.empty()) {
    char name[256] = "";
    if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') {
      return absl::InvalidArgumentError("this host has no name; set instance (or --instance)");
    }
    config_.daemon.instance = name;
  }
  return config_;
}

EffectiveValue Assembler::EffectiveProperty(const kafka::Property& property) const {
  EffectiveValue value = given_.at(absl::StrCat(kKafka, ".", property.first));
  // What comes from the environment does so because it is nobody's business.
  value.is_secret = kafka::IsSecret(property.first) || absl::EndsWith(value.origin, kFromEnvironment);
  if (value.is_secret) value.text.clear();
  return value;
}

std::vector<EffectiveValue> Assembler::Effective() const {
  std::vector<EffectiveValue> values;
  for (const Setting<RunConfig>& setting : kSettings) {
    const auto given = given_.find(setting.key);
    if (given != given_.end()) {
      values.push_back(given->second);
    } else if (!setting.fallback.empty()) {
      const absl::string_view key = setting.key;
      const std::string text = key == "group"      ? config_.daemon.group
                               : key == "instance" ? config_.daemon.instance
                                                   : std::string(setting.fallback);
      values.push_back({std::string(setting.key), text, "default"});
    }
  }
  // Sections come last, each in one piece.
  std::stable_partition(values.begin(), values.end(),
                        [](const EffectiveValue& value) { return !absl::StrContains(value.key, '.'); });
  for (const kafka::Property& property : config_.daemon.properties) {
    values.push_back(EffectiveProperty(property));
  }
  return values;
}

}  // namespace

absl::Span<const Setting<RunConfig>> RunSettings() { return kSettings; }

std::string TextOf(const RunConfig& config, const Setting<RunConfig>& setting) {
  const auto found = config.texts.find(setting.key);
  return found == config.texts.end() ? std::string(setting.fallback) : found->second;
}

// 64 bits are plenty to tell a handful of configurations apart, and too few of a hash to learn one from.
std::string FingerprintOf(const RunConfig& config) {
  std::string effective;
  for (const Setting<RunConfig>& setting : kSettings) {
    if (setting.key == "instance" || setting.key == "http") continue;
    absl::StrAppend(&effective, setting.key, "=", TextOf(config, setting), "\n");
  }
  std::vector<kafka::Property> properties = config.daemon.properties;
  std::sort(properties.begin(), properties.end());
  for (const auto& [name, value] : properties) {
    absl::StrAppend(&effective, name, "=", kafka::IsSecret(name) ? "" : value, "\n");
  }
  return absl::StrCat(absl::Hex(HashId(effective, 0).a, absl::kZeroPad16));
}

absl::StatusOr<std::vector<kafka::Property>> ParseProperties(const std::vector<std::string>& given) {
  std::vector<kafka::Property> properties;
  for (const std::string& property : given) {
    const size_t equals = property.find('=');
    const std::string name = property.substr(0, equals);
    if (equals == std::string::npos || name.empty()) {
      return absl::InvalidArgumentError("--kafka: expected NAME=VALUE, such as security.protocol=SSL");
    }
    const std::string place = absl::StrCat("--kafka ", name);
    for (const auto& [earlier, value] : properties) {
      if (earlier == name) return absl::InvalidArgumentError(absl::StrCat(place, ": given twice"));
    }
    if (absl::Status status = CheckProperty(name, place); !status.ok()) return status;
    properties.emplace_back(name, property.substr(equals + 1));
  }
  return properties;
}

absl::StatusOr<RunConfig> MakeRunConfig(const std::optional<ConfigText>& file, const RunFlags& flags,
                                        std::vector<EffectiveValue>* effective) {
  Assembler assembler(file ? file->name : "");
  if (file) {
    if (absl::Status status = assembler.AddFile(*file); !status.ok()) return status;
  }
  if (absl::Status status = assembler.AddFlags(flags); !status.ok()) return status;
  absl::StatusOr<RunConfig> config = assembler.Finish();
  if (config.ok() && effective != nullptr) *effective = assembler.Effective();
  return config;
}

}  // namespace lethe
