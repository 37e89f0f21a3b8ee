#include "src/pipeline/preflight/log_sample.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

// A younger log says nothing about a day.
constexpr absl::Duration kYoungestLog = absl::Minutes(5);

}  // namespace

void LogSample::Partition::SetRate(int64_t since, absl::Time now) {
  const bool is_whole_log = since <= start && first_record <= now;
  const absl::Duration span = is_whole_log ? std::min(now - first_record, kRateOver) : kRateOver;
  if (span >= kYoungestLog) rate = static_cast<double>(end - since) / absl::ToDoubleSeconds(span);
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
  if (!record.key) ++sample_.without_key;
  sample_.frames.Add(record.key, record.value);
  AddSchema(record.key, record.headers, /*of_key=*/true);
  AddSchema(record.value, record.headers, /*of_key=*/false);
  const RecordFields& fields = reader_.Read(record.view());
  if (fields.id_state != RecordFields::State::kPresent) {
    ++(fields.id_state == RecordFields::State::kMalformed ? sample_.malformed : sample_.without_id);
    return;
  }
  Place place{record.partition, record.offset, std::nullopt};
  if (record.key) place.key.emplace(record.key->data(), record.key->size());
  const auto [first, is_new] = seen_.try_emplace(std::string(fields.id), place);
  if (is_new) return;
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

}  // namespace lethe
