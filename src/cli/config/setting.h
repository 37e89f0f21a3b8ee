// The settings: one table per command describes each key completely, and drives the
// configuration file, the flags and the help.
#ifndef LETHE_SRC_CLI_CONFIG_SETTING_H_
#define LETHE_SRC_CLI_CONFIG_SETTING_H_

#include <array>
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
  // InvalidArgument names the value and the expected form; the caller adds the place.
  absl::Status (*set)(absl::string_view text, Options& options);
  // The values that are taken, where `type` does not say it: "1 to 64", "1ms to 10s".
  absl::string_view range = {};
  // A former key, which is still taken as a flag.
  absl::string_view former = {};
  // It may be given several times; `set`, which is called for each, names the place in its errors.
  bool many = false;
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

// The same for ids and fields, whose parsers name the text themselves.
template <class Value, class Target>
absl::Status StoreField(absl::StatusOr<Value> value, Target& target) {
  if (!value.ok()) return value.status();
  target = *std::move(value);
  return absl::OkStatus();
}

// One of a few words: two, if it is not said how many.
template <class Value, size_t kCount = 2>
absl::Status StoreChoice(absl::string_view text,
                         std::array<std::pair<absl::string_view, Value>, kCount> choices, Value& target) {
  std::string expected = "expected ";
  for (size_t i = 0; i < kCount; ++i) {
    if (text == choices[i].first) {
      target = choices[i].second;
      return absl::OkStatus();
    }
    absl::StrAppend(&expected, i == 0 ? "" : i + 1 < kCount ? ", " : " or ", choices[i].first);
  }
  return BadValue(text, expected);
}

// Text that is not empty.
absl::Status StoreText(absl::string_view text, absl::string_view expected, std::string& target);

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
  return {key, "", "", false, meaning, "", [](absl::string_view, Options& options) {
            options.*kSwitch = true;
            return absl::OkStatus();
          }};
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
          [](absl::string_view text, Options& options) {
            return StoreChoice<ReportFormat>(
                text, {{{"text", ReportFormat::kText}, {"json", ReportFormat::kJson}}}, options.format);
          },
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
  return {"brokers",
          "HOST:PORT,...",
          "",
          true,
          meaning,
          "localhost:9092",
          [](absl::string_view text, Options& options) {
            return StoreText(text, "expected one or more brokers, such as localhost:9092", options.brokers);
          }};
}
template <class Options>
constexpr Setting<Options> KafkaSetting() {
  return {"kafka",
          "NAME=VALUE",
          "",
          false,
          "A property of librdkafka; may be given several times",
          "security.protocol=SSL",
          [](absl::string_view text, Options& options) { return AddProperty(text, options.properties); },
          "",
          "",
          /*many=*/true};
}

// `schema_registry` of commands that read records: a member of this name.
inline constexpr absl::string_view kRegistryUrl = "schema_registry.url";
absl::Status StoreRegistryTimeout(absl::string_view text, absl::Duration& target);
template <class Options>
constexpr Setting<Options> RegistrySetting(absl::string_view key) {
  if (key == kRegistryUrl) {
    return {
        key,
        "URL[,URL...]",
        "",
        false,
        "Schema registry with Confluent's API, for avro: fields and protobuf: fields by name; several URLs "
        "of it are asked in turn",
        "https://registry:8081",
        [](absl::string_view text, Options& options) {
          // The text may contain a password.
          return StoreField(registry::ParseUrls(text), options.schema_registry.urls);
        }};
  }
  if (key == "schema_registry.user") {
    return {key,
            "NAME",
            "",
            false,
            "User of the schema registry (basic authentication)",
            "lethe",
            [](absl::string_view text, Options& options) {
              return StoreText(text, "expected a name", options.schema_registry.user);
            }};
  }
  if (key == "schema_registry.password") {
    return {key,
            "TEXT",
            "",
            false,
            "The user's password, from a file or the environment",
            "${file:/etc/lethe/registry-password}",
            [](absl::string_view text, Options& options) {
              options.schema_registry.password = std::string(text);
              return absl::OkStatus();
            }};
  }
  if (key == "schema_registry.token") {
    return {key,
            "TEXT",
            "",
            false,
            "Bearer token in the place of a user, from a file or the environment",
            "${file:/etc/lethe/registry-token}",
            [](absl::string_view text, Options& options) {
              options.schema_registry.token = std::string(text);
              return absl::OkStatus();
            }};
  }
  if (key == "schema_registry.ca_file") {
    return {key,
            "FILE",
            "",
            false,
            "Authorities that the schema registry's certificate may come from (PEM), in the place of the "
            "system's",
            "/etc/lethe/ca.pem",
            [](absl::string_view text, Options& options) {
              return StoreText(text, "expected a file", options.schema_registry.ca_file);
            }};
  }
  return {key,
          "DURATION",
          "10s",
          false,
          "How long one request to the schema registry may take",
          "5s",
          [](absl::string_view text, Options& options) {
            return StoreRegistryTimeout(text, options.schema_registry.timeout);
          },
          "100ms to 5m"};
}
// InvalidArgument: the registry's settings do not go together, or a field needs a schema, and no registry is
// set.
absl::Status CheckRegistryOf(const RecordSpec& spec, const registry::RegistryOptions& options);
bool NeedsSchema(const RecordSpec& spec);

// What several commands share. The stage's own limits are checked here, where the place is known.
absl::Status StoreHorizon(absl::string_view text, StageOptions& stage);
absl::Status StoreFpp(absl::string_view text, StageOptions& stage);
absl::Status StoreMemory(absl::string_view text, StageOptions& stage);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_SETTING_H_
