#include "connectors/kafka/topics/topic_reader.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "connectors/kafka/client/message_view.h"
#include "src/pipeline/clock/patiently.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/text/suggestion.h"

namespace lethe::kafka {
namespace {

// Between two attempts a command can be interrupted.
constexpr int kReadTimeoutMs = 2000;
constexpr absl::Duration kConnectPatience = absl::Seconds(10);
constexpr absl::Duration kReadPatience = absl::Seconds(30);
constexpr absl::Duration kReadAgainAfter = absl::Milliseconds(50);
// How long an open transaction is awaited without a log line.
constexpr absl::Duration kSayAfter = absl::Seconds(1);

using Header = std::pair<absl::string_view, std::optional<absl::string_view>>;

// Asks again while the answer is Unavailable. Cancelled: `go_on` returned false.
template <class Ask>
auto AskPatiently(const std::function<bool()>& go_on, const Ask& ask) {
  return Patiently(kConnectPatience, [&] {
    auto answer = ask();
    if (absl::IsUnavailable(answer.status()) && !go_on()) answer = absl::CancelledError("interrupted");
    return answer;
  });
}

// Who leads the partitions, of those that do not answer: "broker 1 at 10.0.0.1:9092".
std::string Leaders(rd_kafka_t* client, const std::string& topic) {
  const auto leaders = LeadersOf(client, topic, kReadTimeoutMs);
  return leaders.ok() ? absl::StrJoin(*leaders, ", ") : std::string(leaders.status().message());
}

absl::StatusOr<std::vector<OffsetRange>> Watermarks(rd_kafka_t* client, ClientErrors& errors,
                                                    const std::string& topic, int32_t partitions,
                                                    const std::function<bool()>& go_on) {
  std::vector<OffsetRange> ranges(static_cast<size_t>(partitions));
  // The embedded broker answers for one partition at a time.
  const int32_t at_once = IsEmbedded(client) ? 1 : std::max(partitions, 1);
  for (int32_t first = 0; first < partitions; first += at_once) {
    std::vector<int32_t> asked(static_cast<size_t>(std::min(at_once, partitions - first)));
    std::iota(asked.begin(), asked.end(), first);
    auto bounds = AskPatiently(go_on, [&] {
      auto answer = AskBounds(client, {{topic, asked}}, kReadTimeoutMs);
      // The leader may be another one by now, and one that hangs is not noticed.
      if (absl::IsUnavailable(answer.status())) {
        CountPartitions(client, topic, kReadTimeoutMs).status().IgnoreError();
      }
      return answer;
    });
    if (absl::IsUnavailable(bounds.status())) {
      const absl::Status failed = absl::UnavailableError(
          absl::StrCat(bounds.status().message(),
                       ": at least one leader of its partitions does not answer: ", Leaders(client, topic)));
      const absl::Status explained = errors.Explain(client, failed);
      if (explained != failed) return explained;
      return absl::UnavailableError(absl::StrCat(
          failed.message(),
          "; check that it runs, and that this host reaches the address (advertised.listeners)"));
    }
    if (!bounds.ok()) return bounds.status();
    for (const auto& [partition, range] : (*bounds)[topic]) ranges[static_cast<size_t>(partition)] = range;
  }
  return ranges;
}

// The first offset of each partition whose record is not older; below 0: all are.
absl::StatusOr<std::vector<int64_t>> OffsetsSince(rd_kafka_t* client, const std::string& topic,
                                                  int32_t partitions, absl::Time since) {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(partitions));
  rd_kafka_topic_partition_list_add_range(list.get(), topic.c_str(), 0, partitions - 1);
  for (int i = 0; i < list->cnt; ++i) {
    // Negative times have other meanings.
    list->elems[i].offset = std::max<int64_t>(absl::ToUnixMillis(since), 0);
  }
  rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(client, list.get(), kReadTimeoutMs);
  std::vector<int64_t> offsets(static_cast<size_t>(partitions));
  for (int i = 0; i < list->cnt; ++i) {
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = list->elems[i].err;
    offsets[static_cast<size_t>(list->elems[i].partition)] = list->elems[i].offset;
  }
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return offsets;
  return ErrorStatus(code, absl::StrCat("asking for the offsets of a time in ", topic));
}

}  // namespace

absl::StatusOr<ClientPtr> TopicReader::MakeConsumer(absl::string_view isolation, ClientErrors& errors) const {
  DaemonOptions client;
  client.process.brokers = options_.brokers;
  client.process.instance = std::string(options_.name);
  // librdkafka wants a group, even of a client that joins none.
  client.process.group = absl::StrCat("lethe-", options_.name, "-", absl::Hex(std::random_device()()));
  client.process.properties = options_.properties;
  ClientConfig config = ReaderConfig(client, std::string(isolation),
                                     FetchOn::Defaults({{"queued.max.messages.kbytes", "65536"}}));
  errors.Watch(config);
  return config.MakeConsumer();
}

absl::StatusOr<std::unique_ptr<TopicReader>> TopicReader::Open(ReadOptions options,
                                                               const std::function<bool()>& go_on) {
  std::unique_ptr<TopicReader> reader(new TopicReader(std::move(options)));
  absl::StatusOr<ClientPtr> consumer = reader->MakeConsumer(
      reader->options_.sees_aborted ? "read_uncommitted" : "read_committed", reader->errors_);
  if (!consumer.ok()) return consumer.status();
  reader->consumer_ = *std::move(consumer);
  absl::Status found = reader->FindEnds(go_on);
  if (found.ok()) found = reader->FindBegins(go_on);
  if (!found.ok()) return found;
  return reader;
}

absl::Status TopicReader::FindSettledBounds(const std::function<bool()>& go_on) {
  absl::Status found = FindEnds(go_on);
  if (found.ok()) found = AwaitTransactions(go_on);
  return found.ok() ? FindBegins(go_on) : found;
}

absl::Status TopicReader::FindBegins(const std::function<bool()>& go_on) {
  in_topic_ = 0;
  to_read_ = 0;
  for (const OffsetRange& bounds : bounds_) in_topic_ += bounds.end - bounds.begin;
  if (options_.newest && *options_.newest < in_topic_) {
    const double share = static_cast<double>(*options_.newest) / static_cast<double>(in_topic_);
    for (OffsetRange& bounds : bounds_) {
      const auto size = static_cast<double>(bounds.end - bounds.begin);
      bounds.begin = bounds.end - std::llround(size * share);
    }
  }
  if (options_.since) {
    if (absl::Status status = FindSince(go_on); !status.ok()) return status;
  }
  for (const OffsetRange& bounds : bounds_) to_read_ += bounds.end - bounds.begin;
  return absl::OkStatus();
}

absl::Status TopicReader::FindEnds(const std::function<bool()>& go_on) {
  const absl::StatusOr<int32_t> partitions =
      AskPatiently(go_on, [&] { return CountPartitions(consumer_.get(), options_.topic, kReadTimeoutMs); });
  if (absl::IsNotFound(partitions.status())) {
    std::vector<std::string> others;
    if (const auto topics = ListTopics(consumer_.get()); topics.ok()) {
      for (const auto& [name, count] : *topics) others.push_back(name);
    }
    const std::optional<std::string> nearest = Nearest(options_.topic, others);
    return absl::NotFoundError(absl::StrCat("topic ", options_.topic, " does not exist at ", options_.brokers,
                                            nearest ? absl::StrCat("; did you mean ", *nearest, "?") : "",
                                            "; kafka-topics.sh --bootstrap-server ", options_.brokers,
                                            " --list names those that do"));
  }
  if (absl::IsUnavailable(partitions.status())) {
    const absl::Status failed = absl::UnavailableError(
        absl::StrCat("no broker answers at ", options_.brokers, " (", partitions.status().message(), ")"));
    const absl::Status explained = errors_.Explain(consumer_.get(), failed);
    if (explained != failed) return explained;
    return absl::UnavailableError(
        absl::StrCat(failed.message(),
                     ": check the address, and what it takes to connect (--kafka security.protocol=...)"));
  }
  if (!partitions.ok()) return partitions.status();
  auto bounds = Watermarks(consumer_.get(), errors_, options_.topic, *partitions, go_on);
  if (!bounds.ok()) return bounds.status();
  bounds_ = *std::move(bounds);
  SetLogBegins(bounds_);
  return absl::OkStatus();
}

absl::Status TopicReader::FindLogBegins(const std::function<bool()>& go_on) {
  const auto bounds = Watermarks(consumer_.get(), errors_, options_.topic, partitions(), go_on);
  if (bounds.ok()) SetLogBegins(*bounds);
  return bounds.status();
}

void TopicReader::SetLogBegins(const std::vector<OffsetRange>& bounds) {
  log_begins_.clear();
  for (const OffsetRange& each : bounds) log_begins_.push_back(each.begin);
}

// A read_committed client gets the last stable offset, a read_uncommitted one the end of the log.
absl::Status TopicReader::AwaitTransactions(const std::function<bool()>& go_on) {
  ClientErrors errors;
  const absl::StatusOr<ClientPtr> sees_all = MakeConsumer("read_uncommitted", errors);
  if (!sees_all.ok()) return sees_all.status();
  const auto whole = Watermarks(sees_all->get(), errors, options_.topic, partitions(), go_on);
  if (!whole.ok()) return whole.status();
  const absl::Time begin = SteadyNow();
  bool said = false;
  for (int32_t partition = 0; partition < partitions(); ++partition) {
    const OffsetRange& all = (*whole)[static_cast<size_t>(partition)];
    OffsetRange& bounds = bounds_[static_cast<size_t>(partition)];
    while (bounds.end < all.end) {
      const absl::StatusOr<OffsetRange> now = AskPatiently(
          go_on, [&] { return BoundsOf(consumer_.get(), options_.topic, partition, kReadTimeoutMs); });
      if (!now.ok()) return now.status();
      const absl::Duration waited = SteadyNow() - begin;
      const std::string why =
          absl::StrCat(options_.topic, "-", partition, ": a transaction is open since offset ", now->end,
                       ", and records behind it cannot be read yet");
      if (now->end == bounds.end && waited > kReadPatience) {
        return absl::UnavailableError(
            absl::StrCat(why, ": wait until it ends, or abort it (kafka-transactions.sh --bootstrap-server ",
                         options_.brokers, " abort --topic ", options_.topic, " --partition ", partition,
                         " --start-offset ", now->end, "), and run it again"));
      }
      if (waited > kSayAfter && !std::exchange(said, true)) {
        spdlog::warn("{}; waiting for its end, up to {}", why, absl::FormatDuration(kReadPatience));
      }
      if (!go_on()) return absl::CancelledError("interrupted");
      bounds.end = std::min(now->end, all.end);
      if (bounds.end < all.end) absl::SleepFor(kReadAgainAfter);
    }
  }
  return absl::OkStatus();
}

absl::Status TopicReader::FindSince(const std::function<bool()>& go_on) {
  const auto offsets = AskPatiently(
      go_on, [&] { return OffsetsSince(consumer_.get(), options_.topic, partitions(), *options_.since); });
  if (!offsets.ok()) return offsets.status();
  for (size_t i = 0; i < bounds_.size(); ++i) {
    OffsetRange& bounds = bounds_[i];
    const int64_t offset = (*offsets)[i];
    bounds.begin = offset < 0 ? bounds.end : std::clamp(offset, bounds.begin, bounds.end);
  }
  return absl::OkStatus();
}

absl::Status TopicReader::Read(const std::vector<OffsetRange>& ranges,
                               const std::function<void(const SurveyRecord&)>& take,
                               const std::function<bool(int64_t done)>& go_on) {
  LogReading reading{.patience = kReadPatience, .follow = options_.follow, .go_on = go_on};
  for (size_t i = 0; i < ranges.size(); ++i) reading.ranges[static_cast<int32_t>(i)] = ranges[i];
  std::vector<Header> headers;
  reading.see = [&](const rd_kafka_message_t& message) {
    const MessageView view(message);
    headers.clear();
    view.ForEachHeader([&](absl::string_view name, std::optional<absl::string_view> value) {
      headers.emplace_back(name, value);
    });
    const InputRecord record = view.record();
    take({record.view(), headers, record.partition, record.offset, record.timestamp_ms});
    return true;
  };
  const absl::Status read = ReadLog(consumer_.get(), options_.topic, std::move(reading));
  return absl::IsCancelled(read) ? absl::OkStatus() : read;
}

}  // namespace lethe::kafka
