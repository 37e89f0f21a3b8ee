#include "src/cli/config/config.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "connectors/http/http_server.h"
#include "src/cli/config/draft.h"
#include "src/cli/config/effective.h"
#include "src/cli/config/rules.h"
#include "src/pipeline/options/topic_list.h"
#include "src/text/host.h"

namespace lethe {
namespace {

// The entries of one of `topics`.
using TopicEntries = std::vector<ConfigEntry>;

// Moves what is of `topics` out of the entries.
std::vector<TopicEntries> TakeTopics(std::vector<ConfigEntry>& entries) {
  std::vector<TopicEntries> topics;
  std::vector<ConfigEntry> top;
  for (ConfigEntry& entry : entries) {
    if (entry.topic >= 0) topics.resize(std::max(topics.size(), static_cast<size_t>(entry.topic) + 1));
    (entry.topic < 0 ? top : topics[static_cast<size_t>(entry.topic)]).push_back(std::move(entry));
  }
  entries = std::move(top);
  return topics;
}

// Adds the values of an entry of `topics` that are its own to `own`.
void AddOwn(const TopicEntries& entries, const Draft& draft, std::vector<EffectiveValue>& own) {
  for (EffectiveValue& value : Effective(draft)) {
    value.key = absl::StrCat(kTopics, "[", draft.topic, "].", value.key);
    const bool is_own =
        absl::c_any_of(entries, [&](const ConfigEntry& entry) { return entry.Path() == value.key; });
    if (is_own) own.push_back(std::move(value));
  }
}

// The index of the entry that clashes with one before it, or is bad by itself. There is one.
size_t FirstBad(const std::vector<DaemonOptions>& all) {
  size_t good = 0;  // so many together are
  for (size_t bad = all.size(); bad - good > 1;) {
    const size_t middle = (good + bad) / 2;
    const bool is_good = TopicList::Create({all.begin(), all.begin() + static_cast<int>(middle)}).ok();
    (is_good ? good : bad) = middle;
  }
  return good;
}

// One draft for each entry of `topics`, on top of the rest.
std::vector<Draft> AddTopics(const std::vector<TopicEntries>& topics, const Draft& top, Errors& errors) {
  for (const char* key : {"input", "output"}) {
    if (topics.empty() || !top.given.contains(key)) continue;
    errors.Add(
        Wrong(top.PlaceOf(key), "with `topics` each entry has its own; move it into an entry of the list"));
  }
  std::vector<Draft> drafts;
  for (const TopicEntries& entries : topics) {
    Draft& draft = drafts.emplace_back(top);
    draft.topic = static_cast<int>(drafts.size()) - 1;
    draft.AddEntries(entries, errors);
    const bool has_keys = entries.empty() || !entries.front().Key().empty();
    if (has_keys) errors.Add(CheckMissing(draft));
  }
  return drafts;
}

// Finishes the draft of each entry of `topics`. The first one's own values and what all have in common become
// those of `draft`.
absl::Status FinishTopics(const std::vector<TopicEntries>& topics, std::vector<Draft>& drafts, Draft& draft,
                          std::vector<EffectiveValue>& own) {
  Errors errors;
  for (Draft& one : drafts) ApplyRules(one, errors);
  if (!errors.empty()) return errors.status();
  std::vector<DaemonOptions> all;
  std::string texts;
  for (size_t i = 0; i < topics.size(); ++i) {
    AddOwn(topics[i], drafts[i], own);
    for (const ConfigEntry& entry : topics[i]) {
      if (entry.key != kStorePassword) absl::StrAppend(&texts, entry.Path(), "=", entry.text, "\n");
    }
    all.push_back(drafts[i].config.daemon);
  }
  if (absl::Status status = TopicList::Create(all).status(); !status.ok()) {
    return Wrong(draft.PlaceOf(topics[FirstBad(all)].front()), status.message());
  }
  draft.config = drafts.front().config;
  if (absl::c_none_of(all, [](const auto& each) { return NeedsSchema(each.RecordAndCounters()); })) {
    WarnOfUnusedRegistry(draft.config);
  }
  draft.config.topics = std::move(all);
  draft.config.fingerprint = FingerprintOf(drafts.front(), texts);
  return absl::OkStatus();
}

}  // namespace

bool RunConfig::shows_counter_keys() const {
  if (http_counters) return *http_counters;
  const auto address = http::HttpAddress::Parse(http);
  return address.ok() && IsLoopback(address->host);
}

absl::StatusOr<RunConfig> MakeRunConfig(const std::optional<ConfigText>& file, const RunFlags& flags,
                                        std::vector<EffectiveValue>* effective,
                                        const std::optional<CgroupLimit>& limit) {
  Draft draft;
  draft.config.limit = limit;
  if (limit) draft.config.daemon.stage.memory_limit_bytes = DefaultMemory(*limit);
  Errors errors;
  std::vector<TopicEntries> topics;
  if (file) {
    draft.file_name = file->name;
    absl::StatusOr<std::vector<ConfigEntry>> entries = ParseConfigText(*file);
    if (!entries.ok()) return entries.status();
    topics = TakeTopics(*entries);
    draft.AddEntries(*entries, errors);
  }
  draft.AddFlags(flags, errors);
  std::vector<Draft> drafts = AddTopics(topics, draft, errors);
  if (topics.empty()) errors.Add(CheckMissing(draft));
  if (!errors.empty()) return errors.status();
  std::vector<EffectiveValue> of_topics;
  if (!topics.empty()) {
    if (absl::Status status = FinishTopics(topics, drafts, draft, of_topics); !status.ok()) return status;
  } else {
    ApplyRules(draft, errors);
    if (!errors.empty()) return errors.status();
    draft.config.topics = {draft.config.daemon};
    draft.config.fingerprint = FingerprintOf(draft, "");
  }
  WarnOfShownSecret(draft.config);
  if (effective != nullptr) {
    *effective = Effective(draft);
    effective->insert(effective->end(), of_topics.begin(), of_topics.end());
  }
  return draft.config;
}

}  // namespace lethe
