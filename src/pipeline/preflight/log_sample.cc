#include "src/pipeline/preflight/log_sample.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/pipeline/preflight/brokers.h"

namespace lethe {
namespace {

// A younger log says nothing about a day.
constexpr absl::Duration kYoungestLog = absl::Minutes(5);
constexpr absl::Duration kSamplePatience = absl::Seconds(10);
constexpr absl::Duration kOffsetsTimeout = absl::Seconds(3);
constexpr int64_t kMostRecords = 20000;

// How many records have come in the last hour, or since the log began if that is less.
absl::Status AskRate(Brokers& brokers, const std::string& topic, absl::Time now, LogSample& sample) {
  std::vector<int32_t> partitions;
  for (const LogSample::Partition& each : sample.partitions) partitions.push_back(each.partition);
  const auto since = brokers.AskOffsets({{topic, partitions}}, now - LogSample::kRateOver, kOffsetsTimeout);
  if (!since.ok()) return since.status();
  const auto of_topic = since->find(topic);
  if (of_topic == since->end()) return absl::OkStatus();
  for (const auto& [partition, offset] : of_topic->second) {
    sample.partitions[static_cast<size_t>(partition)].SetRate(offset, now);
  }
  return absl::OkStatus();
}

}  // namespace

void LogSample::Partition::SetRate(int64_t since, absl::Time now) {
  const bool is_whole_log = since <= start && first_record <= now;
  const absl::Duration span = is_whole_log ? std::min(now - first_record, kRateOver) : kRateOver;
  is_young = span < kYoungestLog && end > since;
  if (span >= kYoungestLog) rate = static_cast<double>(end - since) / absl::ToDoubleSeconds(span);
}

bool LogSample::is_young() const {
  return std::any_of(partitions.begin(), partitions.end(),
                     [](const Partition& each) { return each.is_young; });
}

double LogSample::rate() const {
  double sum = 0;
  for (const Partition& partition : partitions) sum += partition.rate;
  return sum;
}

void LogSampler::Add(const InputRecord& record) {
  ++sample_.records;
  const auto bytes = static_cast<int64_t>(record.key.value_or("").size() + record.value.value_or("").size());
  sample_.bytes += bytes;
  sample_.largest_bytes = std::max(sample_.largest_bytes, bytes);
  sample_.newest = std::max(sample_.newest, record.time());
  if (record.timestamp_ms >= 0) sample_.times.Add(record.timestamp_ms);
  if (!record.key) ++sample_.without_key;
  sample_.frames.Add(record.key, record.value);
  AddSchema(record.key, record.headers, /*of_key=*/true);
  AddSchema(record.value, record.headers, /*of_key=*/false);
  if (record.value) {
    const std::optional<EventList> list = finder_.Find(*record.value);
    if (list && list->events > 1) {
      ++sample_.lists;
      sample_.listed += list->events;
      sample_.lists_by_one += IsOfOneElement(id_, *list);
    }
  }
  const RecordFields& fields = reader_.Read(record.view());
  if (fields.id_state != RecordFields::State::kPresent) {
    ++(fields.id_state == RecordFields::State::kMalformed ? sample_.malformed : sample_.without_id);
    return;
  }
  sample_.later_place += fields.id_place > 0;
  sample_.partial += fields.lacks_optional;
  Place place{record.partition, record.offset, std::nullopt, record.Hash()};
  if (record.key) place.key.emplace(record.key->data(), record.key->size());
  const auto [first, is_new] = seen_.try_emplace(std::string(fields.id), place);
  if (is_new) return;
  if (std::exchange(first->second.content, place.content) != place.content &&
      ++first->second.differing > sample_.differing) {
    sample_.differing = first->second.differing;
    sample_.differing_example = absl::StrCat(Name(first->second), " and ", Name(place));
  }
  const bool elsewhere = first->second.partition != place.partition;
  if (!elsewhere && first->second.key == place.key) return;
  ++(elsewhere ? sample_.copies_elsewhere : sample_.copies_with_another_key);
  if (sample_.example.empty()) sample_.example = absl::StrCat(Name(first->second), " and ", Name(place));
}

void LogSampler::AddSchema(std::optional<absl::string_view> bytes, const RecordHeaders* headers,
                           bool of_key) {
  if (!bytes || bytes->size() == kNumberBytes || sample_.schemas.size() == LogSample::kMostSchemas) return;
  const Unframed unframed = Unframe(*bytes, headers, of_key);
  if (unframed.kind == Unframed::Kind::kFramed) sample_.schemas.insert(unframed.schema);
}

std::string LogSampler::Name(const Place& place) const {
  return absl::StrCat(topic_, "-", place.partition, " offset ", place.offset);
}

absl::StatusOr<std::vector<LogSample::Partition>> AskLogs(Brokers& brokers, const std::string& topic,
                                                          int32_t partitions) {
  std::vector<LogSample::Partition> logs;
  for (int32_t i = 0; i < partitions; ++i) {
    const auto bounds = brokers.AskBounds(topic, i);
    if (!bounds.ok()) return bounds.status();
    logs.push_back({.partition = i, .start = bounds->begin, .end = bounds->end});
  }
  return logs;
}

absl::StatusOr<LogSample> SampleLog(const DaemonOptions& options, Brokers& brokers, int32_t partitions,
                                    absl::Time now) {
  auto logs = AskLogs(brokers, options.input, partitions);
  if (!logs.ok()) return logs.status();
  LogSample sample;
  sample.partitions = *std::move(logs);
  std::vector<LogPlace> starts;
  std::map<int32_t, OffsetRange> newest;
  const int64_t most = std::max<int64_t>(kMostRecords / std::max(partitions, 1), 1);
  for (const LogSample::Partition& log : sample.partitions) {
    starts.push_back({options.input, log.partition, log.start});
    newest[log.partition] = {std::max(log.start, log.end - most), log.end};
  }
  const auto times = brokers.AskTimes(starts);
  if (!times.ok()) return times.status();
  for (size_t i = 0; i < times->size(); ++i) {
    if ((*times)[i] != absl::InfiniteFuture()) sample.partitions[i].first_record = (*times)[i];
  }
  LogSampler sampler(options, sample);
  absl::Status read = brokers.Read(options.input, newest, kSamplePatience,
                                   [&](const InputRecord& record) { sampler.Add(record); });
  if (!read.ok()) return read;
  if (absl::Status asked = AskRate(brokers, options.input, now, sample); !asked.ok()) return asked;
  return sample;
}

absl::StatusOr<std::vector<absl::Duration>> AskLag(Brokers& brokers, const std::string& topic,
                                                   const std::vector<int64_t>& next, absl::Time now) {
  std::vector<LogPlace> places;
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i] >= 0) places.push_back({topic, static_cast<int32_t>(i), next[i]});
  }
  const auto times = brokers.AskTimes(places);
  if (!times.ok()) return times.status();
  std::vector<absl::Duration> lags(next.size(), absl::ZeroDuration());
  for (size_t i = 0; i < places.size(); ++i) {
    // Without a timestamp it may be of any time.
    const absl::Time sent = (*times)[i];
    if (sent == absl::InfinitePast()) continue;
    lags[static_cast<size_t>(places[i].partition)] = now - std::min(sent, now);
  }
  return lags;
}

}  // namespace lethe
