#include "connectors/kafka/topics/topic_facts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace lethe::kafka {
namespace {

// Kafka's default of max.message.bytes, for brokers that do not describe topics.
constexpr int64_t kDefaultMaxMessageBytes = 1048588;

}  // namespace

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
  // The older property bounds both, where the newer ones do not.
  const int64_t difference = Number("message.timestamp.difference.max.ms", INT64_MAX);
  rules.before_max_ms = Number("message.timestamp.before.max.ms", INT64_MAX);
  rules.after_max_ms = Number("message.timestamp.after.max.ms", INT64_MAX);
  if (rules.before_max_ms == INT64_MAX) rules.before_max_ms = difference;
  if (rules.after_max_ms == INT64_MAX) rules.after_max_ms = difference;
  return rules;
}

int64_t TopicFacts::max_batch_bytes() const {
  return std::min(max_message_bytes(), Number("segment.bytes", INT64_MAX));
}

int64_t TopicFacts::TimestampBound(const char* property) const {
  const int64_t own = Number(property, INT64_MAX);
  return own == INT64_MAX ? Number(kDifference, INT64_MAX) : own;
}

}  // namespace lethe::kafka
