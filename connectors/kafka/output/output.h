// The producer of a lane: records between Begin and Commit are out together with the input offsets, or not at
// all.
#ifndef LETHE_CONNECTORS_KAFKA_OUTPUT_OUTPUT_H_
#define LETHE_CONNECTORS_KAFKA_OUTPUT_OUTPUT_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/client_statistics.h"
#include "connectors/kafka/group/consumer.h"
#include "connectors/kafka/output/producer_config.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/output/codec_choice.h"
#include "src/pipeline/output/late_requests.h"
#include "src/pipeline/output/sent_records.h"
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
  absl::Duration timeout() const override { return timeout_; }
  std::map<int32_t, TransactionSize> SizeByFlow() const override { return sent_.SizeByFlow(); }
  int64_t batch_bytes() const override;
  // The producer knows of these partitions from then on.
  absl::StatusOr<SmallestTopic> CountPartitions(int32_t flow) override;
  absl::StatusOr<RecordRules> AskRules(int32_t flow) override;

  bool NeedsNewMember() const override { return late_.NeedNewMember(); }
  void OnNewMember() override { late_.OnNewMember(); }

  int64_t fences() const override { return fences_; }
  int64_t renewals() const override { return renewals_; }
  ClientReport client_report() const override { return statistics_.Report(); }
  absl::Duration throttled() const override { return statistics_.throttled(); }

 private:
  // How long one call may block before the stop flag is looked at again.
  static constexpr int kCallTimeoutMs = 1000;
  // The pause before a retry.
  static constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(20);

  absl::Status MakeProducer();
  // Waits while too much is on its way to the brokers.
  void AwaitRoom();
  static rd_kafka_resp_err_t OnNew(rd_kafka_t* client, const rd_kafka_conf_t*, void* self, char*, size_t);

  // Records that have no answer.
  size_t Unanswered() const { return static_cast<size_t>(rd_kafka_outq_len(producer_.get())); }
  // After the abort: the next transaction takes another producer if `renew`, or to compress better.
  void Aborted(bool renew);
  void DropProducer();
  Outcome ProducerLost(const std::string& why);
  // Keeps the failure. False: the report's last_error says why there is no producer.
  bool RecreateProducer();
  // Before a transaction begins: takes another producer if this one has left something behind.
  absl::Status RenewProducer();
  absl::Status NoProducer() const;
  // Cancelled on stop.
  absl::Status NoProducerNow() const;
  // Waits for answers, but only for some 30 ms. A longer rd_kafka_flush() looks for them every 10 ms: no
  // delivery report of a success wakes it.
  void FlushQuickly();
  Outcome CommitTransaction(const std::vector<PartitionListPtr>& offsets);
  // The flows whose offsets the broker does not let this user commit.
  void BlameDenied(const rd_kafka_topic_partition_list_t& offsets);
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
  static std::string Describe(const rd_kafka_error_t* error);

  const DaemonOptions& options_;
  const Flows& flows_;
  WorkerState& state_;
  const Consumer& consumer_;
  const std::function<absl::Status()> may_recreate_;
  const bool transactional_;
  OutputLimits limits_;
  absl::Duration timeout_ = absl::InfiniteDuration();  // of this producer's transactions

  ClientStatistics statistics_;      // of this producer, or the one before it
  LateRequests late_;                // the producer's threads write it until it ends
  bool wants_new_producer_ = false;  // for another reason
  TransactionReport report_;
  SentRecords sent_{report_};  // the producer's threads count until it ends
  ClientPtr producer_;
  std::map<int32_t, FlowTopics> topics_;  // of this producer, by flow, as they are first written to
  absl::Duration waited_;
  CodecChoice codec_;
  int64_t fences_ = 0;
  int64_t renewals_ = 0;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OUTPUT_OUTPUT_H_
