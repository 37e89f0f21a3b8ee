// The producer of a lane: records between Begin and Commit are out together with the input offsets, or not at
// all.
#ifndef LETHE_CONNECTORS_KAFKA_OUTPUT_OUTPUT_H_
#define LETHE_CONNECTORS_KAFKA_OUTPUT_OUTPUT_H_

#include <librdkafka/rdkafka.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/client_statistics.h"
#include "connectors/kafka/group/consumer.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/flow.h"
#include "src/pipeline/task/worker_state.h"

namespace lethe::kafka {

// A producer with a transactional id (exactly once), or an idempotent one that delivers before the offsets
// are committed (at least once). After a fatal error it recreates the producer. If that fails (its key cannot
// be read, say), Begin and CountPartitions say why, and Abort is kStopped.
//
// Thread safety: none; one lane, one thread. A stop ends every wait.
class Output final : public Sink {
 public:
  static constexpr absl::string_view kQuickCodec = "lz4";
  // Of the producer of this lane, without callbacks.
  static ClientConfig Config(const DaemonOptions& options, int lane, const OutputLimits& limits,
                             absl::string_view codec = kQuickCodec);

  // `state` gets what the lane waits for, and its heartbeat beats meanwhile. `may_recreate` is asked when the
  // producer was fenced; an error stands for one of making another. Positions are committed for the
  // consumer's group, in its present generation.
  Output(
      const DaemonOptions& options, const Flows& flows, WorkerState& state, const Consumer& consumer,
      std::function<absl::Status()> may_recreate = [] { return absl::OkStatus(); });

  // Creates the producer and fences earlier ones of the same name (init_transactions); waits for a broker
  // that is away.
  absl::Status Open(OutputLimits limits) override;
  absl::Status Begin() override;
  absl::Status Write(const OutputRecord& record) override;
  // Serves the client's callbacks.
  Failure Poll() override;
  // The consumer commits where there is no transaction.
  Outcome Commit(const std::vector<Position>& positions) override;
  Outcome Abort() override;
  const TransactionReport& report() const override { return report_; }
  TransactionSize size() const override;
  std::map<int32_t, TransactionSize> SizeByFlow() const override;
  int64_t batch_bytes() const override;
  // The producer knows of these partitions from then on.
  absl::StatusOr<int32_t> CountPartitions(int32_t flow) override;
  absl::StatusOr<RecordRules> AskRules(int32_t flow) override;

  int64_t fences() const override { return fences_; }
  ClientReport client_report() const override { return statistics_.Report(); }
  absl::Duration throttled() const override { return statistics_.throttled(); }

 private:
  // A record of the transaction.
  struct Sent {
    RecordPlace place;
    int64_t end_bytes;  // up to its end in the transaction
    int64_t bytes;      // of key and value
    int64_t timestamp_ms;
    bool has_key;
    int32_t flow;
  };

  absl::Status MakeProducer();
  // Waits while too much is on its way to the brokers.
  void AwaitRoom();
  // What the transaction has of a flow.
  struct FlowSize {
    int64_t bytes = 0;
    int64_t records = 0;
    int64_t unanswered_at_end = 0;  // records
    absl::Duration waited;          // while some of them had no answer
  };
  // Sent, and answered or purged, of a flow since the producer was made. Two flows may share a place: then
  // both wait for both.
  struct FlowCount {
    int64_t sent = 0;
    std::atomic<int64_t> answered{0};  // by the client's threads
  };
  static constexpr size_t kFlowCounts = 1024;
  FlowCount& CountOf(int32_t flow) { return counts_[static_cast<size_t>(flow) % kFlowCounts]; }
  // That much time went by: adds it for the flows that have unanswered records.
  void NoteWait(absl::Duration step);
  static rd_kafka_resp_err_t OnNew(rd_kafka_t* client, const rd_kafka_conf_t*, void* self, char*, size_t);
  static rd_kafka_resp_err_t OnAnswer(rd_kafka_t*, rd_kafka_message_t* message, void* self);

  // The bytes of the transaction without an answer; about, since answers may come out of order.
  int64_t UnansweredBytes();
  // After the abort: recreates the producer if `renew`, or to compress better: a record that is too large may
  // fit with another codec, unless the user has chosen one.
  Outcome Aborted(bool renew);
  void Refuse(const Sent& sent, rd_kafka_resp_err_t code, const std::string& why);
  // A record failed for the sake of its topic.
  void Blame(const Sent& sent, rd_kafka_resp_err_t code, const std::string& topic);
  void DropProducer();
  Outcome ProducerLost(const std::string& why);
  // Keeps the failure. False: the report's last_error says why there is no producer.
  bool RecreateProducer();
  absl::Status NoProducer() const;
  Outcome CommitTransaction(const std::vector<PartitionListPtr>& offsets);
  Outcome CommitDelivered(const std::vector<PartitionListPtr>& offsets);
  // After stop: whether the time that a wait may still take is over. `give_up` starts as InfiniteFuture().
  bool StopGraceIsOver(absl::Time& give_up) const;
  // Calls until it neither asks for a retry nor times out. Null is success.
  ErrorPtr Retry(const std::string& doing, const std::function<rd_kafka_error_t*(int timeout_ms)>& call);
  // The topics of one flow.
  struct FlowTopics {
    TopicPtr output;
    TopicPtr divert;
    std::vector<TopicPtr> counters;
  };
  rd_kafka_topic_t* TopicOf(const Target& target);
  FlowTopics OpenTopics(const DaemonOptions& options) const;
  // In as many requests as the broker needs.
  std::vector<PartitionListPtr> Offsets(const std::vector<Position>& positions) const;
  static void OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque);
  static int CloseSocket(int socket, void* opaque);  // in the client's threads

  const DaemonOptions& options_;
  const Flows& flows_;
  WorkerState& state_;
  const Consumer& consumer_;
  const std::function<absl::Status()> may_recreate_;
  const bool transactional_;
  OutputLimits limits_;

  ClientStatistics statistics_;  // of this producer, or the one before it
  std::atomic<int64_t> closed_sockets_{0};
  int64_t closed_before_ = 0;                  // when the transaction began
  std::array<FlowCount, kFlowCounts> counts_;  // the producer's threads count until it ends
  ClientPtr producer_;
  std::map<int32_t, FlowTopics> topics_;  // of this producer, by flow, as they are first written to
  std::vector<Sent> sent_;
  std::map<int32_t, FlowSize> flow_sizes_;
  FlowSize* flow_size_ = nullptr;  // of the record written last, whose flow is the next
  int32_t flow_of_size_ = -1;
  int64_t unanswered_at_end_ = 0;  // bytes
  absl::Duration waited_;
  int64_t room_seen_at_ = 0;  // sent bytes when AwaitRoom last looked
  TransactionReport report_;
  bool unsure_ = false;      // some record may have been written, without an answer
  absl::string_view codec_;  // where the user names none
  int64_t fences_ = 0;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OUTPUT_OUTPUT_H_
