#include "src/cli/config/setting.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "src/cli/config/config_file.h"
#include "src/cli/config/units.h"
#include "src/pipeline/options/topic_list.h"

namespace lethe {
namespace {

// Stores one option of a stage if the stage would take it.
template <class Value>
absl::Status StoreChecked(absl::string_view text, absl::StatusOr<Value> value, Value StageOptions::*option,
                          StageOptions& stage) {
  StageOptions alone;
  if (absl::Status status = Store(text, std::move(value), alone.*option); !status.ok()) return status;
  if (absl::Status status = Validate(alone); !status.ok()) return BadValue(text, status.message());
  stage.*option = alone.*option;
  return absl::OkStatus();
}

}  // namespace

absl::Status BadValue(absl::string_view value, absl::string_view expected) {
  constexpr size_t kShown = 80;
  return absl::InvalidArgumentError(absl::StrCat("\"", absl::Utf8SafeCEscape(value.substr(0, kShown)),
                                                 value.size() > kShown ? "..." : "",
                                                 "\" is not valid: ", expected));
}

absl::Status CheckProperty(const std::string& name, const std::string& place) {
  const std::optional<absl::string_view> reason = kafka::WhyFixed(name);
  if (!reason) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(place, ": this property cannot be set: ", *reason));
}

absl::Status AddProperty(absl::string_view given, GivenProperties& properties) {
  const std::pair<std::string, std::string> property = absl::StrSplit(given, absl::MaxSplits('=', 1));
  const auto& [name, text] = property;
  if (name.empty() || name.size() == given.size()) {
    return absl::InvalidArgumentError("--kafka: expected NAME=VALUE, such as security.protocol=SSL");
  }
  const std::string place = absl::StrCat("--kafka ", name);
  for (const auto& [earlier, unused] : properties.values) {
    if (earlier == name) return absl::InvalidArgumentError(absl::StrCat(place, ": given twice"));
  }
  if (absl::Status status = CheckProperty(name, place); !status.ok()) return status;
  const absl::StatusOr<std::string> value = ExpandReferences(text);
  if (!value.ok()) return absl::InvalidArgumentError(absl::StrCat(place, ": ", value.status().message()));
  if (kafka::IsSecretValue(name) && *value == text) properties.exposed.push_back(name);
  properties.values.emplace_back(name, *value);
  return absl::OkStatus();
}

bool IsSecretKey(absl::string_view key) {
  return key == "schema_registry.password" || key == "schema_registry.token" || key == "snapshots.secret";
}

absl::StatusOr<std::string> FlagValue(absl::string_view key, const std::string& text) {
  if (!IsSecretKey(key)) return text;
  absl::StatusOr<std::string> value = ExpandReferences(text);
  if (value.ok() && *value == text) {
    return absl::InvalidArgumentError(
        "every user of this host can read a secret on the command line: give it as '${file:PATH}' or "
        "'${VARIABLE}'");
  }
  return value;
}

absl::Status StoreRegistryUrls(absl::string_view text, registry::RegistryOptions& target) {
  absl::StatusOr<std::vector<std::string>> urls = registry::ParseUrls(text);
  if (!urls.ok()) return urls.status();  // the text, which may contain a password, is not shown
  target.urls = *std::move(urls);
  return absl::OkStatus();
}

namespace {

// The first field that needs a schema, as it was given; empty: none does.
std::string FieldThatNeedsSchema(const RecordSpec& spec) {
  std::vector<Field> fields = spec.id.fields;
  if (spec.time) fields.push_back(*spec.time);
  for (const CounterSpec& counter : spec.counters) {
    fields.push_back(counter.key);
    if (counter.delta) fields.push_back(*counter.delta);
    if (counter.when) fields.push_back(counter.when->field);
  }
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [](const Field& field) { return IdSpec{{field}}.needs_schema(); });
  return found == fields.end() ? "" : found->ToString();
}

}  // namespace

bool NeedsSchema(const RecordSpec& spec) { return !FieldThatNeedsSchema(spec).empty(); }

absl::Status CheckRegistryOf(const RecordSpec& spec, const registry::RegistryOptions& options) {
  const bool has_user = !options.user.empty();
  if (options.urls.empty() &&
      (has_user || !options.password.empty() || !options.token.empty() || !options.ca_file.empty())) {
    return absl::InvalidArgumentError(
        "schema_registry: set url (--schema-registry), such as https://registry:8081");
  }
  if (has_user == options.password.empty()) {
    return absl::InvalidArgumentError("schema_registry: user and password go together");
  }
  if (has_user && !options.token.empty()) {
    return absl::InvalidArgumentError("schema_registry: set user and password, or token, not both");
  }
  const std::string needs = FieldThatNeedsSchema(spec);
  if (!needs.empty() && options.urls.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(needs,
                     " needs a schema registry: set url under schema_registry (or --schema-registry), "
                     "such as https://registry:8081"));
  }
  return absl::OkStatus();
}

namespace {

// The ends of a range, "LEAST to MOST" or "LEAST or more", as `parse` reads them.
template <class Value, class Parse>
std::pair<std::optional<Value>, std::optional<Value>> EndsOf(absl::string_view range, Parse parse) {
  if (range.empty()) return {};
  const std::vector<absl::string_view> ends = absl::StrSplit(absl::StripSuffix(range, " or more"), " to ");
  if (ends.size() == 1) return {*parse(ends[0]), std::nullopt};
  return {*parse(ends[0]), *parse(ends[1])};
}

// A quantity with a unit, as the ends of its range are.
template <class Value, class Parse>
absl::Status StoreQuantity(const Form& form, absl::string_view kind, absl::string_view text, Parse parse,
                           Value& target) {
  const absl::StatusOr<Value> value = parse(text);
  const auto [least, most] = EndsOf<Value>(form.range, parse);
  if (value.ok() && ((least && *value < *least) || (most && *value > *most))) {
    return BadValue(text, absl::StrCat("expected ", kind, most ? " from " : " of ", form.range));
  }
  return Store(text, value, target);
}

template <class Number>
absl::Status StoreNumber(const Form& form, absl::string_view text, Number& target) {
  constexpr Number kLeast = std::numeric_limits<Number>::min();
  constexpr Number kMost = std::numeric_limits<Number>::max();
  const auto [least, most] = EndsOf<Number>(
      form.range, [](absl::string_view end) { return ParseWhole<Number>(end, kLeast, kMost); });
  return Store(text, ParseWhole<Number>(text, least.value_or(kLeast), most.value_or(kMost)), target);
}

// Their parsers name the text themselves.
template <class Value>
absl::Status StoreField(absl::StatusOr<Value> value, Value& target) {
  if (!value.ok()) return value.status();
  target = *std::move(value);
  return absl::OkStatus();
}

}  // namespace

absl::Status StoreValue(const Form& form, absl::string_view text, std::string& target) {
  if (text.empty()) return BadValue(text, absl::StrCat("expected ", form.type, ", such as ", form.example));
  target = std::string(text);
  return absl::OkStatus();
}

absl::Status StoreValue(const Form& form, absl::string_view text, absl::Duration& target) {
  return StoreQuantity(form, "a duration", text, ParseDuration, target);
}

absl::Status StoreValue(const Form& form, absl::string_view text, int64_t& target) {
  return form.type == "SIZE" ? StoreQuantity(form, "a size", text, ParseBytes, target)
                             : StoreNumber(form, text, target);
}

absl::Status StoreValue(const Form& form, absl::string_view text, uint64_t& target) {
  return StoreNumber(form, text, target);
}

absl::Status StoreValue(const Form& form, absl::string_view text, int& target) {
  return StoreNumber(form, text, target);
}

absl::Status StoreValue(const Form& /*form*/, absl::string_view text, Field& target) {
  return StoreField(Field::Parse(text), target);
}

absl::Status StoreValue(const Form& /*form*/, absl::string_view text, IdSpec& target) {
  return StoreField(IdSpec::Parse(text), target);
}

absl::StatusOr<size_t> ChoiceIn(absl::string_view type, absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(type, '|');
  const auto found = absl::c_find(words, text);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", absl::StrJoin(words.begin(), words.end() - 1, ", "), " or ", words.back()));
}

absl::Status StoreSecret(absl::string_view text, std::string& target) {
  target = std::string(text);
  return absl::OkStatus();
}

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

absl::Status StoreInput(absl::string_view text, DaemonOptions& target) {
  target.merged.clear();
  if (IsPattern(text)) {
    target.input = std::string(text);
    return absl::OkStatus();
  }
  const std::vector<absl::string_view> names = absl::StrSplit(text, ',');
  if (absl::Status status = StoreTopic(names.front(), target.input); !status.ok() || names.size() == 1) {
    return status;
  }
  for (const absl::string_view name : names) {
    if (IsPattern(name)) return BadValue(text, "a pattern cannot be merged with other inputs");
    if (absl::c_linear_search(target.merged, name)) {
      return BadValue(text, absl::StrCat("\"", name, "\" comes twice"));
    }
    if (absl::Status status = StoreTopic(name, target.merged.emplace_back()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status StoreTopicForm(absl::string_view text, std::string& target) {
  std::string name(text);
  for (char group = '1'; group <= '9'; ++group) {
    name = absl::StrReplaceAll(name, {{std::string{'$', group}, "x"}});
  }
  if (absl::Status status = StoreTopic(name, name); !status.ok()) return StoreTopic(text, target);
  target = std::string(text);
  return absl::OkStatus();
}

absl::Status StoreHorizon(absl::string_view text, StageOptions& stage) {
  return StoreChecked(text, ParseDuration(text), &StageOptions::horizon, stage);
}

absl::Status StoreFpp(absl::string_view text, StageOptions& stage) {
  if (!ParseShare(text).ok()) {
    return BadValue(text, "expected a number from 1e-15 to 0.1, such as 1e-6 or 0.1%");
  }
  return StoreChecked(text, ParseShare(text), &StageOptions::target_fpp, stage);
}

absl::Status StoreMemory(absl::string_view text, StageOptions& stage) {
  return StoreChecked(text, ParseBytes(text), &StageOptions::memory_limit_bytes, stage);
}

absl::Status StoreDaemonMemory(absl::string_view text, StageOptions& stage) {
  constexpr int64_t kLeast = 64 << 10;
  const auto bytes = ParseBytes(text);
  if (bytes.ok() && *bytes < kLeast) return BadValue(text, "expected a size of 64KiB or more");
  return StoreMemory(text, stage);
}

}  // namespace lethe
