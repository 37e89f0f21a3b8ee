#include "connectors/kafka/preflight/log_sample.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/client/message_view.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr int kSampleTimeoutMs = 3000;
constexpr int kSamplePollMs = 100;
constexpr absl::Duration kSamplePatience = absl::Seconds(10);
constexpr int64_t kMostRecords = 20000;

// Reads the ranges all at once, until they are done or the time is over.
absl::Status ReadRanges(rd_kafka_t* client, const std::string& topic, std::map<int32_t, OffsetRange> ranges,
                        std::function<bool(const rd_kafka_message_t&)> see) {
  const absl::Time deadline = SteadyNow() + kSamplePatience;
  const absl::Status read = ReadLog(client, topic,
                                    {.ranges = std::move(ranges),
                                     .patience = kSamplePatience,
                                     .see = std::move(see),
                                     .go_on = [&](int64_t) { return SteadyNow() < deadline; }});
  return absl::IsCancelled(read) || absl::IsUnavailable(read) ? absl::OkStatus() : read;
}

// Reads the first record at or behind places, of all of them at once.
class FirstRecords {
 public:
  using Wanted = std::map<std::pair<std::string, int32_t>, size_t>;  // to the index of the place

  FirstRecords(rd_kafka_t* client, const std::vector<LogPlace>& places) : client_(client), places_(places) {}

  // Sets the times of those that come by the deadline.
  absl::Status Read(Wanted wanted, absl::Time deadline, std::vector<absl::Time>& times) const {
    const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(wanted.size())));
    for (const auto& [partition, i] : wanted) {
      rd_kafka_topic_partition_list_add(list.get(), partition.first.c_str(), partition.second)->offset =
          places_[i].offset;
    }
    rd_kafka_poll_set_consumer(client_);
    const absl::Cleanup fetch_no_more = [&] {
      rd_kafka_resume_partitions(client_, list.get());  // else they stay paused in the next assignment
      rd_kafka_assign(client_, nullptr);
    };
    if (const auto code = rd_kafka_assign(client_, list.get()); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return ErrorStatus(code, "reading first records");
    }
    while (!wanted.empty() && SteadyNow() < deadline) {
      const MessagePtr message(rd_kafka_consumer_poll(client_, kSamplePollMs));
      if (message == nullptr) continue;
      const bool is_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
      if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && !is_end) {
        // Nothing is asked of a group, so it does not matter whether this user may be in it.
        if (IsTransient(message->err) || message->err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
          continue;
        return ErrorStatus(message->err, "reading first records");
      }
      const auto found = wanted.find({rd_kafka_topic_name(message->rkt), message->partition});
      if (found == wanted.end()) continue;
      times[found->second] = is_end ? absl::InfiniteFuture() : MessageView(*message).record().time();
      // One with many records must not keep others waiting.
      const PartitionListPtr done(rd_kafka_topic_partition_list_new(1));
      rd_kafka_topic_partition_list_add(done.get(), found->first.first.c_str(), found->first.second);
      rd_kafka_pause_partitions(client_, done.get());
      wanted.erase(found);
    }
    return absl::OkStatus();
  }

 private:
  rd_kafka_t* const client_;
  const std::vector<LogPlace>& places_;
};

// How many records have come in the last hour, or since the log began if that is less.
absl::Status AskRate(rd_kafka_t* client, const std::string& topic, LogSample& sample) {
  const absl::Time now = absl::Now();
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(sample.partitions.size())));
  for (const LogSample::Partition& partition : sample.partitions) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition.partition)->offset =
        absl::ToUnixMillis(now - LogSample::kRateOver);
  }
  const auto code = rd_kafka_offsets_for_times(client, list.get(), kSampleTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return ErrorStatus(code, absl::StrCat("asking for the rate of ", topic));
  for (LogSample::Partition& partition : sample.partitions) {
    const rd_kafka_topic_partition_t* answer =
        rd_kafka_topic_partition_list_find(list.get(), topic.c_str(), partition.partition);
    if (answer == nullptr || answer->err != RD_KAFKA_RESP_ERR_NO_ERROR || answer->offset < 0) continue;
    partition.SetRate(answer->offset, now);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LogSample> SampleLog(const DaemonOptions& options, rd_kafka_t* client, int32_t partitions) {
  LogSample sample;
  for (int32_t i = 0; i < partitions; ++i) {
    const auto bounds = BoundsOf(client, options.input, i, kSampleTimeoutMs);
    if (!bounds.ok()) return bounds.status();
    sample.partitions.push_back({.partition = i, .start = bounds->begin, .end = bounds->end});
  }
  std::map<int32_t, OffsetRange> firsts;
  std::map<int32_t, OffsetRange> newest;
  const int64_t most = std::max<int64_t>(kMostRecords / std::max(partitions, 1), 1);
  for (const LogSample::Partition& partition : sample.partitions) {
    firsts[partition.partition] = {partition.start, partition.end};
    newest[partition.partition] = {std::max(partition.start, partition.end - most), partition.end};
  }
  absl::Status read = ReadRanges(client, options.input, firsts, [&](const rd_kafka_message_t& message) {
    sample.partitions[static_cast<size_t>(message.partition)].first_record =
        MessageView(message).record().time();
    return false;
  });
  if (!read.ok()) return read;
  LogSampler sampler(options, sample);
  read = ReadRanges(client, options.input, newest, [&](const rd_kafka_message_t& message) {
    sampler.Add(MessageView(message).record());
    return true;
  });
  if (!read.ok()) return read;
  if (absl::Status asked = AskRate(client, options.input, sample); !asked.ok()) return asked;
  return sample;
}

absl::StatusOr<std::vector<absl::Time>> AskTimes(rd_kafka_t* client, const std::vector<LogPlace>& places) {
  std::map<std::string, std::vector<int32_t>> partitions;
  for (const LogPlace& place : places) {
    std::vector<int32_t>& of_topic = partitions[place.topic];
    if (std::find(of_topic.begin(), of_topic.end(), place.partition) == of_topic.end()) {
      of_topic.push_back(place.partition);
    }
  }
  auto bounds = AskBounds(client, partitions, kSampleTimeoutMs);
  if (!bounds.ok()) return bounds.status();
  std::vector<absl::Time> times(places.size(), absl::InfiniteFuture());
  std::vector<size_t> left;
  for (size_t i = 0; i < places.size(); ++i) {
    const OffsetRange& log = (*bounds)[places[i].topic][places[i].partition];
    if (std::max(places[i].offset, log.begin) < log.end) left.push_back(i);
  }
  const absl::Time deadline = SteadyNow() + kSamplePatience;
  while (!left.empty()) {
    // A consumer reads a partition from one place at a time.
    FirstRecords::Wanted wanted;
    std::erase_if(left, [&](size_t i) {
      return wanted.try_emplace({places[i].topic, places[i].partition}, i).second;
    });
    for (const auto& [partition, i] : wanted) times[i] = absl::InfinitePast();
    if (absl::Status read = FirstRecords(client, places).Read(std::move(wanted), deadline, times);
        !read.ok()) {
      return read;
    }
  }
  return times;
}

absl::StatusOr<std::vector<absl::Duration>> AskLag(rd_kafka_t* client, const std::string& topic,
                                                   const std::vector<int64_t>& next) {
  std::vector<LogPlace> places;
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i] >= 0) places.push_back({topic, static_cast<int32_t>(i), next[i]});
  }
  const auto times = AskTimes(client, places);
  if (!times.ok()) return times.status();
  std::vector<absl::Duration> lags(next.size(), absl::ZeroDuration());
  const absl::Time now = absl::Now();
  for (size_t i = 0; i < places.size(); ++i) {
    // Without a timestamp it may be of any time.
    const absl::Time sent = (*times)[i];
    if (sent == absl::InfinitePast()) continue;
    lags[static_cast<size_t>(places[i].partition)] = now - std::min(sent, now);
  }
  return lags;
}

}  // namespace lethe::kafka
