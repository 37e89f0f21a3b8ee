// The times of records at places of the log.
#include <map>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/client/message_view.h"
#include "connectors/kafka/group/broker_client.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr int kBoundsTimeoutMs = 3000;
constexpr int kTimesPollMs = 100;
constexpr absl::Duration kTimesPatience = absl::Seconds(10);

// To the index of its place.
using WantedPlaces = std::map<std::pair<std::string, int32_t>, size_t>;

// Reads the first record at or after each place, of all of them at once, and sets the times of those that
// come by the deadline.
absl::Status ReadFirst(rd_kafka_t* client, const std::vector<LogPlace>& places, WantedPlaces wanted,
                       absl::Time deadline, std::vector<absl::Time>& times) {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(wanted.size())));
  for (const auto& [partition, i] : wanted) {
    rd_kafka_topic_partition_list_add(list.get(), partition.first.c_str(), partition.second)->offset =
        places[i].offset;
  }
  rd_kafka_poll_set_consumer(client);
  const absl::Cleanup fetch_no_more = [&] {
    rd_kafka_resume_partitions(client, list.get());  // else they stay paused in the next assignment
    rd_kafka_assign(client, nullptr);
  };
  if (const auto code = rd_kafka_assign(client, list.get()); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return ErrorStatus(code, "reading first records");
  }
  while (!wanted.empty() && SteadyNow() < deadline) {
    const MessagePtr message(rd_kafka_consumer_poll(client, kTimesPollMs));
    if (message == nullptr) continue;
    const bool is_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && !is_end) {
      // Nothing is asked of a group, so it does not matter whether this user may be in it.
      if (IsTransient(message->err) || message->err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) continue;
      return ErrorStatus(message->err, "reading first records");
    }
    const auto found = wanted.find({rd_kafka_topic_name(message->rkt), message->partition});
    if (found == wanted.end()) continue;
    times[found->second] = is_end ? absl::InfiniteFuture() : MessageView(*message).record().time();
    // One with many records must not keep others waiting.
    const PartitionListPtr done(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(done.get(), found->first.first.c_str(), found->first.second);
    rd_kafka_pause_partitions(client, done.get());
    wanted.erase(found);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<absl::Time>> BrokerClient::AskTimes(const std::vector<LogPlace>& places) {
  std::map<std::string, std::set<int32_t>> asked;
  for (const LogPlace& place : places) asked[place.topic].insert(place.partition);
  PartitionsByTopic partitions;
  for (const auto& [topic, of_topic] : asked) partitions[topic].assign(of_topic.begin(), of_topic.end());
  auto bounds = kafka::AskBounds(client(), partitions, kBoundsTimeoutMs);
  if (!bounds.ok()) return bounds.status();
  std::vector<absl::Time> times(places.size(), absl::InfiniteFuture());
  std::vector<size_t> left;
  for (size_t i = 0; i < places.size(); ++i) {
    const OffsetRange& log = (*bounds)[places[i].topic][places[i].partition];
    if (std::max(places[i].offset, log.begin) < log.end) left.push_back(i);
  }
  const absl::Time deadline = SteadyNow() + kTimesPatience;
  while (!left.empty()) {
    // A consumer reads a partition from one place at a time.
    WantedPlaces wanted;
    std::erase_if(left, [&](size_t i) {
      return wanted.try_emplace({places[i].topic, places[i].partition}, i).second;
    });
    for (const auto& [partition, i] : wanted) times[i] = absl::InfinitePast();
    if (absl::Status read = ReadFirst(client(), places, std::move(wanted), deadline, times); !read.ok()) {
      return read;
    }
  }
  return times;
}

}  // namespace lethe::kafka
