#include "connectors/kafka/preflight/log_sample.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/message_view.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/record/record_reader.h"

namespace lethe::kafka {
namespace {

constexpr int kRequestTimeoutMs = 3000;
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr int kPollMs = 200;
constexpr int64_t kMostRecords = 20000;
constexpr absl::Duration kRateOver = absl::Hours(1);
// What came in less says nothing about a day.
constexpr absl::Duration kYoungestLog = absl::Minutes(5);

// Whether more of a stretch is to be read.
enum class Wanted { kMore, kNoMore };

// A stretch of one partition's log.
struct Stretch {
  int32_t partition = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

// Reads stretches, all at once, until they are through, `see` has seen enough of them, or the time is over.
absl::Status ReadStretches(rd_kafka_t* client, const std::string& topic,
                           const std::vector<Stretch>& stretches,
                           const std::function<Wanted(const rd_kafka_message_t&)>& see) {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(stretches.size())));
  std::unordered_map<int32_t, int64_t> ends;
  for (const Stretch& stretch : stretches) {
    if (stretch.begin >= stretch.end) continue;
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), stretch.partition)->offset = stretch.begin;
    ends[stretch.partition] = stretch.end;
  }
  if (ends.empty()) return absl::OkStatus();
  if (const auto code = rd_kafka_assign(client, list.get()); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return ErrorStatus(code, absl::StrCat("reading ", topic));
  }
  const absl::Time deadline = SteadyNow() + kPatience;
  absl::Status status;
  while (!ends.empty() && status.ok() && SteadyNow() < deadline) {
    const MessagePtr message(rd_kafka_consumer_poll(client, kPollMs));
    if (message == nullptr) continue;
    const auto end = ends.find(message->partition);
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (end == ends.end()) continue;
      const Wanted wanted = message->offset < end->second ? see(*message) : Wanted::kNoMore;
      if (wanted == Wanted::kNoMore || message->offset + 1 >= end->second) ends.erase(end);
    } else if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      // The last offsets may be control records, which no one sees.
      if (end != ends.end()) ends.erase(end);
    } else if (message->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
      status = ErrorStatus(message->err, absl::StrCat("reading ", topic));
    }
  }
  rd_kafka_assign(client, nullptr);
  return status;
}

absl::Status AskOffsets(rd_kafka_t* client, const std::string& topic, LogSample& sample) {
  for (LogSample::Partition& partition : sample.partitions) {
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        client, topic.c_str(), partition.partition, &partition.start, &partition.end, kRequestTimeoutMs);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return ErrorStatus(code, absl::StrCat("asking for the bounds of ", topic, "-", partition.partition));
    }
  }
  return absl::OkStatus();
}

// How many records have come in the last hour, or since the log began if that is less.
absl::Status AskRate(rd_kafka_t* client, const std::string& topic, LogSample& sample) {
  const absl::Time now = absl::Now();
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(sample.partitions.size())));
  for (const LogSample::Partition& partition : sample.partitions) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition.partition)->offset =
        absl::ToUnixMillis(now - kRateOver);
  }
  const auto code = rd_kafka_offsets_for_times(client, list.get(), kRequestTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return ErrorStatus(code, absl::StrCat("asking for the rate of ", topic));
  for (LogSample::Partition& partition : sample.partitions) {
    const rd_kafka_topic_partition_t* answer =
        rd_kafka_topic_partition_list_find(list.get(), topic.c_str(), partition.partition);
    if (answer == nullptr || answer->err != RD_KAFKA_RESP_ERR_NO_ERROR || answer->offset < 0) continue;
    const bool is_whole_log = answer->offset <= partition.start && partition.first_record <= now;
    const absl::Duration span = is_whole_log ? std::min(now - partition.first_record, kRateOver) : kRateOver;
    if (span < kYoungestLog) continue;
    partition.rate = static_cast<double>(partition.end - answer->offset) / absl::ToDoubleSeconds(span);
  }
  return absl::OkStatus();
}

// Where an id was first seen.
struct Place {
  int32_t partition = 0;
  int64_t offset = 0;
  std::optional<std::string> key;
};

class Looker {
 public:
  Looker(const DaemonOptions& options, LogSample& sample)
      : topic_(options.input), reader_(options.record), sample_(sample) {}

  void See(const rd_kafka_message_t& message) {
    const MessageView view(message);
    const InputRecord record = view.record();
    ++sample_.records;
    const auto bytes = static_cast<int64_t>(message.key_len + message.len);
    sample_.bytes += bytes;
    sample_.largest_bytes = std::max(sample_.largest_bytes, bytes);
    sample_.newest = std::max(sample_.newest, record.time());
    if (!record.key) ++sample_.without_key;
    const RecordFields& fields = reader_.Read(record.view());
    if (fields.id_state != RecordFields::State::kPresent) {
      ++(fields.id_state == RecordFields::State::kMalformed ? sample_.malformed : sample_.without_id);
      return;
    }
    Place place{message.partition, message.offset, std::nullopt};
    if (record.key) place.key.emplace(record.key->data(), record.key->size());
    const auto [first, is_new] = seen_.try_emplace(std::string(fields.id), place);
    if (is_new) return;
    const bool elsewhere = first->second.partition != place.partition;
    if (!elsewhere && first->second.key == place.key) return;
    ++(elsewhere ? sample_.copies_elsewhere : sample_.copies_with_another_key);
    if (sample_.example.empty()) sample_.example = absl::StrCat(Name(first->second), " and ", Name(place));
  }

 private:
  std::string Name(const Place& place) const {
    return absl::StrCat(topic_, "-", place.partition, " offset ", place.offset);
  }

  const std::string& topic_;
  RecordReader reader_;
  LogSample& sample_;
  std::unordered_map<std::string, Place> seen_;
};

}  // namespace

absl::StatusOr<LogSample> SampleLog(const DaemonOptions& options, rd_kafka_t* client, int32_t partitions) {
  LogSample sample;
  for (int32_t i = 0; i < partitions; ++i) sample.partitions.push_back({.partition = i});
  rd_kafka_poll_set_consumer(client);
  if (absl::Status asked = AskOffsets(client, options.input, sample); !asked.ok()) return asked;
  std::vector<Stretch> firsts;
  std::vector<Stretch> newest;
  const int64_t most = std::max<int64_t>(kMostRecords / std::max(partitions, 1), 1);
  for (const LogSample::Partition& partition : sample.partitions) {
    firsts.push_back({partition.partition, partition.start, partition.end});
    newest.push_back({partition.partition, std::max(partition.start, partition.end - most), partition.end});
  }
  absl::Status read = ReadStretches(client, options.input, firsts, [&](const rd_kafka_message_t& message) {
    sample.partitions[static_cast<size_t>(message.partition)].first_record =
        MessageView(message).record().time();
    return Wanted::kNoMore;
  });
  if (!read.ok()) return read;
  Looker looker(options, sample);
  read = ReadStretches(client, options.input, newest, [&](const rd_kafka_message_t& message) {
    looker.See(message);
    return Wanted::kMore;
  });
  if (!read.ok()) return read;
  if (absl::Status asked = AskRate(client, options.input, sample); !asked.ok()) return asked;
  return sample;
}

absl::StatusOr<std::vector<absl::Time>> AskTimes(rd_kafka_t* client, const std::string& topic,
                                                 const std::vector<int64_t>& from) {
  LogSample bounds;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] >= 0) bounds.partitions.push_back({.partition = static_cast<int32_t>(i)});
  }
  rd_kafka_poll_set_consumer(client);
  if (absl::Status asked = AskOffsets(client, topic, bounds); !asked.ok()) return asked;
  std::vector<Stretch> stretches;
  for (const LogSample::Partition& partition : bounds.partitions) {
    const int64_t begin = std::max(partition.start, from[static_cast<size_t>(partition.partition)]);
    stretches.push_back({partition.partition, begin, partition.end});
  }
  std::vector<absl::Time> times(from.size(), absl::InfiniteFuture());
  const absl::Status read = ReadStretches(client, topic, stretches, [&](const rd_kafka_message_t& message) {
    times[static_cast<size_t>(message.partition)] = MessageView(message).record().time();
    return Wanted::kNoMore;
  });
  if (!read.ok()) return read;
  return times;
}

absl::StatusOr<std::vector<absl::Duration>> AskLag(rd_kafka_t* client, const std::string& topic,
                                                   const std::vector<int64_t>& next) {
  const auto times = AskTimes(client, topic, next);
  if (!times.ok()) return times.status();
  std::vector<absl::Duration> lags;
  const absl::Time now = absl::Now();
  // Without a timestamp it may be of any time.
  for (const absl::Time sent : *times) {
    lags.push_back(sent == absl::InfinitePast() ? absl::ZeroDuration() : now - std::min(sent, now));
  }
  return lags;
}

}  // namespace lethe::kafka
