#include "src/cli/config/draft.h"

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "src/cli/config/removed.h"
#include "src/text/suggestion.h"

namespace lethe {
namespace {

constexpr absl::string_view kKafka = "kafka";
// The sections whose keys are settings.
constexpr absl::string_view kSections[] = {"snapshots", "schema_registry", "log"};

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

bool IsOfCounters(const ConfigEntry& entry) {
  return entry.section == kCounters || (entry.section.empty() && entry.key == kCounters);
}

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
  keys.insert(keys.end(), {std::string(kCounters), kTopics, std::string(kKafka)});
  return keys;
}

absl::Status CheckShape(const ConfigEntry& entry, const std::string& place, ConfigEntry::Shape shape,
                        absl::string_view expected) {
  if (entry.shape == shape) return absl::OkStatus();
  return Wrong(place, "expected ", expected, ", found ", Found(entry.shape));
}

absl::Status UnknownKey(const ConfigEntry& entry, const std::string& place) {
  if (const std::string removed = RemovedText(entry.Key()); !removed.empty()) return Wrong(place, removed);
  const std::vector<std::string> keys = KeysOf(entry.section);
  std::string hint;
  const std::string path = entry.section == kCounters ? entry.key : entry.Key();
  const std::optional<std::string> nearest = Nearest(path, keys);
  const bool is_setting = entry.section.empty() && FindSetting(RunSettings(), entry.key) != nullptr;
  const bool may_be_property = !nearest && !is_setting && absl::StrContains(entry.key, '.');
  if (entry.section.empty() && (kafka::IsProperty(entry.key) || may_be_property)) {
    hint = "a property of librdkafka goes under 'kafka:'";
  } else if (nearest) {
    hint = absl::StrCat("did you mean ", *nearest, "?");
  } else if (is_setting) {
    hint = absl::StrCat("write ", entry.key.substr(entry.key.find('.') + 1), " under '", SectionOf(entry.key),
                        ":'");
  } else {
    hint = absl::StrCat("the keys are ", absl::StrJoin(keys, ", "));
  }
  return Wrong(place, "unknown key; ", hint);
}

// Stores the value in `options`, and notes it in `given`.
template <class Options>
absl::Status Set(const Setting<Options>& setting, GivenValue value, Options& options, GivenValues& given) {
  const absl::Status status = setting.set(value.text, options);
  const GivenValue& stored = given[std::string(setting.key)] = std::move(value);
  return status.ok() ? status : Wrong(stored.place, status.message());
}

}  // namespace

void Errors::Add(const absl::Status& status) {
  if (status.ok() || ++count_ > kMostShown) return;
  absl::StrAppend(&text_, text_.empty() ? "" : "\n", status.message());
}

absl::Status Errors::status() const {
  if (empty()) return absl::OkStatus();
  const int hidden = count_ - kMostShown;
  return absl::InvalidArgumentError(hidden > 0 ? absl::StrCat(text_, "\nand ", hidden, " more") : text_);
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

absl::StatusOr<GivenValue> Draft::ValueOf(const ConfigEntry& entry) const {
  const std::string place = PlaceOf(entry);
  absl::Status shape = CheckShape(entry, place, ConfigEntry::Shape::kText, "a single value");
  if (!shape.ok()) return shape;
  absl::StatusOr<std::string> text = ExpandReferences(entry.text);
  if (!text.ok()) return Wrong(place, text.status().message());
  const bool is_expanded = *text != entry.text && absl::StrContains(entry.text, "${");
  const std::string origin = absl::StrCat(file_name, ":", entry.line, is_expanded ? kFromEnvironment : "");
  return GivenValue{*std::move(text), origin, place};
}

void Draft::AddEntries(const std::vector<ConfigEntry>& entries, Errors& errors) {
  std::set<std::string> wrong_sections;  // whose entries would all be wrong as well
  for (const ConfigEntry& entry : entries) {
    if (wrong_sections.count(entry.section) > 0) continue;
    const absl::Status status = AddEntry(entry);
    errors.Add(status);
    if (!status.ok() && entry.section.empty()) wrong_sections.insert(entry.key);
  }
}

absl::Status Draft::AddEntry(const ConfigEntry& entry) {
  if (entry.earlier > 0) return Wrong(PlaceOf(entry), "the key is already on line ", entry.earlier);
  if (topic >= 0) {
    if (entry.key.empty() && entry.section.empty()) {
      return Wrong(PlaceOf(entry), "expected the keys of a topic, found ", Found(entry.shape));
    }
    if (IsOfCounters(entry)) {
      if (!std::exchange(has_own_counters, true)) counters.clear();
    } else if (!IsTopicSetting(entry.Key()) &&
               (FindSetting(RunSettings(), entry.Key()) != nullptr || IsSection(entry.key))) {
      return Wrong(PlaceOf(entry), "all topics have this in common; set it at the top level");
    }
  } else if (entry.section.empty() && entry.key == kTopics) {
    return CheckShape(entry, PlaceOf(entry), ConfigEntry::Shape::kList, "a list of topics");
  }
  return IsOfCounters(entry) ? AddCounterEntry(entry) : AddSetting(entry);
}

absl::Status Draft::AddSetting(const ConfigEntry& entry) {
  if (entry.section.empty() && IsSection(entry.key)) {
    return CheckShape(entry, PlaceOf(entry), ConfigEntry::Shape::kMap, "a section of keys");
  }
  const bool is_property = entry.section == kKafka;
  // `log.level: x` at the top level would otherwise be a second way to say the same.
  const bool is_dotted = entry.section.empty() && absl::StrContains(entry.key, '.');
  const Setting<RunConfig>* setting = is_dotted ? nullptr : FindSetting(RunSettings(), entry.Key());
  if (setting == nullptr && !is_property) return UnknownKey(entry, PlaceOf(entry));
  if (!is_property) given[entry.Key()].place = PlaceOf(entry);  // with a wrong value it is not missing
  const absl::StatusOr<GivenValue> value = ValueOf(entry);
  if (!value.ok()) return value.status();
  if (!is_property) return Set(*setting, *value, config, given);
  if (absl::Status status = CheckProperty(entry.key, value->place); !status.ok()) return status;
  return AddProperty(entry.key, *value);
}

absl::Status Draft::AddProperty(const std::string& name, const GivenValue& value) {
  const absl::Status status = kafka::ClientConfig().Set(name, value.text).status();
  if (!status.ok()) return Wrong(value.place, status.message());
  given[absl::StrCat(kKafka, ".", name)] = value;
  std::vector<Property>& properties = config.daemon.process.properties;
  const auto same =
      absl::c_find_if(properties, [&](const Property& property) { return property.first == name; });
  if (same == properties.end()) {
    properties.emplace_back(name, value.text);
  } else {
    same->second = value.text;
  }
  return absl::OkStatus();
}

absl::Status Draft::AddCounterEntry(const ConfigEntry& entry) {
  const std::string place = PlaceOf(entry);
  if (entry.section.empty()) {
    return CheckShape(entry, place, ConfigEntry::Shape::kList, "a list of counters");
  }
  if (entry.key.empty()) {
    return CheckShape(entry, place, ConfigEntry::Shape::kMap, "a counter's keys");
  }
  const auto counter = static_cast<size_t>(entry.item);
  if (counters.size() <= counter) {
    counters.resize(counter + 1);
    counters[counter].place = std::string(absl::StripSuffix(place, absl::StrCat(".", entry.key)));
  }
  const Setting<CounterConfig>* setting = FindSetting(CounterSettings(), entry.key);
  if (setting == nullptr) return UnknownKey(entry, place);
  const absl::StatusOr<GivenValue> value = ValueOf(entry);
  if (!value.ok()) return value.status();
  return Set(*setting, *value, counters[counter].config, counters[counter].given);
}

absl::Status Draft::AddCounterFlag(const std::string& text) {
  const std::string flag = "--counter";
  CounterDraft draft;
  draft.place = flag;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t equals = part.find('=');
    const absl::string_view key = part.substr(0, equals);
    const Setting<CounterConfig>* setting = FindSetting(CounterSettings(), key);
    if (equals == absl::string_view::npos || setting == nullptr) {
      return Wrong(flag, "expected ", CounterFlagType(), "; the keys are ",
                   absl::StrJoin(KeysOf(kCounters), ", "),
                   "; a counter whose values have commas goes into a file");
    }
    if (key == kStorePassword) {
      return Wrong(flag, "every user of this host can read a secret on the command line. Put ",
                   kStorePassword, " into the configuration file, as ${file:PATH} or ${VARIABLE}");
    }
    const std::string place = absl::StrCat(flag, ": ", key);
    if (draft.given.contains(key)) return Wrong(place, "given twice");
    const GivenValue value = {std::string(part.substr(equals + 1)), flag, place};
    if (absl::Status set = Set(*setting, value, draft.config, draft.given); !set.ok()) return set;
  }
  // A flag wins over the file, here for the counter of its name.
  const auto same = absl::c_find_if(counters, [&](const CounterDraft& other) {
    return other.place != flag && other.config.options.name == draft.config.options.name;
  });
  if (same == counters.end()) {
    counters.push_back(std::move(draft));
  } else {
    *same = std::move(draft);
  }
  return absl::OkStatus();
}

void Draft::AddFlags(const RunFlags& flags, Errors& errors) {
  for (const auto& [key, text] : flags.values) {
    const std::string flag = FlagOf(key);
    given[key].place = flag;
    const absl::StatusOr<std::string> value = FlagValue(key, text);
    errors.Add(value.ok() ? Set(*FindSetting(RunSettings(), key), {*value, flag, flag}, config, given)
                          : Wrong(flag, value.status().message()));
  }
  for (const std::string& counter : flags.counters) errors.Add(AddCounterFlag(counter));
  GivenProperties properties;
  for (const std::string& text : flags.kafka) errors.Add(lethe::AddProperty(text, properties));
  for (const auto& [name, value] : properties.values) {
    errors.Add(AddProperty(name, {value, "--kafka", absl::StrCat("--kafka ", name)}));
  }
  config.warning = kafka::SecretsOnCommandLine(properties.exposed);
  config.daemon.process.exit_at_end = flags.exit_at_end;
}

}  // namespace lethe
