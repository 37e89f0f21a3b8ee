#include "src/cli/config/effective.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "src/cli/terminal/json_text.h"
#include "src/text/fixed_hash.h"
#include "src/text/format.h"

namespace lethe {
namespace {

EffectiveValue Shown(std::string key, const GivenValue& value, bool is_secret) {
  return {std::move(key), is_secret ? "" : value.text, value.origin, is_secret};
}

EffectiveValue Default(const Setting<RunConfig>& setting, const RunConfig& config) {
  const DaemonOptions& daemon = config.daemon;
  EffectiveValue value = {std::string(setting.key), std::string(setting.fallback), "default"};
  if (setting.key == "group") value.text = daemon.process.group;
  if (setting.key == "instance") value.text = daemon.process.instance;
  if (setting.key == "max_future") value.text = absl::FormatDuration(daemon.max_future);
  if (setting.key == "on_undeliverable") {
    value.text = daemon.policies.on_undeliverable == Action::kDivert ? "divert" : "drop";
  }
  if (setting.key == "http_counters") value.text = config.shows_counter_keys() ? "true" : "false";
  if (setting.key == "static_membership") {
    value.text = daemon.process.static_membership == StaticMembership::kAfterCrash ? "crash" : "false";
  }
  if (setting.key == "memory") {
    value.text = BytesSetting(daemon.stage.memory_limit_bytes);
    if (config.limit) value.origin = absl::StrCat("half of ", config.limit->file);
  }
  return value;
}

// For YAML: plain where that is no other type and no other meaning, else in double quotes. A $ is doubled,
// so that the file says the same when it is read.
std::string YamlValue(const std::string& text) {
  const std::string escaped = absl::StrReplaceAll(text, {{"$", "$$"}});
  const bool is_plain = !escaped.empty() && absl::ascii_isalnum(static_cast<unsigned char>(escaped[0])) &&
                        std::all_of(escaped.begin(), escaped.end(),
                                    [](char c) {
                                      return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                                             absl::string_view("_-./+,:$").find(c) != absl::string_view::npos;
                                    }) &&
                        escaped.back() != ':';
  return is_plain ? escaped : JsonString(escaped);
}

// "topics[0]" of "topics[0].horizon"; empty if it is of no topic.
std::string TopicOf(const EffectiveValue& value) {
  const bool is_of_topic = absl::StartsWith(value.key, absl::StrCat(kTopics, "["));
  return is_of_topic ? value.key.substr(0, value.key.find('.')) : "";
}

// The values of one entry of `topics`, as an item of the list.
std::string TopicYaml(std::vector<EffectiveValue> values) {
  for (EffectiveValue& value : values) value.key = value.key.substr(value.key.find('.') + 1);
  std::string yaml = absl::StrReplaceAll(EffectiveYaml(values), {{"\n", "\n    "}});
  yaml.resize(yaml.size() - 4);
  return absl::StrCat("  - ", yaml);
}

}  // namespace

std::vector<EffectiveValue> Effective(const Draft& draft) {
  std::vector<EffectiveValue> values;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    const auto given = draft.given.find(setting.key);
    if (given != draft.given.end()) {
      values.push_back(Shown(given->first, given->second, IsSecretKey(setting.key)));
    } else if (!setting.fallback.empty()) {
      values.push_back(Default(setting, draft.config));
    }
  }
  std::stable_partition(values.begin(), values.end(),
                        [](const EffectiveValue& value) { return !absl::StrContains(value.key, '.'); });
  for (size_t i = 0; i < draft.counters.size(); ++i) {
    for (const Setting<CounterConfig>& setting : CounterSettings()) {
      const auto given = draft.counters[i].given.find(setting.key);
      if (given == draft.counters[i].given.end()) continue;
      values.push_back(Shown(absl::StrCat(kCounters, "[", i, "].", setting.key), given->second,
                             setting.key == kStorePassword));
    }
  }
  for (const auto& [name, unused] : draft.config.daemon.process.properties) {
    const std::string key = absl::StrCat("kafka.", name);
    const GivenValue& value = draft.given.at(key);
    // A value from the environment is treated as a secret.
    const bool is_secret = kafka::IsSecret(name) || absl::EndsWith(value.origin, kFromEnvironment);
    values.push_back(Shown(key, value, is_secret));
  }
  return values;
}

std::string EffectiveYaml(const std::vector<EffectiveValue>& all) {
  std::vector<EffectiveValue> values = all;
  const auto topics = std::stable_partition(
      values.begin(), values.end(), [](const EffectiveValue& value) { return TopicOf(value).empty(); });
  std::string of_topics;
  for (auto begin = topics; begin != values.end();) {
    const auto end = std::find_if(
        begin, values.end(), [&](const EffectiveValue& value) { return TopicOf(value) != TopicOf(*begin); });
    absl::StrAppend(&of_topics, of_topics.empty() ? "topics:\n" : "", TopicYaml({begin, end}));
    begin = end;
  }
  values.erase(topics, values.end());
  std::string yaml;
  std::string open;
  for (const EffectiveValue& value : values) {
    const size_t dot = value.key.find('.');
    const std::string section = dot == std::string::npos ? "" : value.key.substr(0, dot);
    const std::string name = dot == std::string::npos ? value.key : value.key.substr(dot + 1);
    const std::string list = section.substr(0, section.find('['));
    const bool is_item = list != section;
    const bool begins = section != open && !section.empty();
    if (begins && open.substr(0, open.find('[')) != list) absl::StrAppend(&yaml, list, ":\n");
    open = section;
    absl::StrAppend(&yaml,
                    section.empty()     ? ""
                    : is_item && begins ? "  - "
                    : is_item           ? "    "
                                        : "  ",
                    name, ": ", value.is_secret ? "\"(hidden)\"" : YamlValue(value.text), "  # ",
                    value.origin, "\n");
  }
  return yaml + of_topics;
}

// 64 bits are plenty to tell a handful of configurations apart, and too few of a hash to learn one from.
std::string FingerprintOf(const Draft& draft, absl::string_view topics) {
  std::string effective;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    if (setting.key == "instance" || setting.key == "http") continue;
    const auto given = draft.given.find(setting.key);
    const bool is_shown = given != draft.given.end() && !IsSecretKey(setting.key);
    absl::StrAppend(&effective, setting.key, "=", is_shown ? given->second.text : setting.fallback, "\n");
  }
  std::string counters;
  for (const CounterDraft& counter : draft.counters) {
    for (const Setting<CounterConfig>& setting : CounterSettings()) {
      const auto given = counter.given.find(setting.key);
      if (given == counter.given.end() || setting.key == kStorePassword) continue;
      absl::StrAppend(&counters, setting.key, "=", given->second.text, "\n");
    }
  }
  if (!counters.empty()) absl::StrAppend(&effective, kCounters, "=", counters, "\n");
  if (!topics.empty()) absl::StrAppend(&effective, kTopics, "=", topics, "\n");
  std::vector<Property> properties = draft.config.daemon.process.properties;
  std::sort(properties.begin(), properties.end());
  for (const auto& [name, value] : properties) {
    absl::StrAppend(&effective, name, "=", kafka::IsSecret(name) ? "" : value, "\n");
  }
  return absl::StrCat(absl::Hex(FixedHash(effective).a, absl::kZeroPad16));
}

}  // namespace lethe
