#include "src/cli/config/config.h"

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

// The draft gets what the file says at the top level; `topics` gets the rest.
absl::Status AddFile(const ConfigText& file, Draft& draft, std::vector<TopicEntries>& topics) {
  const absl::StatusOr<std::vector<ConfigEntry>> entries = ParseConfigText(file);
  if (!entries.ok()) return entries.status();
  for (const ConfigEntry& entry : *entries) {
    if (entry.topic < 0) {
      if (absl::Status status = draft.AddEntry(entry); !status.ok()) return status;
    } else if (entry.key.empty() && entry.section.empty()) {
      return Wrong(draft.PlaceOf(entry), "expected the keys of a topic, found ", Found(entry.shape));
    } else {
      topics.resize(static_cast<size_t>(entry.topic) + 1);
      topics.back().push_back(entry);
    }
  }
  return absl::OkStatus();
}

// Adds what an entry of `topics` has set to `own`.
absl::Status AddTopic(const TopicEntries& entries, Draft& draft, std::vector<EffectiveValue>& own) {
  for (const ConfigEntry& entry : entries) {
    if (absl::Status status = draft.AddEntry(entry); !status.ok()) return status;
  }
  if (absl::Status status = ApplyRules(draft); !status.ok()) return status;
  for (EffectiveValue& value : Effective(draft)) {
    value.key = absl::StrCat(kTopics, "[", draft.topic, "].", value.key);
    const bool is_own =
        absl::c_any_of(entries, [&](const ConfigEntry& entry) { return entry.Path() == value.key; });
    if (is_own) own.push_back(std::move(value));
  }
  return absl::OkStatus();
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

// Finishes each entry of `topics` on top of the rest. The first one's own values and what all have in common
// become those of the draft.
absl::Status AddTopics(const std::vector<TopicEntries>& topics, Draft& draft,
                       std::vector<EffectiveValue>& own) {
  for (const char* key : {"input", "output"}) {
    if (!draft.given.contains(key)) continue;
    return Wrong(draft.PlaceOf(key),
                 "with `topics` each entry has its own; move it into an entry of the list");
  }
  const Draft top = draft;
  std::vector<DaemonOptions> all;
  std::string texts;
  std::optional<Draft> first;
  for (const TopicEntries& entries : topics) {
    Draft one = top;
    one.topic = static_cast<int>(all.size());
    if (absl::Status status = AddTopic(entries, one, own); !status.ok()) return status;
    for (const ConfigEntry& entry : entries) {
      if (entry.key != kStorePassword) absl::StrAppend(&texts, entry.Path(), "=", entry.text, "\n");
    }
    all.push_back(one.config.daemon);
    if (!first) first = std::move(one);
  }
  if (absl::Status status = TopicList::Create(all).status(); !status.ok()) {
    return Wrong(draft.PlaceOf(topics[FirstBad(all)].front()), status.message());
  }
  draft.config = first->config;
  if (absl::c_none_of(all, [](const auto& each) { return NeedsSchema(each.RecordAndCounters()); })) {
    WarnOfUnusedRegistry(draft.config);
  }
  draft.config.topics = std::move(all);
  draft.config.fingerprint = FingerprintOf(*first, texts);
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
  std::vector<TopicEntries> topics;
  std::vector<EffectiveValue> of_topics;
  if (file) {
    draft.file_name = file->name;
    if (absl::Status status = AddFile(*file, draft, topics); !status.ok()) return status;
  }
  if (absl::Status status = draft.AddFlags(flags); !status.ok()) return status;
  if (topics.empty()) {
    if (absl::Status status = ApplyRules(draft); !status.ok()) return status;
    draft.config.topics = {draft.config.daemon};
    draft.config.fingerprint = FingerprintOf(draft, "");
  } else if (absl::Status status = AddTopics(topics, draft, of_topics); !status.ok()) {
    return status;
  }
  WarnOfShownSecret(draft.config);
  if (effective != nullptr) {
    *effective = Effective(draft);
    effective->insert(effective->end(), of_topics.begin(), of_topics.end());
  }
  return draft.config;
}

}  // namespace lethe
