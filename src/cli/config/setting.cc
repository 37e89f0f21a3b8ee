#include "src/cli/config/setting.h"

#include <algorithm>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "src/cli/config/config_file.h"
#include "src/cli/config/units.h"

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

absl::Status StoreText(absl::string_view text, absl::string_view expected, std::string& target) {
  if (text.empty()) return BadValue(text, expected);
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

absl::Status StoreHorizon(absl::string_view text, StageOptions& stage) {
  return StoreChecked(text, ParseDuration(text), &StageOptions::horizon, stage);
}

absl::Status StoreFpp(absl::string_view text, StageOptions& stage) {
  return StoreChecked(text, ParseShare(text), &StageOptions::target_fpp, stage);
}

absl::Status StoreMemory(absl::string_view text, StageOptions& stage) {
  return StoreChecked(text, ParseBytes(text), &StageOptions::memory_limit_bytes, stage);
}

}  // namespace lethe
