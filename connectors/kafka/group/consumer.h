// The input of a worker: a consumer of the group.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_CONSUMER_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_CONSUMER_H_

#include <librdkafka/rdkafka.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/client_statistics.h"
#include "connectors/kafka/client/message_view.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/asides.h"
#include "src/pipeline/task/source.h"

namespace lethe::kafka {

using PartitionList = rd_kafka_topic_partition_list_t;

// The input topics through a consumer of the group.
//
// Thread safety: none, it belongs to the worker's thread; but for the figures of the client.
class Consumer final : public Source {
 public:
  Consumer(const DaemonOptions& options, const Flows& flows, int lane);

  // Of the consumer of this lane, without callbacks.
  static ClientConfig Config(const DaemonOptions& options, int lane);

  // Creates the consumer and subscribes.
  absl::Status Open() override;
  bool is_open() const { return consumer_ != nullptr; }
  // A static member leaves too, unless it keeps its place.
  void Leave() override;
  absl::Status Resubscribe() override;
  absl::Status Rejoin() override;
  absl::Status Reopen() override;
  void StayAlive() override;

  int64_t HighWatermark(TopicPartition partition) const override;
  bool IsLost() const override { return rd_kafka_assignment_lost(client()) != 0; }

  void Assign(const std::vector<const Task*>& tasks) override;
  void Unassign(const std::vector<TopicPartition>& partitions) override;
  bool TakeGeneration() override;
  // After an offset that is not in the log, the client fetches no more of the partition, and a seek may come
  // too early.
  void Reassign(const Task& task, const Tasks& all) override;
  const rd_kafka_consumer_group_metadata_t* group_metadata() const { return group_metadata_.get(); }
  absl::Duration session_timeout() const override { return session_timeout_; }
  const std::string& member_id() const override { return member_id_; }
  ClientReport client_report() const override { return statistics_.Report(); }
  absl::Duration throttled() const override { return statistics_.throttled(); }
  rd_kafka_t* client() const { return consumer_.get(); }

 private:
  // Notes what happened for the next batch, as nothing may be committed, sought or restored in a callback.
  static void OnRebalance(rd_kafka_t* consumer, rd_kafka_resp_err_t code, PartitionList* partitions,
                          void* opaque);
  void PollBatch(absl::Duration timeout, size_t limit, size_t most_bytes) override;
  void Close();
  // Until the batch is full, or something happened to the group.
  void PollMessages(absl::Duration timeout, size_t limit, size_t most_bytes);
  // The worker reads no more: what happens in the group from now on is answered at once, since closing waits
  // for that.
  void BeginToClose();
  void AnswerAtOnce();
  void ReleaseBatch() override;
  void ReadCarefully() override { fetch_on_->ReadCarefully(); }
  void MoveTo(const Task& task, int64_t offset) override;
  void Pause(const Task& task, bool paused) override;
  void SetAside(const Task& task, absl::Span<const InputRecord> records) override;
  void Wait(Task& task) override;
  void TakeBack(Task& task) override;

  friend class Asides<MessagePtr, Consumer>;
  MessagePlace PlaceOf(const MessagePtr& message);
  void StopFetching(TopicPartition partition) { PauseClient(partition, true); }
  void FetchAgain(TopicPartition partition, std::optional<int64_t> offset);

  void Add(MessagePtr message);
  void PauseClient(TopicPartition partition, bool paused);
  void SeekClient(TopicPartition partition, int64_t offset);
  const std::string& TopicOf(TopicPartition partition) const {
    return flows_.at(partition.flow).options.input;
  }
  // Of a record, or of an event of a partition.
  TopicPartition PartitionOf(const rd_kafka_message_t& message);
  // What an error of the client is about, as the group sees it.
  SourceEvent::Problem ProblemOf(rd_kafka_resp_err_t code) const;
  // Adds an event or error of the client.
  void AddEvent(const rd_kafka_message_t& message);
  // Empty: this consumer is no member.
  std::string MemberId() const;
  PartitionListPtr Positions(const std::vector<const Task*>& tasks) const;
  // Logs the error; true if there is none.
  bool Log(const char* doing, const ErrorPtr& error) const;

  const DaemonOptions& options_;
  const Flows& flows_;
  const int lane_;
  // Kept here, since a client that ends does not report its protocol any more.
  const bool cooperative_;
  ClientStatistics statistics_;
  ClientPtr consumer_;
  std::optional<FetchOn> fetch_on_;  // of the consumer
  absl::Duration session_timeout_ = absl::ZeroDuration();
  std::optional<SourceEvent> rebalance_;  // without an answer
  bool is_new_rebalance_ = false;         // it is in no batch yet
  bool is_closing_ = false;
  GroupMetadataPtr group_metadata_;  // as of the present assignment
  std::string member_id_;
  // The storage of the batch's records; neither grows while there are any.
  std::vector<MessagePtr> messages_;
  Asides<MessagePtr, Consumer> asides_{*this};
  std::vector<MessageView> views_;
  // The topic of the last message: most have the same as the one before.
  std::string last_topic_;
  int32_t last_flow_ = 0;
  std::deque<SourceEvent> events_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_CONSUMER_H_
