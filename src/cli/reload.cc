#include "src/cli/reload.h"

#include <algorithm>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

constexpr absl::string_view kLive[] = {"commit_interval", "log.level"};

// The value that holds, as text.
std::string TextOf(const RunConfig& config, const Setting<RunConfig>& setting) {
  const auto found = config.texts.find(setting.key);
  return found == config.texts.end() ? std::string(setting.fallback) : found->second;
}

}  // namespace

std::vector<ConfigChange> Changes(const RunConfig& running, const RunConfig& read) {
  std::vector<ConfigChange> changes;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    std::string before = TextOf(running, setting);
    std::string after = TextOf(read, setting);
    if (before == after) continue;
    const bool live = absl::c_linear_search(kLive, setting.key);
    changes.push_back({std::string(setting.key), live, live ? before : "", live ? after : ""});
  }
  const auto properties = [](const RunConfig& config) {
    return std::map<std::string, std::string>(config.daemon.properties.begin(),
                                              config.daemon.properties.end());
  };
  const auto before = properties(running);
  const auto after = properties(read);
  std::map<std::string, bool> names;
  for (const auto* all : {&before, &after}) {
    for (const auto& [name, value] : *all) names.emplace(name, true);
  }
  for (const auto& [name, unused] : names) {
    const auto was = before.find(name);
    const auto is = after.find(name);
    if (was != before.end() && is != after.end() && was->second == is->second) continue;
    changes.push_back({absl::StrCat("kafka.", name), false, "", ""});
  }
  return changes;
}

void TakeOver(const RunConfig& read, RunConfig& running) {
  running.daemon.commit_interval = read.daemon.commit_interval;
  running.log.level = read.log.level;
  for (const absl::string_view key : kLive) {
    const auto found = read.texts.find(key);
    if (found == read.texts.end()) {
      running.texts.erase(std::string(key));
    } else {
      running.texts[std::string(key)] = found->second;
    }
  }
}

}  // namespace lethe
