#include "src/pipeline/options/record_rules.h"

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

// Between the broker's and this machine's.
constexpr absl::Duration kClocksDiffer = absl::Minutes(1);

// Whether `age` is more than `max_ms`, which may be Kafka's "unbounded".
bool Exceeds(absl::Duration age, int64_t max_ms) {
  return max_ms < INT64_MAX && age > absl::Milliseconds(max_ms) + kClocksDiffer;
}

std::string Bound(absl::string_view what, int64_t max_ms, absl::string_view property) {
  return absl::StrCat("its timestamp is more than ", absl::FormatDuration(absl::Milliseconds(max_ms)), " ",
                      what, " (", property, ")");
}

}  // namespace

std::string RecordRules::WhyRefused(int64_t timestamp_ms, bool has_key, absl::Time now) const {
  if (needs_key && !has_key) return "it has no key, and the topic is compacted";
  if (timestamp_ms <= 0) return "";
  const absl::Duration age = now - absl::FromUnixMillis(timestamp_ms);
  if (Exceeds(age, before_max_ms)) return Bound("old", before_max_ms, "message.timestamp.before.max.ms");
  if (Exceeds(-age, after_max_ms)) {
    return Bound("in the future", after_max_ms, "message.timestamp.after.max.ms");
  }
  return "";
}

std::string RecordRules::WhyTooLarge(absl::string_view value, CompressedSize& compressed) const {
  if (static_cast<int64_t>(value.size()) <= max_batch_bytes) return "";
  // Another codec than zstd may do a little better.
  const auto most = static_cast<int64_t>(1.1 * static_cast<double>(max_batch_bytes));
  if (!compressed.Exceeds(value, most)) return "";
  return absl::StrCat("its value has ", value.size(),
                      " bytes, which no codec makes smaller than the topic's ", max_batch_bytes,
                      " (max.message.bytes, segment.bytes)");
}

}  // namespace lethe
