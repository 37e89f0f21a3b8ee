#include "src/cli/config/config.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "lethe/event.h"
#include "src/cli/config/removed.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/options/topic_list.h"
#include "src/text/format.h"
#include "src/text/suggestion.h"

namespace lethe {
namespace {

constexpr absl::string_view kKafka = "kafka";
// The sections whose keys are settings.
constexpr absl::string_view kSections[] = {"snapshots", "schema_registry", "log"};
constexpr absl::string_view kFromEnvironment = ", from the environment";
constexpr absl::string_view kCounters = "counters";
// Records are read for all of them at once.
constexpr size_t kMostCounters = 16;

template <class Options>
const Setting<Options>* FindSetting(absl::Span<const Setting<Options>> settings, absl::string_view key) {
  const auto found = absl::c_find_if(settings, [&](const auto& setting) { return setting.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

// The section that a key belongs to; empty at the top level.
absl::string_view SectionOf(absl::string_view key) {
  const size_t dot = key.find('.');
  return dot == absl::string_view::npos ? "" : key.substr(0, dot);
}

bool IsSection(absl::string_view key) { return key == kKafka || absl::c_linear_search(kSections, key); }

std::vector<std::string> KeysOf(absl::string_view section) {
  std::vector<std::string> keys;
  if (section == kCounters) {
    for (const Setting<CounterConfig>& setting : CounterSettings()) keys.emplace_back(setting.key);
    return keys;
  }
  for (const Setting<RunConfig>& setting : RunSettings()) {
    if (SectionOf(setting.key) == section) keys.emplace_back(setting.key);
  }
  if (!section.empty()) return keys;
  for (const absl::string_view name : kSections) keys.emplace_back(name);
  keys.emplace_back(kCounters);
  keys.emplace_back(kTopics);
  keys.emplace_back(kKafka);
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

// A value as it was given, and its place for messages.
struct GivenValue {
  EffectiveValue value;
  std::string place;
};
using GivenValues = std::map<std::string, GivenValue, std::less<>>;  // by key

// Stores the value in `options`, and notes it in `given`.
template <class Options>
absl::Status Set(const Setting<Options>& setting, absl::string_view text, const std::string& place,
                 const std::string& origin, Options& options, GivenValues& given) {
  if (absl::Status status = setting.set(text, options); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", status.message()));
  }
  const std::string key(setting.key);
  given[key] = {{key, std::string(text), origin}, place};
  return absl::OkStatus();
}

// Puts a configuration together, and remembers where each value came from, since whether values agree with
// one another is only known at the end.
class Assembler {
 public:
  Assembler(std::string file_name, const std::optional<CgroupLimit>& limit)
      : file_name_(std::move(file_name)) {
    config_.limit = limit;
    if (limit) config_.daemon.stage.memory_limit_bytes = DefaultMemory(*limit);
  }

  absl::Status AddFile(const ConfigText& file);
  absl::Status AddFlags(const RunFlags& flags);
  // Where the file has `topics`: finishes each entry on top of the rest.
  absl::StatusOr<RunConfig> FinishTopics();
  bool has_topics() const { return !topics_.empty(); }
  absl::StatusOr<RunConfig> Finish();
  // Once Finish has said that it is right.
  std::vector<EffectiveValue> Effective() const;

 private:
  absl::Status AddEntry(const ConfigEntry& entry, const std::string& place);
  std::string OriginOf(const ConfigEntry& entry, const std::string& expanded) const {
    const bool is_expanded = expanded != entry.text && absl::StrContains(entry.text, "${");
    return absl::StrCat(file_name_, ":", entry.line, is_expanded ? kFromEnvironment : absl::string_view());
  }
  absl::Status AddCounterEntry(const ConfigEntry& entry, const std::string& place);
  absl::Status AddCounterFlag(const std::string& given);
  absl::Status SetProperty(const std::string& name, const std::string& value, const std::string& place,
                           const std::string& origin);
  EffectiveValue EffectiveProperty(const Property& property) const;
  // The value of static_membership where it is not set, as text.
  std::string DefaultMembership() const {
    return config_.daemon.static_membership == StaticMembership::kAfterCrash ? "crash" : "false";
  }
  std::string DefaultMemoryText() const { return BytesSetting(config_.daemon.stage.memory_limit_bytes); }
  absl::Status CheckMissing() const;
  absl::Status FinishCounters();
  absl::Status CheckNames() const;
  absl::Status CheckTopics() const;
  absl::Status CheckDivert() const;
  // Several inputs are one scope.
  absl::Status CheckMerged();
  absl::Status CheckScope() const;
  absl::Status CheckStage() const;
  absl::Status CheckSchemas();

  // One of `topics`, which has what all have.
  explicit Assembler(const Assembler& all, int topic)
      : file_name_(all.file_name_),
        topic_(topic),
        config_(all.config_),
        given_(all.given_),
        counters_(all.counters_) {}
  absl::Status AddTopicEntry(const ConfigEntry& entry, const std::string& place);

  const std::string file_name_;  // empty if there is none
  const int topic_ = -1;         // of the entry of `topics`
  kafka::ClientConfig checked_;  // what librdkafka says to each property is known with its place
  RunConfig config_;
  GivenValues given_;  // those of `kafka` by "kafka.NAME"

  // One of `counters`.
  struct CounterDraft {
    CounterConfig config;
    GivenValues given;  // by the key within it
    std::string place;  // of all of it
  };
  std::vector<CounterDraft> counters_;
  bool has_own_counters_ = false;  // of an entry of `topics`

  // The entries of `topics`; then what each of them has set.
  std::vector<std::vector<ConfigEntry>> topics_;
  std::vector<EffectiveValue> topic_values_;
};

absl::Status UnknownKey(const ConfigEntry& entry, const std::string& place) {
  if (const std::string removed = RemovedText(entry.Key()); !removed.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", removed));
  }
  const std::vector<std::string> keys = KeysOf(entry.section);
  std::string hint;
  const std::string path = entry.section == kCounters ? entry.key : entry.Key();
  if (std::optional<std::string> nearest = Nearest(path, keys)) {
    hint = absl::StrCat("did you mean ", *nearest, "?");
  } else if (entry.section.empty() && FindSetting(RunSettings(), entry.key) != nullptr) {
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
    if (entry.topic < 0) {
      if (absl::Status status = AddEntry(entry, place); !status.ok()) return status;
    } else if (entry.key.empty() && entry.section.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": expected the keys of a topic, found ", Found(entry.shape)));
    } else {
      topics_.resize(static_cast<size_t>(entry.topic) + 1);
      topics_.back().push_back(entry);
    }
  }
  return absl::OkStatus();
}

absl::Status Assembler::AddCounterEntry(const ConfigEntry& entry, const std::string& place) {
  if (entry.section.empty()) {
    if (entry.shape == ConfigEntry::Shape::kList) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": expected a list of counters, found ", Found(entry.shape)));
  }
  if (entry.key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": expected a counter's keys, found ", Found(entry.shape)));
  }
  const auto counter = static_cast<size_t>(entry.item);
  if (counters_.size() <= counter) {
    counters_.resize(counter + 1);
    counters_[counter].place = absl::StrCat(file_name_, ":", entry.line, ": ",
                                            absl::StripSuffix(entry.Path(), absl::StrCat(".", entry.key)));
  }
  const Setting<CounterConfig>* setting = FindSetting(CounterSettings(), entry.key);
  if (setting == nullptr) return UnknownKey(entry, place);
  if (entry.shape != ConfigEntry::Shape::kText) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": expected a single value, found ", Found(entry.shape)));
  }
  const absl::StatusOr<std::string> text = ExpandReferences(entry.text);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat(place, ": ", text.status().message()));
  CounterDraft& draft = counters_[counter];
  return Set(*setting, *text, place, OriginOf(entry, *text), draft.config, draft.given);
}

absl::Status Assembler::AddCounterFlag(const std::string& given) {
  const std::string flag = "--counter";
  CounterDraft draft;
  draft.place = flag;
  for (const absl::string_view part : absl::StrSplit(given, ',')) {
    const size_t equals = part.find('=');
    const absl::string_view key = part.substr(0, equals);
    const Setting<CounterConfig>* setting = FindSetting(CounterSettings(), key);
    if (equals == absl::string_view::npos || setting == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, ": expected ", CounterFlagType(), "; the keys are ", absl::StrJoin(KeysOf(kCounters), ", "),
          "; a counter whose values have commas goes into a file"));
    }
    if (key == kStorePassword) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": every user of this host can read a secret on the command line. Put ",
                       kStorePassword, " into the configuration file, as ${file:PATH} or ${VARIABLE}"));
    }
    const std::string place = absl::StrCat(flag, ": ", key);
    if (draft.given.contains(key)) return absl::InvalidArgumentError(absl::StrCat(place, ": given twice"));
    absl::Status set = Set(*setting, part.substr(equals + 1), place, flag, draft.config, draft.given);
    if (!set.ok()) return set;
  }
  // A flag wins over the file, here for the counter of its name.
  const auto same = absl::c_find_if(counters_, [&](const CounterDraft& other) {
    return other.place != flag && other.config.options.name == draft.config.options.name;
  });
  if (same == counters_.end()) {
    counters_.push_back(std::move(draft));
  } else {
    *same = std::move(draft);
  }
  return absl::OkStatus();
}

absl::Status Assembler::FinishCounters() {
  if (counters_.size() > kMostCounters) {
    return absl::InvalidArgumentError(absl::StrCat(counters_[kMostCounters].place, ": expected at most ",
                                                   kMostCounters, " counters; others take another lethe"));
  }
  std::set<std::string> names;
  std::string texts;
  for (CounterDraft& draft : counters_) {
    CounterConfig& config = draft.config;
    for (const Setting<CounterConfig>& setting : CounterSettings()) {
      const auto given = draft.given.find(setting.key);
      if (given != draft.given.end() && setting.key != kStorePassword)
        absl::StrAppend(&texts, setting.key, "=", given->second.value.text, "\n");
      if (!setting.required || given != draft.given.end()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(draft.place, ": missing ", setting.key, ", for example ", setting.example));
    }
    if (config.when.has_value() != config.equals.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(draft.place, ": `when` and `equals` go together: a field, and what must be there"));
    }
    if (config.when) config.options.spec.when = {*config.when, *config.equals};
    if (config.options.mode == CounterMode::kTotal && config_.daemon.delivery != Delivery::kExactlyOnce) {
      return absl::InvalidArgumentError(
          absl::StrCat(draft.place,
                       ": mode: total needs delivery: exactly_once, because records replayed after a crash "
                       "would be counted twice; use mode: delta"));
    }
    if (!config.options.store.empty() && config.options.mode != CounterMode::kTotal) {
      return absl::InvalidArgumentError(
          absl::StrCat(draft.place, ": a store needs mode: total, which can be brought there again"));
    }
    if (config.options.store.empty() && !config.options.store_password.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(draft.place, ": ", kStorePassword,
                                                     " needs a store, such as redis://127.0.0.1:6379/0"));
    }
    if (!names.insert(config.options.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(draft.place, ": another counter has the name \"", config.options.name, "\""));
    }
    config_.daemon.counters.push_back(config.options);
  }
  if (!texts.empty()) config_.texts[std::string(kCounters)] = texts;
  return absl::OkStatus();
}

absl::Status Assembler::AddTopicEntry(const ConfigEntry& entry, const std::string& place) {
  if (entry.section == kCounters || (entry.section.empty() && entry.key == kCounters)) {
    if (!std::exchange(has_own_counters_, true)) counters_.clear();
    return AddCounterEntry(entry, place);
  }
  const std::string key = entry.Key();
  if (!IsTopicSetting(key) && (FindSetting(RunSettings(), key) != nullptr || IsSection(entry.key))) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": all topics have this in common; set it at the top level"));
  }
  return AddEntry(entry, place);
}

absl::Status Assembler::AddEntry(const ConfigEntry& entry, const std::string& place) {
  if (entry.section.empty() && entry.key == kTopics && topic_ < 0) {
    if (entry.shape == ConfigEntry::Shape::kList) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": expected a list of topics, found ", Found(entry.shape)));
  }
  if (entry.section == kCounters || (entry.section.empty() && entry.key == kCounters)) {
    return AddCounterEntry(entry, place);
  }
  const bool is_section = entry.section.empty() && IsSection(entry.key);
  const bool is_property = entry.section == kKafka;
  const Setting<RunConfig>* setting = nullptr;
  if (!is_section && !is_property) {
    // `log.level: x` at the top level would otherwise be a second way to say the same.
    const bool is_dotted = entry.section.empty() && absl::StrContains(entry.key, '.');
    setting = is_dotted ? nullptr : FindSetting(RunSettings(), entry.Key());
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
  const std::string origin = OriginOf(entry, *text);
  if (!is_property) return Set(*setting, *text, place, origin, config_, given_);
  if (absl::Status status = CheckProperty(entry.key, place); !status.ok()) return status;
  return SetProperty(entry.key, *text, place, origin);
}

absl::Status Assembler::AddFlags(const RunFlags& flags) {
  for (const auto& [key, text] : flags.values) {
    const std::string flag = FlagOf(key);
    const absl::StatusOr<std::string> value = FlagValue(key, text);
    if (!value.ok()) return absl::InvalidArgumentError(absl::StrCat(flag, ": ", value.status().message()));
    absl::Status status = Set(*FindSetting(RunSettings(), key), *value, flag, flag, config_, given_);
    if (!status.ok()) return status;
  }
  for (const std::string& counter : flags.counters) {
    if (absl::Status status = AddCounterFlag(counter); !status.ok()) return status;
  }
  GivenProperties properties;
  for (const std::string& given : flags.kafka) {
    if (absl::Status status = AddProperty(given, properties); !status.ok()) return status;
  }
  for (const auto& [name, value] : properties.values) {
    const std::string place = absl::StrCat("--kafka ", name);
    if (absl::Status status = SetProperty(name, value, place, "--kafka"); !status.ok()) return status;
  }
  config_.warning = kafka::SecretsOnCommandLine(properties.exposed);
  config_.daemon.exit_at_end = flags.exit_at_end;
  return absl::OkStatus();
}

absl::Status Assembler::SetProperty(const std::string& name, const std::string& value,
                                    const std::string& place, const std::string& origin) {
  if (const absl::Status& status = checked_.Set(name, value).status(); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", status.message()));
  }
  const std::string key = absl::StrCat(kKafka, ".", name);
  given_[key] = {{key, value, origin}, place};
  std::vector<Property>& properties = config_.daemon.properties;
  const auto same = std::find_if(properties.begin(), properties.end(),
                                 [&](const Property& property) { return property.first == name; });
  if (same == properties.end()) {
    properties.emplace_back(name, value);
  } else {
    same->second = value;
  }
  return absl::OkStatus();
}

absl::Status Assembler::CheckMissing() const {
  std::vector<std::string> missing;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    // A name that follows from the input would change with the first topic.
    const bool is_required = setting.required || (topic_ >= 0 && setting.key == "group");
    if (is_required && !given_.contains(setting.key)) {
      const bool is_of_topic = topic_ >= 0 && (setting.key == "input" || setting.key == "output");
      const std::string name = is_of_topic ? std::string(setting.key)
                               : file_name_.empty()
                                   ? FlagOf(setting.key)
                                   : absl::StrCat(setting.key, " (or ", FlagOf(setting.key), ")");
      missing.push_back(absl::StrCat(name, ", for example ", setting.example));
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file_name_, file_name_.empty() ? "" : ": ",
                                                 topic_ < 0 ? "" : absl::StrCat(kTopics, "[", topic_, "]: "),
                                                 "missing ", absl::StrJoin(missing, "; ")));
}

// A pattern and its groups are for `topics`.
absl::Status Assembler::CheckNames() const {
  const DaemonOptions& daemon = config_.daemon;
  std::string unused;
  for (const auto& [key, name] :
       {std::pair("input", &daemon.input), {"output", &daemon.output}, {"divert", &daemon.divert}}) {
    if (name->empty()) continue;
    const std::string& place = given_.find(key)->second.place;
    if (IsPattern(*name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, ": a pattern of topics goes into the list `topics`, with an output such as unique.$1"));
    }
    if (absl::Status status = StoreTopic(*name, unused); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": ", status.message()));
    }
  }
  for (const CounterDraft& draft : counters_) {
    if (absl::Status status = StoreTopic(draft.config.options.output, unused); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(draft.given.find("output")->second.place, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

// A topic that is written and also read, or written as two things, would go round or be unreadable.
absl::Status Assembler::CheckTopics() const {
  const DaemonOptions& daemon = config_.daemon;
  struct Topic {
    std::string role;
    std::string name;
    std::string place;
  };
  std::vector<Topic> topics;
  for (const std::string& input : daemon.inputs()) {
    topics.push_back({"input", input, given_.find("input")->second.place});
  }
  for (const auto& [key, name] : {std::pair("output", &daemon.output),
                                  {"divert", &daemon.divert},
                                  {"snapshots.to", &daemon.snapshots.topic}}) {
    if (!name->empty()) topics.push_back({key, *name, given_.find(key)->second.place});
  }
  // A topic of two counters would tell their keys apart by nothing but a header.
  for (const CounterDraft& draft : counters_) {
    const CounterOptions& counter = draft.config.options;
    topics.push_back({absl::StrCat("output of counter ", counter.name), counter.output,
                      draft.given.find("output")->second.place});
  }
  for (size_t later = 1; later < topics.size(); ++later) {
    for (size_t earlier = 0; earlier < later; ++earlier) {
      if (topics[earlier].name == topics[later].name) {
        return absl::InvalidArgumentError(absl::StrCat(topics[later].place, ": \"", topics[later].name,
                                                       "\" is also the ", topics[earlier].role,
                                                       "; expected another topic"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Assembler::CheckDivert() const {
  const Policies& policies = config_.daemon.policies;
  if (!policies.diverts() || !config_.daemon.divert.empty()) return absl::OkStatus();
  for (const auto& [key, action] : {std::pair("on_duplicate", policies.on_duplicate),
                                    {"on_missing_id", policies.on_missing_id},
                                    {"on_malformed", policies.on_malformed},
                                    {"on_undeliverable", policies.on_undeliverable},
                                    {"on_uncountable", policies.on_uncountable}}) {
    if (action != Action::kDivert) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(given_.find(key)->second.place,
                     ": divert needs a topic: set divert (or --divert), for example orders-diverted"));
  }
  return absl::OkStatus();
}

absl::Status Assembler::CheckMerged() {
  if (config_.daemon.merged.empty()) return absl::OkStatus();
  const auto scope = given_.find("scope");
  if (scope != given_.end() && config_.daemon.scope == Scope::kPartition) {
    return absl::InvalidArgumentError(absl::StrCat(
        scope->second.place, ": several inputs need scope: topic, which is their default; delete scope"));
  }
  config_.daemon.scope = Scope::kTopic;
  return absl::OkStatus();
}

// The group's name is part of the name of a topic then.
absl::Status Assembler::CheckScope() const {
  const DaemonOptions& daemon = config_.daemon;
  if (daemon.scope != Scope::kTopic || IsPattern(daemon.input) || IsTopicName(RepartitionTopic(daemon))) {
    return absl::OkStatus();
  }
  const auto given = given_.find("scope");
  return absl::InvalidArgumentError(
      absl::StrCat((given == given_.end() ? given_.find("input") : given)->second.place,
                   given == given_.end() ? ": scope: topic" : ": topic", " needs an internal topic, and \"",
                   RepartitionTopic(daemon),
                   "\" is not a topic name; choose a shorter group, of letters, digits, '.', '_' and '-'"));
}

// Each value was good by itself; an engine may have limits of its own.
absl::Status Assembler::CheckStage() const {
  const absl::Status status = Validate(config_.daemon.stage, LimitsOf(config_.daemon.engine()));
  if (status.ok()) return status;
  const auto given = given_.find("engine");
  if (given == given_.end()) return status;
  return absl::InvalidArgumentError(absl::StrCat(given->second.place, ": ", status.message()));
}

void WarnOfUnusedRegistry(RunConfig& config) {
  if (config.schema_registry.urls.empty()) return;
  absl::StrAppend(
      &config.warning, config.warning.empty() ? "" : "; ",
      "schema_registry is set, and no field needs a schema: delete it, or set id to avro:/POINTER "
      "or protobuf:/NAME");
}

absl::Status Assembler::CheckSchemas() {
  const RecordSpec spec = config_.daemon.RecordAndCounters();
  absl::Status status = CheckPlaces(spec);
  if (status.ok()) status = CheckRegistryOf(spec, config_.schema_registry);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name_, file_name_.empty() ? "" : ": ", status.message()));
  }
  if (topic_ < 0 && !NeedsSchema(spec)) WarnOfUnusedRegistry(config_);
  // Beside the snapshots, for the replay after a restart.
  config_.schema_registry.folder = config_.daemon.snapshots.folder;
  return absl::OkStatus();
}

absl::StatusOr<RunConfig> Assembler::Finish() {
  if (absl::Status status = CheckMissing(); !status.ok()) return status;
  if (absl::Status status = FinishCounters(); !status.ok()) return status;
  if (topic_ < 0) {
    if (absl::Status status = CheckNames(); !status.ok()) return status;
  }
  if (absl::Status status = CheckTopics(); !status.ok()) return status;
  if (absl::Status status = CheckMerged(); !status.ok()) return status;
  if (absl::Status status = CheckDivert(); !status.ok()) return status;
  if (!config_.daemon.policies.diverts()) config_.daemon.divert.clear();  // nothing would be written to it
  if (absl::Status status = CheckStage(); !status.ok()) return status;
  if (absl::Status status = CheckSchemas(); !status.ok()) return status;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    const auto given = given_.find(setting.key);
    if (given == given_.end() || IsSecretKey(setting.key)) continue;
    config_.texts[given->first] = given->second.value.text;
  }
  config_.fingerprint = FingerprintOf(config_);
  if (config_.daemon.group.empty()) {
    const bool is_merged = !config_.daemon.merged.empty();
    config_.daemon.group = absl::StrCat("lethe-", is_merged ? config_.daemon.output : config_.daemon.input);
  }
  if (absl::Status status = CheckScope(); !status.ok()) return status;
  // A name that was given is meant to be unique in the group; two hosts of one name are not.
  if (!config_.daemon.instance.empty() && !given_.contains("static_membership")) {
    config_.daemon.static_membership = StaticMembership::kAfterCrash;
  }
  if (config_.daemon.instance.empty()) {
    char name[256] = "";
    if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') {
      return absl::InvalidArgumentError("this host has no name; set instance (or --instance)");
    }
    config_.daemon.instance = name;
  }
  config_.topics = {config_.daemon};
  return config_;
}

absl::StatusOr<RunConfig> Assembler::FinishTopics() {
  for (const char* key : {"input", "output"}) {
    const auto given = given_.find(key);
    if (given == given_.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        given->second.place, ": with `topics` each entry has its own; move it into an entry of the list"));
  }
  std::optional<RunConfig> all;
  std::string texts;
  for (size_t i = 0; i < topics_.size(); ++i) {
    Assembler one(*this, static_cast<int>(i));
    for (const ConfigEntry& entry : topics_[i]) {
      const std::string place = absl::StrCat(file_name_, ":", entry.line, ": ", entry.Path());
      if (absl::Status status = one.AddTopicEntry(entry, place); !status.ok()) return status;
      if (entry.key != kStorePassword) absl::StrAppend(&texts, entry.Path(), "=", entry.text, "\n");
    }
    absl::StatusOr<RunConfig> finished = one.Finish();
    if (!finished.ok()) return finished.status();
    for (const EffectiveValue& value : one.Effective()) {
      const bool is_own = absl::c_any_of(topics_[i], [&](const ConfigEntry& entry) {
        return entry.Path() == absl::StrCat(kTopics, "[", i, "].", value.key);
      });
      if (!is_own) continue;
      topic_values_.push_back(value);
      topic_values_.back().key = absl::StrCat(kTopics, "[", i, "].", value.key);
    }
    if (!all) all = *finished;
    if (i > 0) all->topics.push_back(finished->daemon);
  }
  if (absl::Status status = TopicList::Create(all->topics).status(); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(file_name_, ": ", kTopics, ": ", status.message()));
  }
  if (absl::c_none_of(all->topics,
                      [](const DaemonOptions& each) { return NeedsSchema(each.RecordAndCounters()); })) {
    WarnOfUnusedRegistry(*all);
  }
  all->texts[kTopics] = texts;
  all->fingerprint = FingerprintOf(*all);
  config_ = *all;
  return *all;
}

EffectiveValue Assembler::EffectiveProperty(const Property& property) const {
  EffectiveValue value = given_.at(absl::StrCat(kKafka, ".", property.first)).value;
  // A value from the environment is treated as a secret.
  value.is_secret = kafka::IsSecret(property.first) || absl::EndsWith(value.origin, kFromEnvironment);
  if (value.is_secret) value.text.clear();
  return value;
}

std::vector<EffectiveValue> Assembler::Effective() const {
  std::vector<EffectiveValue> values;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    const auto given = given_.find(setting.key);
    if (given != given_.end()) {
      values.push_back(given->second.value);
      values.back().is_secret = IsSecretKey(setting.key);
      if (values.back().is_secret) values.back().text.clear();
    } else if (!setting.fallback.empty()) {
      const absl::string_view key = setting.key;
      const std::string text = key == "group"               ? config_.daemon.group
                               : key == "instance"          ? config_.daemon.instance
                               : key == "memory"            ? DefaultMemoryText()
                               : key == "static_membership" ? DefaultMembership()
                                                            : std::string(setting.fallback);
      const bool is_of_limit = config_.limit && key == "memory";
      values.push_back({std::string(setting.key), text,
                        is_of_limit ? absl::StrCat("half of ", config_.limit->file) : "default"});
    }
  }
  // Sections come last, each in one piece.
  std::stable_partition(values.begin(), values.end(),
                        [](const EffectiveValue& value) { return !absl::StrContains(value.key, '.'); });
  for (size_t i = 0; i < counters_.size(); ++i) {
    for (const Setting<CounterConfig>& setting : CounterSettings()) {
      const auto given = counters_[i].given.find(setting.key);
      if (given == counters_[i].given.end()) continue;
      values.push_back(given->second.value);
      values.back().key = absl::StrCat(kCounters, "[", i, "].", setting.key);
      values.back().is_secret = setting.key == kStorePassword;
      if (values.back().is_secret) values.back().text.clear();
    }
  }
  for (const Property& property : config_.daemon.properties) {
    values.push_back(EffectiveProperty(property));
  }
  values.insert(values.end(), topic_values_.begin(), topic_values_.end());
  return values;
}

}  // namespace

std::string TextOf(const RunConfig& config, const Setting<RunConfig>& setting) {
  const auto found = config.texts.find(setting.key);
  return found == config.texts.end() ? std::string(setting.fallback) : found->second;
}

// 64 bits are plenty to tell a handful of configurations apart, and too few of a hash to learn one from.
std::string FingerprintOf(const RunConfig& config) {
  std::string effective;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    if (setting.key == "instance" || setting.key == "http") continue;
    absl::StrAppend(&effective, setting.key, "=", TextOf(config, setting), "\n");
  }
  for (const absl::string_view list : {kCounters, absl::string_view(kTopics)}) {
    if (const auto found = config.texts.find(list); found != config.texts.end()) {
      absl::StrAppend(&effective, list, "=", found->second, "\n");
    }
  }
  std::vector<Property> properties = config.daemon.properties;
  std::sort(properties.begin(), properties.end());
  for (const auto& [name, value] : properties) {
    absl::StrAppend(&effective, name, "=", kafka::IsSecret(name) ? "" : value, "\n");
  }
  return absl::StrCat(absl::Hex(HashId(effective, 0).a, absl::kZeroPad16));
}

absl::StatusOr<RunConfig> MakeRunConfig(const std::optional<ConfigText>& file, const RunFlags& flags,
                                        std::vector<EffectiveValue>* effective,
                                        const std::optional<CgroupLimit>& limit) {
  Assembler assembler(file ? file->name : "", limit);
  if (file) {
    if (absl::Status status = assembler.AddFile(*file); !status.ok()) return status;
  }
  if (absl::Status status = assembler.AddFlags(flags); !status.ok()) return status;
  absl::StatusOr<RunConfig> config = assembler.has_topics() ? assembler.FinishTopics() : assembler.Finish();
  if (config.ok() && effective != nullptr) *effective = assembler.Effective();
  return config;
}

}  // namespace lethe
