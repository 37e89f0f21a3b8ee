#include "src/cli/config.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "connectors/http/http_server.h"
#include "connectors/kafka/fixed_properties.h"
#include "connectors/kafka/repartition.h"
#include "src/cli/suggestion.h"
#include "src/cli/units.h"

namespace lethe {
namespace {

constexpr absl::string_view kKafka = "kafka";
constexpr absl::string_view kCounter = "counter";
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

// Kafka's own rule for the names of topics.
bool IsTopicName(absl::string_view text) {
  const bool is_legal = std::all_of(text.begin(), text.end(), [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  return is_legal && !text.empty() && text.size() <= 249 && text != "." && text != "..";
}

absl::Status StoreTopic(absl::string_view text, std::string& target) {
  if (!IsTopicName(text)) {
    return BadValue(text, "expected the name of one topic: at most 249 letters, digits, '.', '_' or '-'");
  }
  target = std::string(text);
  return absl::OkStatus();
}

using kafka::Action;
using kafka::Delivery;
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
     [](absl::string_view text, RunConfig& config) { return StoreHorizon(text, config.daemon.stage); }},
    {"fpp", "NUMBER", "1e-6", false, "The share of good events that may be taken for duplicates", "1e-6",
     [](absl::string_view text, RunConfig& config) { return StoreFpp(text, config.daemon.stage); }},
    {"memory", "SIZE", "1GiB", false, "The limit for all filters together", "1GiB",
     [](absl::string_view text, RunConfig& config) { return StoreMemory(text, config.daemon.stage); }},
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
    {"on_duplicate", "drop|tag|divert", "drop", false,
     "What becomes of a duplicate: tag passes it with a header that says so", "tag",
     [](absl::string_view text, RunConfig& config) {
       return StoreChoice<Action, 3>(
           text, {{{"drop", Action::kDrop}, {"tag", Action::kTag}, {"divert", Action::kDivert}}},
           config.daemon.policies.on_duplicate);
     }},
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
     }},
    {"commit_interval", "DURATION", "100ms", false, "How long a transaction stays open: delay against cost",
     "100ms",
     [](absl::string_view text, RunConfig& config) {
       return StoreCommitInterval(text, config.daemon.commit_interval);
     }},
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
};

const Setting<RunConfig>* FindSetting(absl::string_view key) {
  for (const Setting<RunConfig>& setting : kSettings) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

std::vector<std::string> KeysOf(absl::string_view section) {
  std::vector<std::string> keys;
  for (const Setting<RunConfig>& setting : kSettings) {
    const bool is_counter = absl::StartsWith(setting.key, "counter.");
    if (is_counter == (section == kCounter)) keys.emplace_back(setting.key);
  }
  if (section.empty()) keys.insert(keys.end(), {std::string(kCounter), std::string(kKafka)});
  return keys;
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
  absl::StatusOr<RunConfig> Finish() &&;

 private:
  absl::Status AddEntry(const ConfigEntry& entry, const std::string& place);
  absl::Status Set(const Setting<RunConfig>& setting, absl::string_view text, const std::string& place);
  absl::Status SetProperty(const std::string& name, const std::string& value, const std::string& place);
  absl::Status CheckMissing() const;
  absl::Status CheckTopics() const;
  absl::Status CheckDivert() const;
  absl::Status CheckScope() const;
  absl::Status CheckStage() const;

  const std::string file_name_;  // empty if there is none
  RunConfig config_;
  std::map<std::string, std::string, std::less<>> places_;  // by key
};

absl::Status UnknownKey(const ConfigEntry& entry, const std::string& place) {
  const std::vector<std::string> keys = KeysOf(entry.section);
  std::string hint;
  if (std::optional<std::string> nearest = Nearest(entry.Path(), keys)) {
    hint = absl::StrCat("did you mean ", *nearest, "?");
  } else if (entry.section.empty() && FindSetting(entry.key) != nullptr) {
    hint = absl::StrCat("write ", entry.key.substr(entry.key.find('.') + 1), " under 'counter:'");
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
  const bool is_section = entry.section.empty() && (entry.key == kCounter || entry.key == kKafka);
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
  absl::StatusOr<std::string> text = ExpandEnvironment(entry.text);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat(place, ": ", text.status().message()));
  return is_property ? SetProperty(entry.key, *text, place) : Set(*setting, *text, place);
}

absl::Status Assembler::AddFlags(const RunFlags& flags) {
  for (const auto& [key, text] : flags.values) {
    if (absl::Status status = Set(*FindSetting(key), text, FlagOf(key)); !status.ok()) return status;
  }
  std::map<std::string, bool> seen;
  for (const std::string& property : flags.kafka) {
    const size_t equals = property.find('=');
    const std::string name = property.substr(0, equals);
    if (equals == std::string::npos || name.empty()) {
      return absl::InvalidArgumentError("--kafka: expected NAME=VALUE, such as security.protocol=SSL");
    }
    const std::string place = absl::StrCat("--kafka ", name);
    if (!seen.emplace(name, true).second) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": given twice"));
    }
    if (absl::Status status = SetProperty(name, property.substr(equals + 1), place); !status.ok()) {
      return status;
    }
  }
  config_.daemon.exit_at_end = flags.exit_at_end;
  return absl::OkStatus();
}

absl::Status Assembler::Set(const Setting<RunConfig>& setting, absl::string_view text,
                            const std::string& place) {
  if (absl::Status status = setting.set(text, config_); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", status.message()));
  }
  places_[std::string(setting.key)] = place;
  return absl::OkStatus();
}

absl::Status Assembler::SetProperty(const std::string& name, const std::string& value,
                                    const std::string& place) {
  if (std::optional<absl::string_view> reason = kafka::WhyFixed(name)) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": this property cannot be set: ", *reason));
  }
  std::vector<kafka::Property>& properties = config_.daemon.properties;
  const auto same = std::find_if(properties.begin(), properties.end(),
                                 [&](const kafka::Property& property) { return property.first == name; });
  if (same == properties.end()) {
    properties.emplace_back(name, value);
  } else {
    same->second = value;
  }
  return absl::OkStatus();
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
      {"divert", &daemon.divert}};
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
  const bool is_paper = config_.daemon.stage.adaptation == Adaptation::kPaper;
  const auto place = places_.find(is_paper ? "adaptation" : "engine");
  if (place == places_.end()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(place->second, ": ", absl::StripPrefix(status.message(), "adaptation: ")));
}

absl::StatusOr<RunConfig> Assembler::Finish() && {
  if (absl::Status status = CheckMissing(); !status.ok()) return status;
  if (absl::Status status = CheckTopics(); !status.ok()) return status;
  if (absl::Status status = CheckDivert(); !status.ok()) return status;
  if (!config_.daemon.policies.diverts()) config_.daemon.divert.clear();  // nothing would be written to it
  if (absl::Status status = CheckStage(); !status.ok()) return status;
  if (config_.daemon.group.empty()) config_.daemon.group = absl::StrCat("lethe-", config_.daemon.input);
  if (absl::Status status = CheckScope(); !status.ok()) return status;
  if (config_.daemon.instance.empty()) {
    char name[256] = "";
    if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') {
      return absl::InvalidArgumentError("this host has no name; set instance (or --instance)");
    }
    config_.daemon.instance = name;
  }
  return std::move(config_);
}

}  // namespace

absl::Span<const Setting<RunConfig>> RunSettings() { return kSettings; }

absl::StatusOr<RunConfig> MakeRunConfig(const std::optional<ConfigText>& file, const RunFlags& flags) {
  Assembler assembler(file ? file->name : "");
  if (file) {
    if (absl::Status status = assembler.AddFile(*file); !status.ok()) return status;
  }
  if (absl::Status status = assembler.AddFlags(flags); !status.ok()) return status;
  return std::move(assembler).Finish();
}

}  // namespace lethe
