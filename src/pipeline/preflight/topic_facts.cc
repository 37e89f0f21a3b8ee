#include "src/pipeline/preflight/topic_facts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/text/suggestion.h"

namespace lethe {
namespace {

// Kafka's default of max.message.bytes, for brokers that do not describe topics.
constexpr int64_t kDefaultMaxMessageBytes = 1048588;

}  // namespace

void TopicFacts::Join(const TopicFacts& other) {
  partitions = std::max(partitions, other.partitions);
  replicas = std::max(replicas, other.replicas);
  may_be_described = may_be_described && other.may_be_described;
  if (other.max_message_bytes() > max_message_bytes()) {
    config["max.message.bytes"] = absl::StrCat(other.max_message_bytes());
  }
  // A negative one is the longest.
  for (const char* property : {"retention.ms", "retention.bytes"}) {
    if (!config.contains(property) || !other.config.contains(property) || Number(property, -1) < 0) continue;
    const int64_t theirs = other.Number(property, -1);
    if (theirs < 0 || theirs > Number(property, -1)) config[property] = absl::StrCat(theirs);
  }
  constexpr char kMinInSync[] = "min.insync.replicas";
  if (other.Number(kMinInSync, 1) > Number(kMinInSync, 1)) config[kMinInSync] = other.Value(kMinInSync);
}

std::string TopicFacts::Value(const std::string& property) const {
  const auto found = config.find(property);
  return found == config.end() ? "" : found->second;
}

int64_t TopicFacts::Number(const std::string& property, int64_t fallback) const {
  const auto found = config.find(property);
  int64_t value = 0;
  return found != config.end() && absl::SimpleAtoi(found->second, &value) ? value : fallback;
}

int64_t TopicFacts::max_message_bytes() const { return Number("max.message.bytes", kDefaultMaxMessageBytes); }

RecordRules TopicFacts::record_rules() const {
  RecordRules rules;
  rules.needs_key = absl::StrContains(Value("cleanup.policy"), "compact");
  rules.max_batch_bytes = max_batch_bytes();
  if (Value("message.timestamp.type") == "LogAppendTime") return rules;
  const int64_t retention_ms = Number("retention.ms", -1);
  const bool deletes = retention_ms >= 0 && absl::StrContains(Value("cleanup.policy"), "delete");
  if (deletes) rules.kept_for = absl::Milliseconds(retention_ms);
  rules.before_max_ms = max_before_ms();
  rules.after_max_ms = max_after_ms();
  return rules;
}

int64_t TopicFacts::max_batch_bytes() const {
  return std::min(max_message_bytes(), Number("segment.bytes", INT64_MAX));
}

int64_t TopicFacts::TimestampBound(const char* property) const {
  const int64_t own = Number(property, INT64_MAX);
  return own == INT64_MAX ? Number(kDifference, INT64_MAX) : own;
}

absl::Status WithGrant(absl::string_view role, const std::string& topic, const absl::Status& status) {
  if (!absl::IsPermissionDenied(status)) return status;
  absl::string_view what = "Describe and Write";
  if (role == "input") what = "Describe and Read";
  if (role == "snapshot" || role == "totals") what = "Read, Write and, to make it, Create";
  if (role == "repartition") what = "Read, Write, Delete and, to make it, Create";
  return absl::PermissionDeniedError(
      absl::StrCat(status.message(), ": grant this user ", what, " on topic ", topic));
}

TopicFacts TopicLike(const TopicFacts& input, const std::string& name) {
  TopicFacts topic = {.name = name, .partitions = std::max(input.partitions, 1), .replicas = input.replicas};
  for (const char* property : {"retention.ms", "retention.bytes", "min.insync.replicas"}) {
    if (const auto found = input.config.find(property); found != input.config.end())
      topic.config.insert(*found);
  }
  if (input.max_message_bytes() > kDefaultMaxMessageBytes) {
    topic.config["max.message.bytes"] = absl::StrCat(input.max_message_bytes());
  }
  return topic;
}

std::vector<std::string> CreateCommand(const std::string& brokers, const TopicFacts& topic) {
  std::vector<std::string> parts = {"kafka-topics.sh", absl::StrCat("--bootstrap-server ", brokers),
                                    "--create", absl::StrCat("--topic ", topic.name),
                                    absl::StrCat("--partitions ", topic.partitions)};
  if (topic.replicas > 0) parts.push_back(absl::StrCat("--replication-factor ", topic.replicas));
  for (const auto& [property, value] : topic.config) {
    parts.push_back(absl::StrCat("--config ", property, "=", value));
  }
  return parts;
}

absl::Status MissingTopic(const DaemonOptions& options, absl::string_view role, const std::string& name,
                          const TopicFacts& like, const std::vector<std::string>& others) {
  std::vector<std::string> possible = others;
  std::erase(possible, options.output);
  const std::optional<std::string> nearest = Nearest(name, possible);
  return absl::NotFoundError(absl::StrCat(
      role, " topic ", name, " does not exist",
      nearest ? absl::StrCat("; did you mean ", *nearest, "? Else ") : ": ",
      role == "input" ? "create it, for example with " : "create it with lethe check --create, or with ",
      absl::StrJoin(CreateCommand(options.process.brokers, TopicLike(like, name)), " ")));
}

}  // namespace lethe
