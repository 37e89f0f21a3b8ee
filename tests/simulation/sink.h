// The output of a worker, into the cluster in memory.
#ifndef LETHE_TESTS_SIMULATION_SINK_H_
#define LETHE_TESTS_SIMULATION_SINK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/pipeline/options/options.h"
#include "src/pipeline/output/late_requests.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/worker_state.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/source.h"
#include "tests/simulation/thread.h"

namespace lethe::simulation {

struct SinkOptions {
  absl::Duration transaction_timeout;
  size_t output_takes_bytes = SIZE_MAX;  // of a record's value
  bool names_refused = false;            // the broker names the bad record of a batch
};

// A transactional producer, as connectors/kafka/output uses librdkafka's.
class SimulatedSink final : public Sink {
 public:
  SimulatedSink(const DaemonOptions& options, const Flows& flows, int lane, SinkOptions sink_options,
                Broker& broker, SimulatedSource& source, WorkerState& state, Thread& thread);

  absl::Status Open(OutputLimits limits) override;
  absl::Status Begin() override;
  absl::Status Write(const OutputRecord& record) override;
  Failure Poll() override;
  Outcome Commit(const std::vector<Position>& positions) override;
  Outcome Abort() override;
  const TransactionReport& report() const override { return report_; }
  TransactionSize size() const override;
  absl::Duration timeout() const override { return sink_options_.transaction_timeout; }
  int64_t batch_bytes() const override { return 1'000'000; }
  absl::StatusOr<SmallestTopic> CountPartitions(int32_t flow) override;
  absl::StatusOr<RecordRules> AskRules(int32_t flow) override;
  bool NeedsNewMember() const override { return late_.NeedNewMember(); }
  void OnNewMember() override { late_.OnNewMember(); }
  int64_t fences() const override { return fences_; }

  // Asked when the producer was fenced.
  std::function<absl::Status()> may_recreate;
  // The answers to so many commits are lost, and the client gives them up.
  void LoseAnswers(int commits) { lose_answers_ = commits; }
  // So many commits are refused for no lasting reason.
  void RefuseCommits(int commits) { refuse_commits_ = commits; }

 private:
  struct Batch {
    int32_t flow = 0;
    std::string topic;
    int32_t partition = 0;
    std::vector<Record> records;
    std::vector<RecordPlace> places;
  };
  // It outlives the sink, where it is late.
  using Request = std::function<Answer()>;
  bool is_connected() const;
  // One attempt. kAway: no answer came, and the connection was closed.
  Answer Ask(absl::string_view what, const Request& request);
  // Asks until the broker answers. kAway: a stop was requested meanwhile.
  Answer Retry(absl::string_view what, const Request& request);
  bool Flush();
  bool Deliver(std::shared_ptr<const Batch> batch);
  Answer Produce(const std::shared_ptr<const Batch>& batch);
  Answer AddOffsets(const std::vector<Position>& positions);
  Answer End(bool commits);
  // Asks for a while if there is no such topic.
  Answer AwaitTopic(absl::Duration at_most, const std::function<Answer()>& ask);
  void Fail(const std::string& why);
  Outcome ProducerLost(const std::string& why);
  bool Recreate();
  const std::string& TopicOf(const OutputRecord& record) const;

  const DaemonOptions& options_;
  const Flows& flows_;
  const SinkOptions sink_options_;
  Broker& broker_;
  SimulatedSource& source_;
  WorkerState& state_;
  Thread& thread_;
  const std::string id_;
  int epoch_ = -1;
  bool has_producer_ = false;
  bool is_fenced_ = false;
  LateRequests late_;
  bool has_begun_ = false;                                        // the broker knows of the transaction
  std::set<std::pair<std::string, int32_t>> added_;               // the partitions in it
  std::map<std::pair<std::string, int32_t>, int64_t> sequences_;  // the next batch of the producer in each
  std::vector<Batch> waiting_;                                    // written, and not sent yet
  int64_t bytes_ = 0;
  TransactionReport report_;
  int64_t fences_ = 0;
  int lose_answers_ = 0;
  int refuse_commits_ = 0;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_SINK_H_
