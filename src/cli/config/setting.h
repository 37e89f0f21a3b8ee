// The settings: one table per command describes each key completely, and drives the
// configuration file, the flags and the help.
#ifndef LETHE_SRC_CLI_CONFIG_SETTING_H_
#define LETHE_SRC_CLI_CONFIG_SETTING_H_

#include <array>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "lethe/options.h"

namespace lethe {

// One key that takes one value. Options is the struct that it ends up in.
template <class Options>
struct Setting {
  absl::string_view key;       // as in the file; "log.level" is `level` in the section `log`
  absl::string_view type;      // what kind of value, for the help: DURATION
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
};

// --commit-interval for commit_interval, --log-level for log.level.
inline std::string FlagOf(absl::string_view key) {
  return absl::StrCat("--", absl::StrReplaceAll(key, {{"_", "-"}, {".", "-"}}));
}

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

// What several commands share. The stage's own limits are checked here, where the place is known.
absl::Status StoreHorizon(absl::string_view text, StageOptions& stage);
absl::Status StoreFpp(absl::string_view text, StageOptions& stage);
absl::Status StoreMemory(absl::string_view text, StageOptions& stage);
absl::Status StoreAdaptation(absl::string_view text, StageOptions& stage);
absl::Status StoreAtMemoryLimit(absl::string_view text, StageOptions& stage);
absl::Status StoreSecondOpinion(absl::string_view text, StageOptions& stage);
absl::Status StoreOnSuspect(absl::string_view text, StageOptions& stage);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_SETTING_H_
