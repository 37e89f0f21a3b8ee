// The consumer and the producer of a lane as the pipeline sees them: what tests/program/fake_cluster_test.cc
// asks of the fakes, asked of a real broker.
#include <deque>
#include <memory>
#include <utility>

#include "connectors/kafka/cluster.h"
#include "connectors/kafka/group/broker_client.h"
#include "connectors/kafka/group/consumer.h"
#include "connectors/kafka/output/output.h"
#include "tests/support/kafka_client.h"
#include "tests/support/rebalances_suite.h"
#include "tests/support/shared_broker.h"
#include "tests/support/source_and_sink_suite.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

class OnBroker {
 public:
  OnBroker() {
    options_.process.brokers = SharedBroker().bootstrap();
    options_.input = UniqueName("input");
    options_.output = UniqueName("output");
    options_.process.group = UniqueName("group");
    options_.process.instance = "test";
    for (const std::string& topic : {options_.input, options_.output}) {
      EXPECT_OK(SharedClient().CreateTopic(topic, 1, {{"retention.ms", "-1"}}));
    }
    flows_.Add(std::make_unique<Flow>(options_, nullptr));
    Restart();
  }
  ~OnBroker() { consumer_->Leave(); }

  void Append(std::optional<std::string> key, std::optional<std::string> value, int64_t timestamp_ms,
              std::vector<std::pair<std::string, std::optional<std::string>>> headers) {
    Record record;
    record.key = std::move(key);
    record.value = std::move(value);
    record.timestamp_ms = timestamp_ms;
    record.headers = std::move(headers);
    record.partition = 0;
    EXPECT_OK(SharedClient().Produce(options_.input, {record}));
  }
  void AppendAborted(const std::string& value) {
    auto producer = TransactionalProducer::Start(options_.process.brokers, UniqueName("aborted")).value();
    Record record;
    record.value = value;
    record.partition = 0;
    EXPECT_OK(producer->Begin());
    EXPECT_OK(producer->Produce(options_.input, {record}));
    EXPECT_OK(producer->Abort());
  }
  std::vector<Record> Output() { return SharedClient().ReadSettled(options_.output).value(); }
  size_t OutputNow() {
    return SharedClient().ReadAll(options_.output, Isolation::kReadCommitted).value().size();
  }
  Source& source() { return *consumer_; }
  Sink& sink() { return *output_; }
  std::vector<lethe::CommittedOffset> Committed() {
    return kafka::BrokerCluster(options_, flows_, *consumer_).Committed(options_.input, 1).value();
  }
  Task& task() { return task_; }
  void Restart() {
    if (consumer_ != nullptr) consumer_->Leave();
    output_.reset();
    consumer_ = std::make_unique<kafka::Consumer>(options_, flows_, 0);
    output_ = std::make_unique<kafka::Output>(options_, flows_, state_, *consumer_);
    ASSERT_OK(output_->Open({1'000'000, 1'000'000}));
    ASSERT_OK(consumer_->Open());
    const absl::Time give_up = SteadyNow() + absl::Seconds(60);
    while (consumer_->batch().empty() && SteadyNow() < give_up) {
      consumer_->Poll(absl::Milliseconds(100), 1, 1);
    }
    ASSERT_FALSE(consumer_->batch().empty());
    ASSERT_EQ(consumer_->batch()[0].event->kind, SourceEvent::Kind::kAssigned);
    ASSERT_TRUE(consumer_->TakeGeneration());
    task_ = Task();
    task_.SkipTo(std::max<int64_t>(Committed().front().offset, 0));
    consumer_->Assign({&task_});
  }

 private:
  DaemonOptions options_;
  Flows flows_;
  StopFlag stop_;
  WorkerState state_{0, stop_};
  Task task_;
  std::unique_ptr<kafka::Consumer> consumer_;
  std::unique_ptr<kafka::Output> output_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Kafka, SourceAndSink, OnBroker);

// An end and a record have the same offset, if the record was written when the end had been met.
TEST(SourceTest, ARecordBehindAnEndIsSetAsideAndTakenBack) {
  OnBroker cluster;
  Source& source = cluster.source();
  Task& task = cluster.task();
  const absl::Time give_up = SteadyNow() + absl::Seconds(60);
  const auto poll = [&](size_t limit) -> const std::vector<InputRecord>& {
    source.ClearBatch();
    source.Poll(absl::Milliseconds(100), limit, 1 << 20);
    return source.batch();
  };
  const auto append = [&] { cluster.Append("k", "v", 1000, {}); };
  // Until both are in one batch.
  for (bool has_both = false; !has_both;) {
    ASSERT_LT(SteadyNow(), give_up);
    append();
    // The end behind it stays with the client.
    while (task.next() < source.HighWatermark({0, 0}) || source.HighWatermark({0, 0}) == 0) {
      for (const InputRecord& record : poll(1)) {
        if (record.event == nullptr) task.SkipTo(record.offset + 1);
      }
      ASSERT_LT(SteadyNow(), give_up);
    }
    // No condition shows that the client has it.
    absl::SleepFor(absl::Milliseconds(600));
    append();
    while (source.HighWatermark({0, 0}) <= task.next()) ASSERT_LT(SteadyNow(), give_up);
    bool has_end = false;
    for (const InputRecord& record : poll(100)) {
      if (record.event != nullptr) {
        has_end = record.event->kind == SourceEvent::Kind::kEnd && record.offset == task.next();
      } else if (has_end && record.offset == task.next()) {
        source.SetAside(task, {&record, 1});
        source.Wait(task);
        has_both = true;
      } else {
        task.SkipTo(record.offset + 1);
      }
    }
  }
  source.ClearBatch();
  source.TakeBack(task);
  int64_t next = -1;
  while (next < 0) {
    ASSERT_LT(SteadyNow(), give_up);
    for (const InputRecord& record : poll(100)) {
      if (record.event == nullptr && next < 0) next = record.offset;
    }
    if (next < 0) append();
  }
  EXPECT_EQ(next, task.next());
}

// The client's queue still has records that were fetched beside those that it has read.
TEST(BrokerClientTest, ItsLastErrorIsAskedForAfterItHasRead) {
  DaemonOptions options;
  options.process.brokers = SharedBroker().bootstrap();
  options.process.group = UniqueName("group");
  options.input = UniqueName("input");
  ASSERT_OK(SharedClient().CreateTopic(options.input, 2, {{"retention.ms", "-1"}}));
  std::vector<Record> records(2000);
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].value = std::string(200, 'x');
    records[i].timestamp_ms = 1'795'860'000'000;
    records[i].partition = static_cast<int32_t>(i % 2);
  }
  ASSERT_OK(SharedClient().Produce(options.input, records));
  const auto client = kafka::BrokerClient::Make(options, lethe::Isolation::kReadCommitted).value();
  for (int i = 0; i < 5; ++i) {
    const auto times = client->AskTimes({{options.input, 0, 0}, {options.input, 1, 500}});
    ASSERT_OK(times);
    EXPECT_EQ((*times)[0], absl::FromUnixMillis(1'795'860'000'000));
    EXPECT_EQ((*times)[1], absl::FromUnixMillis(1'795'860'000'000));
    for (int j = 0; j < 200; ++j) {
      EXPECT_OK(client->LastError());
      ASSERT_OK(client->AskBounds(options.input, j % 2));
    }
    int64_t read = 0;
    ASSERT_OK(
        client->Read(options.input, {{0, {0, 10}}}, absl::Seconds(20), [&](const InputRecord&) { ++read; }));
    EXPECT_EQ(read, 10);
    EXPECT_OK(client->LastError());
  }
}

// Else the group gives it partitions, which nobody reads for a session timeout.
TEST(SourceTest, AStaticMemberThatLeavesWhileItJoinsIsNoMember) {
  DaemonOptions options;
  options.process.brokers = SharedBroker().bootstrap();
  options.input = UniqueName("input");
  options.process.group = UniqueName("group");
  options.process.instance = "test";
  options.process.static_membership = StaticMembership::kAfterCrash;
  ASSERT_OK(SharedClient().CreateTopic(options.input, 2, {}));
  Flows flows;
  flows.Add(std::make_unique<Flow>(options, nullptr));
  const auto brokers = kafka::BrokerClient::Make(options, lethe::Isolation::kReadCommitted).value();
  const auto has_members = [&](size_t count) {
    const auto members = brokers->AskMembers();
    return members.ok() && members->size() == count;
  };
  kafka::Consumer member(options, flows, 0);
  const auto step = [&] {
    member.Poll(absl::Milliseconds(20), 100, 1 << 20);
    for (const InputRecord& each : member.batch()) {
      if (each.event == nullptr) continue;
      if (each.event->kind == SourceEvent::Kind::kAssigned) member.Assign({});
      if (each.event->kind == SourceEvent::Kind::kRevoked) member.Unassign(each.event->partitions);
    }
    member.ClearBatch();
    return true;
  };
  ASSERT_OK(member.Open());
  ASSERT_TRUE(WaitUntil([&] { return step() && member.TakeGeneration(); }, absl::Minutes(1)));
  kafka::Consumer joining(options, flows, 1);
  ASSERT_OK(joining.Open());
  // Its join waits for the other member, which does not poll.
  ASSERT_TRUE(WaitUntil([&] { return has_members(2); }, absl::Minutes(1)));
  std::thread leave([&] { joining.Leave(); });
  const bool has_left = WaitUntil([&] { return step() && has_members(1); }, absl::Seconds(20));
  leave.join();
  EXPECT_TRUE(has_left);
  member.Leave();
}

template <bool is_cooperative>
class GroupOnBroker {
 public:
  static constexpr bool kIsCooperative = is_cooperative;

  GroupOnBroker() {
    options_.process.brokers = SharedBroker().bootstrap();
    options_.input = UniqueName("input");
    options_.output = UniqueName("output");
    options_.process.group = UniqueName("group");
    options_.process.instance = "test";
    options_.process.assignment = is_cooperative ? Assignment::kCooperative : Assignment::kEager;
    // The least that a broker takes.
    options_.process.properties = {
        {"session.timeout.ms", "6000"}, {"max.poll.interval.ms", "6000"}, {"heartbeat.interval.ms", "500"}};
    for (const std::string& topic : {options_.input, options_.output}) {
      EXPECT_OK(SharedClient().CreateTopic(topic, 2, {{"retention.ms", "-1"}}));
    }
    flows_.Add(std::make_unique<Flow>(options_, nullptr));
    for (int lane = 0; lane < 2; ++lane) {
      states_.emplace_back(lane, stop_);
      consumers_.push_back(std::make_unique<kafka::Consumer>(options_, flows_, lane));
      outputs_.push_back(
          std::make_unique<kafka::Output>(options_, flows_, states_.back(), *consumers_.back()));
      EXPECT_OK(outputs_.back()->Open({1'000'000, 1'000'000}));
    }
  }
  ~GroupOnBroker() {
    for (const auto& consumer : consumers_) consumer->Leave();
  }

  void Append(int32_t partition, const std::string& value) {
    Record record;
    record.value = value;
    record.partition = partition;
    EXPECT_OK(SharedClient().Produce(options_.input, {record}));
  }
  Source& source(size_t i) { return *consumers_[i]; }
  Sink& sink(size_t i) { return *outputs_[i]; }
  std::vector<lethe::CommittedOffset> Committed(size_t i) {
    return kafka::BrokerCluster(options_, flows_, *consumers_[i]).Committed(options_.input, 2).value();
  }
  void Expel() {
    EXPECT_TRUE(WaitUntil(
        [&] {
          const auto brokers = kafka::BrokerClient::Make(options_, lethe::Isolation::kReadCommitted);
          const auto members = (*brokers)->AskMembers();
          return members.ok() && members->empty();
        },
        absl::Minutes(1)));
  }

 private:
  DaemonOptions options_;
  Flows flows_;
  StopFlag stop_;
  std::deque<WorkerState> states_;
  std::vector<std::unique_ptr<kafka::Consumer>> consumers_;
  std::vector<std::unique_ptr<kafka::Output>> outputs_;
};

using BothProtocols = testing::Types<GroupOnBroker<false>, GroupOnBroker<true>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Kafka, Rebalances, BothProtocols);

}  // namespace
}  // namespace lethe::test
