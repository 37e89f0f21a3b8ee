// The settings: one table per command describes each key completely, and drives the
// configuration file, the flags and the help.
#ifndef LETHE_SRC_CLI_CONFIG_SETTING_H_
#define LETHE_SRC_CLI_CONFIG_SETTING_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "connectors/registry/registry_options.h"
#include "lethe/options.h"
#include "src/pipeline/options/options.h"

namespace lethe {

// One key, and how its value is stored in Options.
template <class Options>
struct Setting {
  // As in the file; "log.level" is `level` in the section `log`. In capitals: an argument without a flag.
  absl::string_view key;
  absl::string_view type;      // what kind of value, for the help: DURATION; empty: a switch without one
  absl::string_view fallback;  // the default, for people; empty if there is none
  bool required = false;
  absl::string_view meaning;
  absl::string_view example;
  // Value, Choice or one of the others below.
  absl::Status (*store)(const Setting& setting, absl::string_view text, Options& options);
  // The values that are taken, where `type` does not say it: "1 to 64", "1ms or more".
  absl::string_view range = {};
  // A former key, which is still taken as a flag.
  absl::string_view former = {};
  // It may be given several times; `set`, which is called for each, names the place in its errors.
  bool many = false;

  // InvalidArgument names the value and the expected form; the caller adds the place.
  absl::Status set(absl::string_view text, Options& options) const { return store(*this, text, options); }
};

// --commit-interval for commit_interval, --log-level for log.level, --schema-registry for
// schema_registry.url, FILE for FILE.
inline std::string FlagOf(absl::string_view key) {
  if (absl::ascii_isupper(static_cast<unsigned char>(key[0]))) return std::string(key);
  return absl::StrCat("--", absl::StrReplaceAll(absl::StripSuffix(key, ".url"), {{"_", "-"}, {".", "-"}}));
}

// Whether the value of this key is never shown.
bool IsSecretKey(absl::string_view key);
// The value of a flag. That of a secret must be a reference (ExpandReferences), since every user of the host
// sees the command line; InvalidArgument then, without the place.
absl::StatusOr<std::string> FlagValue(absl::string_view key, const std::string& text);

// InvalidArgument that names the value and the expected form.
absl::Status BadValue(absl::string_view value, absl::string_view expected);

// Stores the value, or returns InvalidArgument with the text and the reason.
template <class Value, class Target>
absl::Status Store(absl::string_view text, absl::StatusOr<Value> value, Target& target) {
  if (!value.ok()) return BadValue(text, value.status().message());
  target = *std::move(value);
  return absl::OkStatus();
}

// What a value must look like: `type`, `range` and `example` of its setting.
struct Form {
  absl::string_view type;
  absl::string_view range;
  absl::string_view example;
};

// Stores a value of the target's type. Text must not be empty.
absl::Status StoreValue(const Form& form, absl::string_view text, std::string& target);
absl::Status StoreValue(const Form& form, absl::string_view text, absl::Duration& target);
// A size where the form's type is SIZE.
absl::Status StoreValue(const Form& form, absl::string_view text, int64_t& target);
absl::Status StoreValue(const Form& form, absl::string_view text, uint64_t& target);
absl::Status StoreValue(const Form& form, absl::string_view text, int& target);
absl::Status StoreValue(const Form& form, absl::string_view text, Field& target);
absl::Status StoreValue(const Form& form, absl::string_view text, IdSpec& target);
template <class Inner>
absl::Status StoreValue(const Form& form, absl::string_view text, std::optional<Inner>& target) {
  Inner inner{};
  absl::Status stored = StoreValue(form, text, inner);
  if (stored.ok()) target = std::move(inner);
  return stored;
}

// The place of a value in options: At<&RunConfig::log, &LogOptions::level>.
template <auto... kMembers>
struct At {
  static auto& In(auto& options) { return (options.*....*kMembers); }
};

// A value of the place's type.
template <class Place, class Options>
absl::Status Value(const Setting<Options>& setting, absl::string_view text, Options& options) {
  return StoreValue({setting.type, setting.range, setting.example}, text, Place::In(options));
}

// The index of the text among the words of `type`, "eager|cooperative".
absl::StatusOr<size_t> ChoiceIn(absl::string_view type, absl::string_view text);
// One of the words of `type`, which stand for these values.
template <class Place, auto... kValues, class Options>
absl::Status Choice(const Setting<Options>& setting, absl::string_view text, Options& options) {
  const absl::StatusOr<size_t> index = ChoiceIn(setting.type, text);
  if (!index.ok()) return BadValue(text, index.status().message());
  constexpr std::array kAll = {kValues...};
  Place::In(options) = kAll[*index];
  return absl::OkStatus();
}

// A switch, which has no text.
template <class Place, class Options>
absl::Status Switch(const Setting<Options>& /*setting*/, absl::string_view /*text*/, Options& options) {
  Place::In(options) = true;
  return absl::OkStatus();
}

// What `kStore` makes of the text: a function of the text and the target.
template <auto kStore, class Place, class Options>
absl::Status By(const Setting<Options>& /*setting*/, absl::string_view text, Options& options) {
  return kStore(text, Place::In(options));
}

// What `kParse` makes of the text.
template <auto kParse, class Place, class Options>
absl::Status Parsed(const Setting<Options>& /*setting*/, absl::string_view text, Options& options) {
  return Store(text, kParse(text), Place::In(options));
}

// A secret may be empty.
absl::Status StoreSecret(absl::string_view text, std::string& target);

// Kafka's own rule for the names of topics.
bool IsTopicName(absl::string_view text);
absl::Status StoreTopic(absl::string_view text, std::string& target);
// Those of `topics` may also be a pattern, and names with $1 to $9 for its groups (TopicList). Several names,
// with commas, are merged.
absl::Status StoreInput(absl::string_view text, DaemonOptions& target);
absl::Status StoreTopicForm(absl::string_view text, std::string& target);

// A flag without a value.
template <class Options, bool Options::*kSwitch>
constexpr Setting<Options> SwitchSetting(absl::string_view key, absl::string_view meaning) {
  return {key, "", "", false, meaning, "", Switch<At<kSwitch>>};
}

enum class ReportFormat { kText, kJson };

// --format of commands that print one report.
template <class Options>
constexpr Setting<Options> FormatSetting(absl::string_view meaning, absl::string_view former) {
  return {"format",
          "text|json",
          "text",
          false,
          meaning,
          "json",
          Choice<At<&Options::format>, ReportFormat::kText, ReportFormat::kJson>,
          "",
          former};
}

// InvalidArgument if it is a property that lethe sets itself.
absl::Status CheckProperty(const std::string& name, const std::string& place);

// What --kafka was given.
struct GivenProperties {
  std::vector<Property> values;
  std::vector<std::string> exposed;  // those that are secret, and not references
};

// Adds one, as NAME=VALUE, where VALUE may have references (ExpandReferences). InvalidArgument names the
// property, never its value.
absl::Status AddProperty(absl::string_view given, GivenProperties& properties);

// --brokers and --kafka of commands that read a topic.
template <class Options>
constexpr Setting<Options> BrokersSetting(absl::string_view meaning) {
  return {"brokers", "HOST:PORT,...", "", true, meaning, "localhost:9092", Value<At<&Options::brokers>>};
}
template <class Options>
constexpr Setting<Options> KafkaSetting() {
  return {"kafka",
          "NAME=VALUE",
          "",
          false,
          "A property of librdkafka; may be given several times",
          "security.protocol=SSL",
          By<AddProperty, At<&Options::properties>>,
          "",
          "",
          /*many=*/true};
}

// `schema_registry` of commands that read records: a member of this name.
absl::Status StoreRegistryUrls(absl::string_view text, registry::RegistryOptions& target);
template <class Options, auto... kMembers>
using OfRegistry = At<&Options::schema_registry, kMembers...>;
template <class Options>
inline constexpr Setting<Options> kRegistrySettings[] = {
    {"schema_registry.url", "URL[,URL...]", "", false,
     "Schema registry with Confluent's API, for avro: fields and protobuf: fields by name; several URLs of "
     "it "
     "are asked in turn",
     "https://registry:8081", By<StoreRegistryUrls, OfRegistry<Options>>},
    {"schema_registry.user", "NAME", "", false, "User of the schema registry (basic authentication)", "lethe",
     Value<OfRegistry<Options, &registry::RegistryOptions::user>>},
    {"schema_registry.password", "TEXT", "", false, "The user's password, from a file or the environment",
     "${file:/etc/lethe/registry-password}",
     By<StoreSecret, OfRegistry<Options, &registry::RegistryOptions::password>>},
    {"schema_registry.token", "TEXT", "", false,
     "Bearer token in the place of a user, from a file or the environment",
     "${file:/etc/lethe/registry-token}",
     By<StoreSecret, OfRegistry<Options, &registry::RegistryOptions::token>>},
    {"schema_registry.ca_file", "FILE", "", false,
     "Authorities that the schema registry's certificate may come from (PEM), in the place of the system's",
     "/etc/lethe/ca.pem", Value<OfRegistry<Options, &registry::RegistryOptions::ca_file>>},
    {"schema_registry.timeout", "DURATION", "10s", false,
     "How long one request to the schema registry may take", "5s",
     Value<OfRegistry<Options, &registry::RegistryOptions::timeout>>, "100ms to 5m"},
};
// One of them, by its key.
template <class Options>
constexpr Setting<Options> RegistrySetting(absl::string_view key) {
  for (const Setting<Options>& setting : kRegistrySettings<Options>) {
    if (setting.key == key) return setting;
  }
  return {};
}
// InvalidArgument: the registry's settings do not go together, or a field needs a schema, and no registry is
// set.
absl::Status CheckRegistryOf(const RecordSpec& spec, const registry::RegistryOptions& options);
bool NeedsSchema(const RecordSpec& spec);

// What several commands share. The stage's own limits are checked here, where the place is known.
absl::Status StoreHorizon(absl::string_view text, StageOptions& stage);
absl::Status StoreFpp(absl::string_view text, StageOptions& stage);
absl::Status StoreMemory(absl::string_view text, StageOptions& stage);
// The same for a daemon, whose smallest filter takes 64 KiB.
absl::Status StoreDaemonMemory(absl::string_view text, StageOptions& stage);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_SETTING_H_
