#include "connectors/kafka/client/log_reader.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr int kReadPollMs = 100;
constexpr absl::Duration kAskEvery = absl::Milliseconds(50);
// As times, in the protocol's request ListOffsets.
constexpr int64_t kLatest = -1;
constexpr int64_t kEarliest = -2;
// The client looks for the answer of each partition in the list of all that were asked for.
constexpr size_t kPartitionsAtOnce = 256;

PartitionListPtr PlacesIn(const PartitionsByTopic& partitions, int64_t at) {
  PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const auto& [topic, of_topic] : partitions) {
    for (const int32_t partition : of_topic) {
      rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = at;
    }
  }
  return list;
}

absl::Status AskSomeOffsets(rd_kafka_t* client, const PartitionsByTopic& partitions, int64_t at,
                            absl::Duration timeout, EndsByTopic& offsets) {
  const PartitionListPtr list = PlacesIn(partitions, at);
  if (list->cnt == 0) return absl::OkStatus();
  const rd_kafka_resp_err_t code =
      rd_kafka_offsets_for_times(client, list.get(), static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    const absl::string_view what = at == kLatest ? "the end" : "the offset of a time";
    return ErrorStatus(code, partitions.size() == 1
                                 ? absl::StrCat("asking for ", what, " of ", partitions.begin()->first)
                                 : absl::StrCat("asking for ", what, " of ", partitions.size(), " topics"));
  }
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& answer = list->elems[i];
    if (answer.err == RD_KAFKA_RESP_ERR_NO_ERROR && answer.offset >= 0)
      offsets[answer.topic][answer.partition] = answer.offset;
  }
  return absl::OkStatus();
}

}  // namespace

ClientConfig ReaderConfig(const DaemonOptions& options, const std::string& isolation,
                          const std::vector<Property>& defaults) {
  ClientConfig config = BaseConfig(options, defaults);
  config.Set("group.id", options.process.group)
      .Set("isolation.level", isolation)
      .Set("enable.auto.commit", "false")
      .Set("enable.auto.offset.store", "false")
      .Set("enable.partition.eof", "true")
      .Set("auto.offset.reset", "earliest")
      // Of producers; in a consumer it is the least that fetch.max.bytes may be.
      .Set("message.max.bytes", "1000");
  return config;
}

absl::StatusOr<OffsetRange> BoundsOf(rd_kafka_t* client, const std::string& topic, int32_t partition,
                                     int timeout_ms) {
  auto bounds = AskBounds(client, {{topic, {partition}}}, timeout_ms);
  if (!bounds.ok()) return bounds.status();
  return (*bounds)[topic][partition];
}

absl::StatusOr<BoundsByTopic> AskBounds(rd_kafka_t* client, const PartitionsByTopic& partitions,
                                        int timeout_ms) {
  if (partitions.empty()) return BoundsByTopic();
  const absl::Time deadline = SteadyNow() + absl::Milliseconds(timeout_ms);
  const auto& [first, of_first] = *partitions.begin();
  const std::string doing =
      partitions.size() > 1
          ? absl::StrCat("asking for the bounds of the logs of ", partitions.size(), " topics")
      : of_first.size() == 1 ? absl::StrCat("asking for the bounds of ", first, "-", of_first[0])
                             : absl::StrCat("asking for the bounds of ", first);
  BoundsByTopic bounds;
  for (const int64_t at : {kEarliest, kLatest}) {
    const PartitionListPtr list = PlacesIn(partitions, at);
    if (list->cnt == 0) return bounds;
    // rd_kafka_query_watermark_offsets() waits for an answer however long it takes (before 2.3).
    const absl::Duration left = std::max(deadline - SteadyNow(), absl::Milliseconds(1));
    rd_kafka_resp_err_t code =
        rd_kafka_offsets_for_times(client, list.get(), static_cast<int>(absl::ToInt64Milliseconds(left)));
    // Where no partition has a leader, the client takes all of them for unknown.
    for (int i = 0; code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && i < list->cnt; ++i) {
      if (list->elems[i].err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE) code = list->elems[i].err;
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(code, doing);
    for (int i = 0; i < list->cnt; ++i) {
      const rd_kafka_topic_partition_t& answer = list->elems[i];
      if (answer.err != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(answer.err, doing);
      OffsetRange& range = bounds[answer.topic][answer.partition];
      (at == kEarliest ? range.begin : range.end) = answer.offset;
    }
  }
  return bounds;
}

absl::Status ReadLog(rd_kafka_t* consumer, const std::string& topic, LogReading reading) {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(reading.ranges.size())));
  int64_t offsets = 0;
  for (auto& [partition, range] : reading.ranges) {
    range.end = std::max(range.begin, range.end);
    if (range.begin == range.end && !reading.follow) continue;
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = range.begin;
    offsets += range.end - range.begin;
  }
  if (list->cnt == 0) return absl::OkStatus();
  const std::string doing = absl::StrCat("reading ", topic);
  rd_kafka_poll_set_consumer(consumer);
  const absl::Cleanup fetch_no_more = [&] { rd_kafka_assign(consumer, nullptr); };
  if (absl::Status assigned = ErrorStatus(rd_kafka_assign(consumer, list.get()), doing); !assigned.ok()) {
    return assigned;
  }
  FetchOn fetch_on(consumer);
  absl::Time deadline = SteadyNow() + reading.patience;
  absl::Time next_ask = absl::InfinitePast();
  for (int64_t left = offsets; left > 0 || reading.follow;) {
    const MessagePtr message = fetch_on.Poll(kReadPollMs);
    const absl::Time now = SteadyNow();
    if (message == nullptr || now >= next_ask) {
      next_ask = now + kAskEvery;
      if (!reading.go_on(offsets - left)) return absl::CancelledError(absl::StrCat(doing, " was cancelled"));
    }
    const bool is_end = message != nullptr && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (message == nullptr || (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && !is_end)) {
      // Nothing is asked of a group, so it does not matter whether this user may be in it.
      if (message != nullptr && !IsTransient(message->err) &&
          message->err != RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) {
        return ErrorStatus(message->err, doing);
      }
      if (now < deadline || left == 0) continue;
      return absl::UnavailableError(
          absl::StrCat(doing, " makes no progress after ", offsets - left, " of ", offsets,
                       " offsets: a transaction in it is open, or no broker answers"));
    }
    deadline = now + reading.patience;
    const auto found = reading.ranges.find(message->partition);
    if (found == reading.ranges.end()) continue;
    OffsetRange& range = found->second;
    if (range.begin == range.end && !reading.follow) continue;
    const bool is_wanted = message->offset < range.end || reading.follow;
    // The last offsets may be control records: the end of the partition alone shows them.
    const bool has_more = is_wanted && (is_end || reading.see(*message));
    const int64_t next = has_more ? message->offset + (is_end ? 0 : 1) : range.end;
    const int64_t done = std::clamp(next, range.begin, range.end) - range.begin;
    range.begin += done;
    left -= done;
  }
  return absl::OkStatus();
}

absl::StatusOr<EndsByTopic> AskOffsets(rd_kafka_t* client, const PartitionsByTopic& partitions, absl::Time at,
                                       absl::Duration timeout) {
  EndsByTopic offsets;
  const int64_t time = at == absl::InfiniteFuture() ? kLatest : absl::ToUnixMillis(at);
  for (auto next = partitions.begin(); next != partitions.end();) {
    PartitionsByTopic some;
    for (size_t count = 0; next != partitions.end() && count < kPartitionsAtOnce; ++next) {
      some.insert(*next);
      count += next->second.size();
    }
    if (absl::Status asked = AskSomeOffsets(client, some, time, timeout, offsets); !asked.ok()) return asked;
  }
  return offsets;
}

}  // namespace lethe::kafka
