// A configuration while it is read: what was given, and where.
#ifndef LETHE_SRC_CLI_CONFIG_DRAFT_H_
#define LETHE_SRC_CLI_CONFIG_DRAFT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/cli/config/config.h"
#include "src/cli/config/config_file.h"

namespace lethe {

inline constexpr absl::string_view kCounters = "counters";
inline constexpr absl::string_view kFromEnvironment = ", from the environment";

// All that is wrong, a line each, so that nobody mends one error and meets the next.
class Errors {
 public:
  void Add(const absl::Status& status);
  bool empty() const { return count_ == 0; }
  absl::Status status() const;

 private:
  static constexpr int kMostShown = 20;

  int count_ = 0;
  std::string text_;  // of those that are shown
};

struct GivenValue {
  std::string text;
  std::string origin;  // as that of an EffectiveValue
  std::string place;   // for messages
};
using GivenValues = std::map<std::string, GivenValue, std::less<>>;  // by key

// One of `counters`.
struct CounterDraft {
  CounterConfig config;
  GivenValues given;  // by the key within it
  std::string place;  // of all of it
};

// Whether values agree with one another is only known when all are there (rules.h).
struct Draft {
  std::string file_name;  // empty if there is none
  int topic = -1;         // of `topics`, which starts as a copy of the top level; -1: the top level
  RunConfig config;
  GivenValues given;  // those of `kafka` by "kafka.NAME"; also of those whose values are wrong
  std::vector<CounterDraft> counters;
  bool has_own_counters = false;  // of an entry of `topics`

  // The errors name the place, the value and the expected form.
  void AddEntries(const std::vector<ConfigEntry>& entries, Errors& errors);
  void AddFlags(const RunFlags& flags, Errors& errors);

  std::string PlaceOf(const ConfigEntry& entry) const {
    return absl::StrCat(file_name, ":", entry.line, ": ", entry.Path());
  }
  // Where the key was given, which it was.
  const std::string& PlaceOf(absl::string_view key) const { return given.find(key)->second.place; }

 private:
  absl::Status AddEntry(const ConfigEntry& entry);
  absl::Status AddSetting(const ConfigEntry& entry);
  absl::Status AddCounterEntry(const ConfigEntry& entry);
  absl::Status AddCounterFlag(const std::string& text);
  absl::Status AddProperty(const std::string& name, const GivenValue& value);
  absl::StatusOr<GivenValue> ValueOf(const ConfigEntry& entry) const;
};

// For messages.
absl::string_view Found(ConfigEntry::Shape shape);

template <class... Parts>
absl::Status Wrong(absl::string_view place, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", parts...));
}

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_DRAFT_H_
