#include "src/cli/config/reload.h"

#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lethe {
namespace {

// Of one key. OK: the daemon runs with the value of `read`, and `running` has it.
using Apply = absl::Status (*)(const RunConfig& read, RunConfig& running, kafka::Daemon& daemon);

absl::Status ApplyFpp(const RunConfig& read, RunConfig& running, kafka::Daemon& daemon) {
  const absl::Status set = daemon.SetTargetFpp(read.daemon.stage.target_fpp);
  if (set.ok()) running.daemon.stage.target_fpp = read.daemon.stage.target_fpp;
  return set;
}

absl::Status ApplyMemory(const RunConfig& read, RunConfig& running, kafka::Daemon& daemon) {
  const absl::Status set = daemon.SetMemoryLimit(read.daemon.stage.memory_limit_bytes);
  if (set.ok()) running.daemon.stage.memory_limit_bytes = read.daemon.stage.memory_limit_bytes;
  return set;
}

template <Action Policies::*kPolicy>
absl::Status ApplyPolicy(const RunConfig& read, RunConfig& running, kafka::Daemon& daemon) {
  Policies policies = running.daemon.policies;
  policies.*kPolicy = read.daemon.policies.*kPolicy;
  if (policies.*kPolicy == Action::kDivert && read.daemon.divert != running.daemon.divert) {
    return absl::FailedPreconditionError("the topic to divert to is opened at the start");
  }
  if (absl::Status set = daemon.SetPolicies(policies); !set.ok()) return set;
  running.daemon.policies = policies;
  running.daemon.stage.pass_suspects = policies.passes_suspects();
  return absl::OkStatus();
}

absl::Status ApplyCommitInterval(const RunConfig& read, RunConfig& running, kafka::Daemon& daemon) {
  daemon.SetCommitInterval(read.daemon.commit_interval);
  running.daemon.commit_interval = read.daemon.commit_interval;
  return absl::OkStatus();
}

absl::Status ApplyLogLevel(const RunConfig& read, RunConfig& running, kafka::Daemon& /*daemon*/) {
  running.log.level = read.log.level;
  SetLogLevel(running.log.level);
  return absl::OkStatus();
}

constexpr absl::string_view kHowPolicies =
    "with the next transaction; `divert` only to the topic that was diverted to at the start";

struct LiveKey {
  absl::string_view key;
  Apply apply;
  absl::string_view how;
};

constexpr LiveKey kLive[] = {
    {"fpp", ApplyFpp,
     "with the next transaction, if the filter's form stays: engine `sliced`, and both targets in one of the "
     "ranges up from 1e-3, up from 1e-5, up from 1e-7, and below; ids in the filter keep their rate until it "
     "is forgotten, so a lower target is kept once the horizon has passed"},
    {"memory", ApplyMemory,
     "at once: a filter that needs room takes it, up to four times the limit under which it was made; a "
     "lower limit must not be below the present use"},
    {"on_duplicate", ApplyPolicy<&Policies::on_duplicate>, kHowPolicies},
    {"on_suspect", ApplyPolicy<&Policies::on_suspect>, kHowPolicies},
    {"on_missing_id", ApplyPolicy<&Policies::on_missing_id>, kHowPolicies},
    {"on_malformed", ApplyPolicy<&Policies::on_malformed>, kHowPolicies},
    {"on_undeliverable", ApplyPolicy<&Policies::on_undeliverable>, kHowPolicies},
    {"on_unreadable", ApplyPolicy<&Policies::on_unreadable>, kHowPolicies},
    {"on_uncountable", ApplyPolicy<&Policies::on_uncountable>, kHowPolicies},
    {"commit_interval", ApplyCommitInterval, "with the next transaction"},
    {"log.level", ApplyLogLevel, "at once"},
};

const LiveKey* FindLive(absl::string_view key) {
  for (const LiveKey& live : kLive) {
    if (live.key == key) return &live;
  }
  return nullptr;
}

// The stage names the option first, as it calls it.
std::string WithoutOption(absl::string_view message) {
  for (const absl::string_view option : {"target_fpp: ", "memory_limit_bytes: "}) {
    absl::ConsumePrefix(&message, option);
  }
  return std::string(message);
}

void TakeText(const RunConfig& read, absl::string_view key, RunConfig& running) {
  const auto found = read.texts.find(key);
  if (found == read.texts.end()) {
    running.texts.erase(std::string(key));
  } else {
    running.texts[std::string(key)] = found->second;
  }
}

void AddProperties(const RunConfig& read, const RunConfig& running, std::vector<ConfigChange>& changes) {
  const std::map<std::string, std::string> before(running.daemon.properties.begin(),
                                                  running.daemon.properties.end());
  const std::map<std::string, std::string> after(read.daemon.properties.begin(),
                                                 read.daemon.properties.end());
  std::set<std::string> names;
  for (const auto* all : {&before, &after}) {
    for (const auto& [name, value] : *all) names.insert(name);
  }
  for (const std::string& name : names) {
    const auto was = before.find(name);
    const auto is = after.find(name);
    if (was != before.end() && is != after.end() && was->second == is->second) continue;
    changes.emplace_back().key = absl::StrCat("kafka.", name);
  }
}

}  // namespace

absl::string_view HowReloaded(absl::string_view key) {
  const LiveKey* live = FindLive(key);
  return live == nullptr ? absl::string_view() : live->how;
}

std::vector<ConfigChange> Reload(const RunConfig& read, RunConfig& running, kafka::Daemon& daemon) {
  std::vector<ConfigChange> changes;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    const std::string before = TextOf(running, setting);
    const std::string after = TextOf(read, setting);
    if (before == after) continue;
    ConfigChange& change = changes.emplace_back();
    change.key = std::string(setting.key);
    const LiveKey* live = FindLive(setting.key);
    if (live == nullptr) continue;
    change.before = before;
    change.after = after;
    const absl::Status applied = live->apply(read, running, daemon);
    change.is_applied = applied.ok();
    change.why_not = WithoutOption(applied.message());
    if (applied.ok()) TakeText(read, setting.key, running);
  }
  const auto counters = [](const RunConfig& config) {
    const auto found = config.texts.find("counters");
    return found == config.texts.end() ? "" : found->second;
  };
  if (counters(read) != counters(running)) changes.emplace_back().key = "counters";
  AddProperties(read, running, changes);
  running.fingerprint = FingerprintOf(running);
  return changes;
}

}  // namespace lethe
