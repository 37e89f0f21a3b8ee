#include "connectors/kafka/repartition.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "connectors/kafka/message_view.h"
#include "connectors/kafka/topics.h"
#include "lethe/event.h"

namespace lethe::kafka {
namespace {

constexpr char kPartitionHeader[] = "lethe.routed.partition";
constexpr char kOffsetHeader[] = "lethe.routed.offset";
// What the two headers add to a record, generously: what the input took must fit.
constexpr int64_t kHeaderBytes = 256;
// Records that are no longer needed go soon, and not only when a gigabyte of them has come together.
constexpr int64_t kSegmentBytes = 52428800;
constexpr int kCreateTimeoutMs = 5000;
constexpr int kTrimTimeoutMs = 2000;

using QueuePtr = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
using EventPtr = std::unique_ptr<rd_kafka_event_t, Destroyer<rd_kafka_event_destroy>>;
using AdminOptionsPtr = std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;
using DeleteRecordsPtr = std::unique_ptr<rd_kafka_DeleteRecords_t, Destroyer<rd_kafka_DeleteRecords_destroy>>;

// The client is of the group that copies.
absl::Status EnsureOnce(const DaemonOptions& options, rd_kafka_t* client) {
  const std::string name = RepartitionTopic(options);
  const absl::Status exists = CountPartitions(client, name, kCreateTimeoutMs).status();
  if (!absl::IsNotFound(exists)) return WithGrant("repartition", name, exists);
  const auto input = DescribeInput(options, client);
  if (!input.ok()) return input.status();
  const auto committed = GroupState(client, options.input).Committed(input->partitions);
  if (absl::IsPermissionDenied(committed.status())) {
    const std::string group = RoutingOptions(options).group;
    return absl::PermissionDeniedError(absl::StrCat("group ", group, ": ", committed.status().message(),
                                                    ": grant this user Read on group ", group));
  }
  if (!committed.ok()) return committed.status();
  // Another instance may have made it a moment ago: who waits for topics asks again.
  if (const auto lost = LostWithTopic(options, *committed)) return absl::NotFoundError(lost->Text());
  if (absl::Status created =
          CreateTopic(client, name, {input->partitions, input->replicas}, RepartitionConfig(*input));
      !created.ok())
    return WithGrant("repartition", name, created);
  spdlog::info("topic {} was made, with {} partitions", name, input->partitions);
  return absl::OkStatus();
}

std::optional<int64_t> NumberAt(const rd_kafka_headers_t* headers, size_t index, absl::string_view wanted) {
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  if (rd_kafka_header_get_all(headers, index, &name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      name != wanted || value == nullptr) {
    return std::nullopt;
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(absl::string_view(static_cast<const char*>(value), size), &number) || number < 0) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

DaemonOptions RoutingOptions(const DaemonOptions& options) {
  DaemonOptions routing = options;
  routing.group = absl::StrCat(options.group, "-repartition");
  routing.output = RepartitionTopic(options);
  routing.routes = true;
  routing.routed_to = {options.output, options.divert};
  routing.counters.clear();
  routing.policies = RoutingPolicies(options.policies);
  if (!routing.policies.diverts()) routing.divert.clear();
  // Nothing is judged, so nothing is to be remembered: a restart reads a second of the log again.
  routing.stage = {.horizon = absl::Seconds(1), .engine = Engine::kExact, .audit_share = 0};
  return routing;
}

Policies RoutingPolicies(const Policies& policies) {
  return {.on_undeliverable = policies.on_undeliverable, .on_unreadable = policies.on_unreadable};
}

DaemonOptions JudgingOptions(const DaemonOptions& options) {
  DaemonOptions judging = options;
  judging.input = RepartitionTopic(options);
  judging.routed_from = options.input;
  judging.start = Start::kEarliest;  // where the input is begun was the first stage's to say
  return judging;
}

std::vector<std::string> WrittenTopics(const DaemonOptions& options) {
  std::vector<std::string> topics = {options.output};
  for (const CounterOptions& counter : options.counters) topics.push_back(counter.output);
  if (!options.divert.empty()) topics.push_back(options.divert);
  return topics;
}

std::vector<std::string> TopicsOfSamePartition(const DaemonOptions& options) {
  std::vector<std::string> topics = options.routed_to;
  for (const CounterOptions& counter : options.counters) {
    if (!options.routes && counter.mode == CounterMode::kTotal) topics.push_back(counter.output);
  }
  if (!options.routes && options.routed_from.empty()) {
    topics.push_back(options.output);
    topics.push_back(options.divert);
  }
  std::erase(topics, "");
  return topics;
}

std::map<std::string, std::string> RepartitionConfig(const TopicFacts& input) {
  const int64_t max_bytes = std::min<int64_t>(input.max_message_bytes() + kHeaderBytes, INT32_MAX);
  std::map<std::string, std::string> config = {
      {"cleanup.policy", "delete"},
      {"retention.ms", "-1"},
      {"retention.bytes", "-1"},
      {"segment.bytes", absl::StrCat(std::max(kSegmentBytes, max_bytes))},
      {"message.timestamp.type", "CreateTime"},
      {"max.message.bytes", absl::StrCat(max_bytes)}};
  // Which of them there are depends on the brokers' version.
  for (const char* bound : {TopicFacts::kBefore, TopicFacts::kAfter, TopicFacts::kDifference}) {
    if (input.config.contains(bound)) config[bound] = absl::StrCat(INT64_MAX);
  }
  // What was routed is committed in the input's group: it must be as safe as the input is.
  constexpr char kMinInSync[] = "min.insync.replicas";
  if (const auto least = input.config.find(kMinInSync); least != input.config.end()) {
    config[kMinInSync] = least->second;
  }
  return config;
}

std::optional<Finding> LostWithTopic(const DaemonOptions& options,
                                     const std::vector<CommittedOffset>& committed) {
  const bool has_copied = std::any_of(committed.begin(), committed.end(), [](const CommittedOffset& each) {
    const auto story = CommitMetadata::Parse(each.metadata);
    // Of a story that cannot be read it is not known.
    return story.ok() ? story->origin < each.offset : !absl::IsNotFound(story.status());
  });
  if (!has_copied) return std::nullopt;
  const std::string group = RoutingOptions(options).group;
  return Finding{
      Finding::Severity::kError, "create", absl::StrCat("repartition topic ", RepartitionTopic(options)),
      absl::StrCat("is gone, and group ", group, " has routed records of ", options.input,
                   " to it: what of them was not judged yet would be left out, and copies of what was would "
                   "pass"),
      absl::StrCat("stop every instance, then have them routed again: kafka-consumer-groups.sh "
                   "--bootstrap-server ",
                   options.brokers, " --group ", group, " --topic ", options.input,
                   " --reset-offsets --to-earliest --execute, or --to-datetime with a time before the first "
                   "that was not judged; what is read again and is in ",
                   options.output, " already is written there once more",
                   options.counters.empty() ? "" : ", and counted again",
                   ", and copies of what is not read again pass (a new "
                   "--group does the same, from where --start says)")};
}

absl::Status EnsureRepartitionTopic(const DaemonOptions& options, const StopFlag& stop) {
  return AwaitTopics(RoutingOptions(options), stop,
                     [&](rd_kafka_t* client) { return EnsureOnce(options, client); });
}

absl::Status MayCreateRepartitionTopic(const DaemonOptions& options, rd_kafka_t* client,
                                       const TopicFacts& input) {
  return CreateTopic(client, RepartitionTopic(options), {input.partitions, input.replicas},
                     RepartitionConfig(input), /*validate_only=*/true);
}

int32_t Route(const RecordFields& fields, const rd_kafka_message_t& message, int32_t partitions) {
  const auto hashed = [&](absl::string_view bytes) {
    return static_cast<int32_t>(HashId(bytes, 0).a % static_cast<uint64_t>(partitions));
  };
  if (fields.id_state == RecordFields::State::kPresent) return hashed(fields.id);
  const RecordView view = MessageView(message).record();
  return view.key ? hashed(*view.key) : message.partition % partitions;
}

void AddRoutedFrom(HeadersPtr& headers, const RoutedFrom& from) {
  AddHeader(headers, kPartitionHeader, absl::StrCat(from.partition));
  AddHeader(headers, kOffsetHeader, absl::StrCat(from.offset));
}

std::optional<RoutedFrom> ReadRoutedFrom(const rd_kafka_headers_t* headers) {
  const size_t count = headers == nullptr ? 0 : rd_kafka_header_cnt(headers);
  if (count < 2) return std::nullopt;
  const auto partition = NumberAt(headers, count - 2, kPartitionHeader);
  const auto offset = NumberAt(headers, count - 1, kOffsetHeader);
  if (!partition || *partition > INT32_MAX || !offset) return std::nullopt;
  return RoutedFrom{static_cast<int32_t>(*partition), *offset};
}

HeadersPtr WithoutRoutedFrom(const rd_kafka_headers_t* headers) {
  HeadersPtr rest;
  const size_t count = rd_kafka_header_cnt(headers) - 2;
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    const void* value = nullptr;
    size_t size = 0;
    rd_kafka_header_get_all(headers, i, &name, &value, &size);
    if (rest == nullptr) rest.reset(rd_kafka_headers_new(count));
    rd_kafka_header_add(rest.get(), name, -1, value, static_cast<ssize_t>(size));
  }
  return rest;
}

absl::StatusOr<LogTrimmer> LogTrimmer::Create(const DaemonOptions& judging) {
  auto client = BaseConfig(judging).MakeProducer();
  if (!client.ok()) return client.status();
  return LogTrimmer(judging.input, *std::move(client));
}

void LogTrimmer::Trim(const std::vector<LaneReport>& lanes) {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
  for (const LaneReport& lane : lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      const int64_t offset = partition.restart;
      if (offset <= 0 || offset <= trimmed_[partition.partition]) continue;
      rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), partition.partition)->offset = offset;
    }
  }
  if (list->cnt == 0) return;
  const DeleteRecordsPtr deletion(rd_kafka_DeleteRecords_new(list.get()));
  rd_kafka_DeleteRecords_t* deletions[] = {deletion.get()};
  const QueuePtr queue(rd_kafka_queue_new(client_.get()));
  rd_kafka_DeleteRecords(client_.get(), deletions, 1, nullptr, queue.get());
  const EventPtr event(rd_kafka_queue_poll(queue.get(), kTrimTimeoutMs));
  if (event == nullptr) return;  // done or not: it is asked again
  rd_kafka_resp_err_t code = rd_kafka_event_error(event.get());
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const rd_kafka_topic_partition_list_t* done =
        rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event.get()));
    for (int i = 0; i < done->cnt; ++i) {
      const rd_kafka_topic_partition_t& element = done->elems[i];
      if (element.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        code = element.err;
      } else {
        trimmed_[element.partition] = std::max(trimmed_[element.partition], element.offset);
      }
    }
  }
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR || std::exchange(complained_, true)) return;
  spdlog::warn("{}: records that are no longer needed cannot be deleted, and the topic grows: {}", topic_,
               rd_kafka_err2str(code));
}

}  // namespace lethe::kafka
