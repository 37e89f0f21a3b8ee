#include "src/pipeline/preflight/retention_rules.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr absl::Duration kOffsetsTimeout = absl::Seconds(3);

// The next record to read of each partition that may be older than `since`.
std::vector<LogPlace> PlacesBefore(const DaemonOptions& options,
                                   const std::vector<CommittedOffset>& committed, absl::Time since,
                                   Brokers& brokers) {
  std::vector<int32_t> partitions(committed.size());
  std::iota(partitions.begin(), partitions.end(), 0);
  auto offsets = brokers.AskOffsets({{options.input, partitions}}, since, kOffsetsTimeout);
  if (!offsets.ok()) return {};
  const std::map<int32_t, int64_t>& younger = (*offsets)[options.input];
  std::vector<LogPlace> places;
  for (const int32_t partition : partitions) {
    int64_t next = committed[static_cast<size_t>(partition)].offset;
    if (next < 0 && options.start != Start::kEarliest) continue;
    const auto first_younger = younger.find(partition);
    const auto is_younger = [&] { return first_younger != younger.end() && first_younger->second <= next; };
    if (is_younger()) continue;
    const auto log = brokers.AskBounds(options.input, partition);
    if (!log.ok()) continue;
    next = std::max(next, log->begin);
    if (next < log->end && !is_younger()) places.push_back({options.input, partition, next});
  }
  return places;
}

struct OldRecord {
  LogPlace place;
  absl::Time time;
};

std::optional<OldRecord> OldestOf(const std::vector<LogPlace>& places, Brokers& brokers) {
  if (places.empty()) return std::nullopt;
  const auto times = brokers.AskTimes(places);
  if (!times.ok()) return std::nullopt;
  std::optional<OldRecord> oldest;
  for (size_t i = 0; i < places.size(); ++i) {
    const absl::Time time = (*times)[i];
    if (time == absl::InfinitePast() || (oldest && oldest->time <= time)) continue;
    oldest = {places[i], time};
  }
  return oldest;
}

}  // namespace

std::vector<Finding> FindExpiring(const DaemonOptions& options, const TopicFacts& input,
                                  absl::Span<const KeptIn> topics, Brokers& brokers, absl::Time now) {
  absl::Duration shortest = absl::InfiniteDuration();
  for (const KeptIn& each : topics) shortest = std::min(shortest, each.topic->record_rules().kept_for);
  if (shortest == absl::InfiniteDuration()) return {};
  const auto committed = brokers.AskCommitted(options.input, input.partitions);
  if (!committed.ok()) return {};
  const auto oldest = OldestOf(PlacesBefore(options, *committed, now - shortest, brokers), brokers);
  if (!oldest) return {};
  const absl::Duration age = now - oldest->time;
  std::vector<Finding> findings;
  for (const auto& [role, topic] : topics) {
    const absl::Duration kept = topic->record_rules().kept_for;
    if (age <= kept) continue;
    const absl::Duration of_input = input.record_rules().kept_for;
    const bool covers = of_input > age;
    const int64_t wanted_ms = !covers                                ? absl::ToInt64Milliseconds(2 * age)
                              : of_input == absl::InfiniteDuration() ? -1
                                                                     : absl::ToInt64Milliseconds(of_input);
    findings.push_back(
        {Finding::Severity::kWarning, "retention", absl::StrCat(role, " topic ", topic->name),
         absl::StrCat(
             "keeps records for ", DurationText(kept), " (retention.ms=", absl::ToInt64Milliseconds(kept),
             "), and the oldest record to be read is ", DurationText(age), " old (", oldest->place.topic, "-",
             oldest->place.partition, " offset ", oldest->place.offset, ", of ",
             absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", oldest->time, absl::UTCTimeZone()),
             "): records keep their times, so Kafka deletes it there soon after lethe has written it"),
         AlterTopic(options.process, topic->name, absl::StrCat("retention.ms=", wanted_ms))});
  }
  return findings;
}

}  // namespace lethe
