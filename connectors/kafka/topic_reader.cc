#include "connectors/kafka/topic_reader.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "connectors/kafka/message_view.h"
#include "connectors/kafka/steady_time.h"
#include "connectors/kafka/topics.h"
#include "src/text/suggestion.h"

namespace lethe::kafka {
namespace {

constexpr int kRequestTimeoutMs = 5000;
constexpr int kPollMs = 100;
constexpr absl::Duration kConnectPatience = absl::Seconds(10);
constexpr absl::Duration kReadPatience = absl::Seconds(30);
constexpr int kRecordsBetweenChecks = 1024;

using Header = std::pair<absl::string_view, std::optional<absl::string_view>>;

void ListHeaders(const rd_kafka_headers_t* from, std::vector<Header>& headers) {
  headers.clear();
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  for (size_t i = 0; from != nullptr &&
                     rd_kafka_header_get_all(from, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    const absl::string_view bytes(static_cast<const char*>(value), size);
    headers.emplace_back(name, value == nullptr ? std::optional<absl::string_view>() : bytes);
  }
}

// Asks until a broker answers, for a while.
absl::StatusOr<int32_t> AwaitPartitionCount(rd_kafka_t* client, const std::string& name) {
  const absl::Time deadline = SteadyNow() + kConnectPatience;
  for (;;) {
    absl::StatusOr<int32_t> count = CountPartitions(client, name, kRequestTimeoutMs);
    if (!absl::IsUnavailable(count.status()) || SteadyNow() > deadline) return count;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TopicReader>> TopicReader::Open(ReadOptions options) {
  DaemonOptions client;
  client.brokers = options.brokers;
  client.instance = "survey";
  client.properties = options.properties;
  ClientConfig config = BaseConfig(client, FetchOn::Defaults({{"queued.max.messages.kbytes", "65536"}}));
  // librdkafka wants a group, even of one who joins none.
  config.Set("group.id", absl::StrCat("lethe-survey-", absl::Hex(std::random_device()())));
  config.Set("enable.auto.commit", "false").Set("enable.auto.offset.store", "false");
  config.Set("isolation.level", "read_committed").Set("enable.partition.eof", "true");
  config.Set("auto.offset.reset", "earliest").Set("allow.auto.create.topics", "false");
  absl::StatusOr<ClientPtr> consumer = config.MakeConsumer();
  if (!consumer.ok()) return consumer.status();
  rd_kafka_poll_set_consumer(consumer->get());
  std::unique_ptr<TopicReader> reader(new TopicReader(std::move(options), *std::move(consumer)));
  if (absl::Status status = reader->FindBounds(); !status.ok()) return status;
  return reader;
}

absl::Status TopicReader::FindBounds() {
  const absl::StatusOr<int32_t> partitions = AwaitPartitionCount(consumer_.get(), options_.topic);
  if (absl::IsNotFound(partitions.status())) {
    const std::optional<std::string> nearest = Nearest(options_.topic, TopicNames(consumer_.get()));
    return absl::NotFoundError(absl::StrCat("topic ", options_.topic, " does not exist at ", options_.brokers,
                                            nearest ? absl::StrCat("; did you mean ", *nearest, "?") : "",
                                            "; kafka-topics.sh --bootstrap-server ", options_.brokers,
                                            " --list names those that do"));
  }
  if (absl::IsUnavailable(partitions.status())) {
    return absl::UnavailableError(
        absl::StrCat("no broker answers at ", options_.brokers, " (", partitions.status().message(),
                     "): check the address, and what it takes to connect (--kafka security.protocol=...)"));
  }
  if (!partitions.ok()) return partitions.status();
  ranges_.resize(static_cast<size_t>(*partitions));
  for (int32_t partition = 0; partition < *partitions; ++partition) {
    Range& range = ranges_[static_cast<size_t>(partition)];
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        consumer_.get(), options_.topic.c_str(), partition, &range.begin, &range.end, kRequestTimeoutMs);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return ErrorStatus(code, absl::StrCat("asking for the bounds of ", options_.topic, "-", partition));
    }
    in_topic_ += range.end - range.begin;
  }
  if (options_.newest && *options_.newest < in_topic_) {
    const double share = static_cast<double>(*options_.newest) / static_cast<double>(in_topic_);
    for (Range& range : ranges_) {
      const auto size = static_cast<double>(range.end - range.begin);
      range.begin = range.end - std::llround(size * share);
    }
  }
  if (options_.last) {
    if (absl::Status status = FindLast(); !status.ok()) return status;
  }
  for (const Range& range : ranges_) to_read_ += range.end - range.begin;
  return absl::OkStatus();
}

absl::Status TopicReader::FindLast() {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(partitions()));
  rd_kafka_topic_partition_list_add_range(list.get(), options_.topic.c_str(), 0, partitions() - 1);
  for (int i = 0; i < list->cnt; ++i)
    list->elems[i].offset = absl::ToUnixMillis(absl::Now() - *options_.last);
  const rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(consumer_.get(), list.get(), kRequestTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return ErrorStatus(code, absl::StrCat("asking for the offsets of a time in ", options_.topic));
  }
  for (int i = 0; i < list->cnt; ++i) {
    Range& range = ranges_[static_cast<size_t>(list->elems[i].partition)];
    // Below 0: all records are older.
    const int64_t offset = list->elems[i].offset;
    range.begin = offset < 0 ? range.end : std::clamp(offset, range.begin, range.end);
  }
  return absl::OkStatus();
}

absl::Status TopicReader::Assign() {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(partitions()));
  left_ = 0;
  for (int32_t partition = 0; partition < partitions(); ++partition) {
    const Range& range = ranges_[static_cast<size_t>(partition)];
    if (range.begin >= range.end) continue;
    rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(), partition)->offset = range.begin;
    left_ += range.end - range.begin;
  }
  const rd_kafka_resp_err_t code = rd_kafka_assign(consumer_.get(), list.get());
  return ErrorStatus(code, absl::StrCat("reading ", options_.topic));
}

void TopicReader::Advance(int32_t partition, int64_t to) {
  Range& range = ranges_[static_cast<size_t>(partition)];
  to = std::min(to, range.end);
  if (to <= range.begin) return;
  left_ -= to - range.begin;
  range.begin = to;
}

absl::Status TopicReader::TakeError(const rd_kafka_message_t& message) {
  if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    Advance(message.partition, message.offset);
    return absl::OkStatus();
  }
  // Nothing is asked of a group, so it is all the same whether we may be in it.
  if (IsTransient(message.err) || message.err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) {
    return absl::OkStatus();
  }
  return ErrorStatus(message.err, absl::StrCat("reading ", options_.topic));
}

absl::Status TopicReader::Read(const std::function<void(const SurveyRecord&)>& take,
                               const std::function<bool(int64_t done)>& go_on) {
  if (absl::Status status = Assign(); !status.ok()) return status;
  std::vector<Header> headers;
  absl::Time silent_since = absl::InfiniteFuture();
  FetchOn fetch_on(consumer_.get());
  for (int unchecked = 0; left_ > 0;) {
    const MessagePtr message(rd_kafka_consumer_poll(consumer_.get(), kPollMs));
    if (message != nullptr) silent_since = absl::InfiniteFuture();
    if (message == nullptr || ++unchecked >= kRecordsBetweenChecks) {
      unchecked = 0;
      fetch_on.Polled(SteadyNow(), message != nullptr);
      if (!go_on(to_read_ - left_)) return absl::OkStatus();
    }
    if (message == nullptr) {
      silent_since = std::min(silent_since, SteadyNow());
      if (SteadyNow() - silent_since < kReadPatience) continue;
      return absl::UnavailableError(absl::StrFormat("nothing came from %s for %s, with %d of %d records read",
                                                    options_.brokers, absl::FormatDuration(kReadPatience),
                                                    to_read_ - left_, to_read_));
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (absl::Status status = TakeError(*message); !status.ok()) return status;
      continue;
    }
    const Range& range = ranges_[static_cast<size_t>(message->partition)];
    if (message->offset >= range.end) {  // it came while the others were read
      Advance(message->partition, range.end);
      continue;
    }
    const MessageView view(*message);
    ListHeaders(view.headers(), headers);
    take({view.record(), headers, message->partition, message->offset, view.timestamp_ms()});
    Advance(message->partition, message->offset + 1);
  }
  return absl::OkStatus();
}

}  // namespace lethe::kafka
