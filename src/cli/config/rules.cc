#include "src/cli/config/rules.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/options/topic_list.h"
#include "src/text/format.h"

namespace lethe {
namespace {

absl::Status CheckCounter(const CounterDraft& draft, Delivery delivery) {
  const CounterConfig& config = draft.config;
  for (const Setting<CounterConfig>& setting : CounterSettings()) {
    if (!setting.required || draft.given.contains(setting.key)) continue;
    return Wrong(draft.place, "missing ", setting.key, ", for example ", setting.example);
  }
  if (config.when.has_value() != config.equals.has_value()) {
    return Wrong(draft.place, "`when` and `equals` go together: a field, and what must be there");
  }
  if (config.options.mode == CounterMode::kTotal && delivery != Delivery::kExactlyOnce) {
    return Wrong(draft.place,
                 "mode: total needs delivery: exactly_once, because records replayed after a crash "
                 "would be counted twice; use mode: delta");
  }
  if (!config.options.store.empty() && config.options.mode != CounterMode::kTotal) {
    return Wrong(draft.place, "a store needs mode: total, which can be brought there again");
  }
  if (config.options.store.empty() && !config.options.store_password.empty()) {
    return Wrong(draft.place, kStorePassword, " needs a store, such as redis://127.0.0.1:6379/0");
  }
  return absl::OkStatus();
}

absl::Status CheckCounters(Draft& draft) {
  constexpr size_t kMost = 16;  // records are read for all of them at once
  if (draft.counters.size() > kMost) {
    return Wrong(draft.counters[kMost].place, "expected at most ", kMost,
                 " counters; others take another lethe");
  }
  Errors errors;
  std::set<std::string> names;
  for (CounterDraft& counter : draft.counters) {
    CounterOptions& options = counter.config.options;
    errors.Add(CheckCounter(counter, draft.config.daemon.process.delivery));
    if (!names.insert(options.name).second) {
      errors.Add(Wrong(counter.place, "another counter has the name \"", options.name, "\""));
    }
    if (counter.config.when && counter.config.equals) {
      options.spec.when = {*counter.config.when, *counter.config.equals};
    }
    draft.config.daemon.counters.push_back(options);
  }
  return errors.status();
}

struct NamedTopic {
  std::string role;
  std::string name;
  std::string place;
};

// All that are read or written.
std::vector<NamedTopic> TopicsOf(const Draft& draft) {
  const DaemonOptions& daemon = draft.config.daemon;
  std::vector<NamedTopic> topics;
  for (const std::string& input : daemon.inputs()) {
    topics.push_back({"input", input, draft.PlaceOf("input")});
  }
  for (const auto& [key, name] : {std::pair("output", &daemon.output),
                                  {"divert", &daemon.divert},
                                  {"snapshots.to", &daemon.process.snapshots.topic}}) {
    if (!name->empty()) topics.push_back({key, *name, draft.PlaceOf(key)});
  }
  for (const CounterDraft& counter : draft.counters) {
    const CounterOptions& options = counter.config.options;
    const auto output = counter.given.find("output");
    if (output == counter.given.end()) continue;  // that it is missing is another error
    topics.push_back(
        {absl::StrCat("output of counter ", options.name), options.output, output->second.place});
  }
  return topics;
}

// A pattern and its groups are for `topics`.
absl::Status CheckNames(Draft& draft) {
  if (draft.topic >= 0) return absl::OkStatus();
  std::string unused;
  for (const NamedTopic& topic : TopicsOf(draft)) {
    if (IsPattern(topic.name)) {
      return Wrong(topic.place,
                   "a pattern of topics goes into the list `topics`, with an output such as unique.$1");
    }
    if (absl::Status status = StoreTopic(topic.name, unused); !status.ok()) {
      return Wrong(topic.place, status.message());
    }
  }
  return absl::OkStatus();
}

// A topic that is written and also read, or written as two things, would go round or be unreadable. A topic
// of two counters would tell their keys apart by nothing but a header.
absl::Status CheckTopics(Draft& draft) {
  const std::vector<NamedTopic> topics = TopicsOf(draft);
  for (auto later = topics.begin(); later != topics.end(); ++later) {
    const auto same = std::find_if(topics.begin(), later,
                                   [&](const NamedTopic& topic) { return topic.name == later->name; });
    if (same == later) continue;
    return Wrong(later->place, "\"", later->name, "\" is also the ", same->role, "; expected another topic");
  }
  return absl::OkStatus();
}

// Several inputs are one scope.
absl::Status CheckMerged(Draft& draft) {
  DaemonOptions& daemon = draft.config.daemon;
  if (daemon.merged.empty()) return absl::OkStatus();
  if (draft.given.contains("scope") && daemon.scope == Scope::kPartition) {
    return Wrong(draft.PlaceOf("scope"),
                 "several inputs need scope: topic, which is their default; delete scope");
  }
  daemon.scope = Scope::kTopic;
  return absl::OkStatus();
}

absl::Status CheckDivert(Draft& draft) {
  DaemonOptions& daemon = draft.config.daemon;
  Policies& policies = daemon.policies;
  if (!daemon.divert.empty() && !draft.given.contains("on_undeliverable")) {
    policies.on_undeliverable = Action::kDivert;  // nothing is lost where it can be kept
  }
  if (!policies.diverts()) daemon.divert.clear();  // nothing would be written to it
  if (!policies.diverts() || !daemon.divert.empty()) return absl::OkStatus();
  const std::pair<absl::string_view, Action> actions[] = {
      {"on_duplicate", policies.on_duplicate},         {"on_missing_id", policies.on_missing_id},
      {"on_malformed", policies.on_malformed},         {"on_suspicious_id", policies.on_suspicious_id},
      {"on_undeliverable", policies.on_undeliverable}, {"on_uncountable", policies.on_uncountable}};
  const auto* diverts =
      absl::c_find_if(actions, [](const auto& each) { return each.second == Action::kDivert; });
  return Wrong(draft.PlaceOf(diverts->first),
               "divert needs a topic: set divert (or --divert), for example orders-diverted");
}

// Stream time may be so far ahead of the clock, and ids are forgotten earlier by as much: of a short horizon
// that would be all of it.
absl::Status SetMaxFuture(Draft& draft) {
  DaemonOptions& daemon = draft.config.daemon;
  if (draft.given.contains("max_future")) return absl::OkStatus();
  daemon.max_future = std::clamp(daemon.stage.horizon / 16, absl::Seconds(1), absl::Hours(1));
  return absl::OkStatus();
}

// Each value was good by itself; an engine may have limits of its own.
absl::Status CheckStage(Draft& draft) {
  const DaemonOptions& daemon = draft.config.daemon;
  const absl::Status status = Validate(daemon.stage);
  if (status.ok() || !draft.given.contains("engine")) return status;
  return Wrong(draft.PlaceOf("engine"), status.message());
}

// The brokers would abort each transaction before its commit.
absl::Status CheckTransactionTimeout(Draft& draft) {
  const auto given = draft.given.find("kafka.transaction.timeout.ms");
  const absl::Duration interval = draft.config.daemon.process.commit_interval;
  int64_t timeout_ms = 0;
  if (given == draft.given.end() || !absl::SimpleAtoi(given->second.text, &timeout_ms) ||
      absl::Milliseconds(timeout_ms) > interval) {
    return absl::OkStatus();
  }
  return Wrong(given->second.place, "expected more than commit_interval, which is ", DurationText(interval));
}

void AddWarning(RunConfig& config, absl::string_view text) {
  absl::StrAppend(&config.warning, config.warning.empty() ? "" : "; ", text);
}

absl::Status CheckSchemas(Draft& draft) {
  RunConfig& config = draft.config;
  const RecordSpec spec = config.daemon.RecordAndCounters();
  absl::Status status = CheckPlaces(spec);
  if (status.ok()) status = CheckRegistryOf(spec, config.schema_registry);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(draft.file_name, draft.file_name.empty() ? "" : ": ", status.message()));
  }
  if (draft.topic < 0 && !NeedsSchema(spec)) WarnOfUnusedRegistry(config);
  // Beside the snapshots, for the replay after a restart.
  config.schema_registry.folder = config.daemon.process.snapshots.folder;
  return absl::OkStatus();
}

// The group's name is part of the name of a topic with scope: topic.
absl::Status CheckGroup(Draft& draft) {
  DaemonOptions& daemon = draft.config.daemon;
  if (daemon.process.group.empty()) {
    daemon.process.group = absl::StrCat("lethe-", daemon.merged.empty() ? daemon.input : daemon.output);
  }
  if (daemon.scope != Scope::kTopic || IsPattern(daemon.input) || IsTopicName(RepartitionTopic(daemon))) {
    return absl::OkStatus();
  }
  const bool is_given = draft.given.contains("scope");
  return Wrong(draft.PlaceOf(is_given ? "scope" : "input"), is_given ? "topic" : "scope: topic",
               " needs an internal topic, and \"", RepartitionTopic(daemon),
               "\" is not a topic name; choose a shorter group, of letters, digits, '.', '_' and '-'");
}

absl::Status CheckInstance(Draft& draft) {
  DaemonOptions& daemon = draft.config.daemon;
  if (!daemon.process.instance.empty()) {
    // A name that was given is meant to be unique in the group; two hosts of one name are not.
    if (!draft.given.contains("static_membership")) {
      daemon.process.static_membership = StaticMembership::kAfterCrash;
    }
    return absl::OkStatus();
  }
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') {
    return absl::InvalidArgumentError("this host has no name; set instance (or --instance)");
  }
  daemon.process.instance = name;
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckMissing(const Draft& draft) {
  const bool is_topic = draft.topic >= 0;
  std::vector<std::string> missing;
  for (const Setting<RunConfig>& setting : RunSettings()) {
    // A name that follows from the input would change with the first topic.
    const bool is_required = setting.required || (is_topic && setting.key == "group");
    if (!is_required || draft.given.contains(setting.key)) continue;
    const bool is_in_entry = is_topic && (setting.key == "input" || setting.key == "output");
    const std::string flag = FlagOf(setting.key);
    const std::string name = is_in_entry               ? std::string(setting.key)
                             : draft.file_name.empty() ? flag
                                                       : absl::StrCat(setting.key, " (or ", flag, ")");
    missing.push_back(absl::StrCat(name, ", for example ", setting.example));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(draft.file_name, draft.file_name.empty() ? "" : ": ",
                   is_topic ? absl::StrCat(kTopics, "[", draft.topic, "]: ") : "", "missing ",
                   absl::StrJoin(missing, "; ")));
}

void ApplyRules(Draft& draft, Errors& errors) {
  for (const auto& rule : {CheckCounters, CheckNames, CheckTopics, CheckMerged, CheckDivert, SetMaxFuture,
                           CheckStage, CheckTransactionTimeout, CheckSchemas, CheckGroup, CheckInstance}) {
    errors.Add(rule(draft));
  }
}

void WarnOfUnusedRegistry(RunConfig& config) {
  if (config.schema_registry.urls.empty()) return;
  AddWarning(config,
             "schema_registry is set, and no field needs a schema: delete it, or set id to avro:/POINTER "
             "or protobuf:/NAME");
}

void WarnOfShownSecret(RunConfig& config) {
  const std::string url = registry::UrlThatShowsSecret(config.schema_registry);
  if (url.empty()) return;
  AddWarning(config,
             absl::StrCat("schema_registry.", config.schema_registry.token.empty() ? "password" : "token",
                          " goes unencrypted to ", url,
                          ", and anyone who sees the network's traffic can read it: set url to https"));
}

}  // namespace lethe
