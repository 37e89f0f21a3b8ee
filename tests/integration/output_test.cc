// The producer of a lane against a real broker.
#include "connectors/kafka/output/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/late_wire.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::kafka {
namespace {

using testing::HasSubstr;

using test::Isolation;
using test::SharedClient;

class OutputTest : public testing::Test {
 protected:
  OutputTest() {
    options_.process.brokers = wire_.bootstrap;
    options_.output = test::UniqueName("output");
    options_.process.group = options_.output + "-group";
    options_.process.instance = "test";
    options_.input = test::UniqueName("input");
    flows_.Add(std::make_unique<Flow>(options_, nullptr));
    EXPECT_OK(consumer_.Open());
    consumer_.TakeGeneration();  // of a group that it has not joined: no positions are committed here
  }

  absl::Status Produce(const std::string& value, int32_t partition = 0, int64_t timestamp_ms = 0) {
    OutputRecord record;
    record.partition = partition;
    record.timestamp_ms = timestamp_ms;
    record.value = value;
    return output_.Write(record);
  }

  Outcome Commit() { return output_.Commit({}); }

  // Of partition 0.
  int64_t Size() {
    return SharedClient().EndOffsets(options_.output, Isolation::kReadUncommitted).value()[0];
  }

  // A transaction is committed; in the next the broker has a record of partition 0, and the client does not
  // know that.
  void BeginWithALostReply() {
    ASSERT_OK(output_.Open({1'000'000, 1'000'000}));
    ASSERT_OK(output_.CountPartitions(0));
    ASSERT_OK(output_.Begin());
    ASSERT_OK(Produce("first"));
    ASSERT_EQ(Commit(), Outcome::kCommitted);
    // With the marker, which comes after the commit has been answered.
    ASSERT_TRUE(test::WaitUntil([&] { return Size() == 2; }, absl::Minutes(1)));
    ASSERT_OK(output_.Begin());
    ASSERT_OK(Produce("aborted, and acknowledged"));
    ASSERT_TRUE(
        test::WaitUntil([&] { return output_.Poll() == Failure::kNone && Size() == 3; }, absl::Minutes(1)));
    wire_.proxy.SetLosingReplies(true);
    ASSERT_OK(Produce("aborted"));
    ASSERT_TRUE(test::WaitUntil([&] { return Size() == 4; }, absl::Minutes(1)));
  }

  // In the middle of a transaction another producer takes its place.
  void BeginAndFence() {
    ASSERT_OK(SharedClient().CreateTopic(options_.output, 1));
    ASSERT_OK(output_.Open({1'000'000, 1'000'000}));
    ASSERT_OK(output_.Begin());
    // Nothing is sent before: a record of a transaction that was ended is refused, and that is no fence.
    ASSERT_OK(test::TransactionalProducer::Start(test::SharedBroker().bootstrap(),
                                                 absl::StrCat(options_.process.group, "/test/0")));
  }
  // No producer can be made from then on.
  void TakeTheKeyAway() {
    options_.process.properties = {{"ssl.key.location", "/nowhere/client.key"}, {"security.protocol", "ssl"}};
  }

  void CommitsTheNext() {
    ASSERT_OK(output_.Begin());
    ASSERT_OK(Produce("second"));
    ASSERT_EQ(Commit(), Outcome::kCommitted);
    EXPECT_EQ(Values(), (std::vector<std::string>{"first", "second"}));
  }

  std::vector<std::string> Values() {
    std::vector<std::string> values;
    const auto records = SharedClient().ReadSettled(options_.output);
    EXPECT_OK(records);
    for (const test::Record& record : *records) values.push_back(*record.value);
    return values;
  }

  ~OutputTest() override {
    is_over_ = true;
    mender_.join();
  }

  const test::SharedWireToBroker wire_ = test::SharedWire();
  DaemonOptions options_;
  Flows flows_;
  StopFlag stop_;
  WorkerState state_{0, stop_};
  Consumer consumer_{options_, flows_, 0};
  Output output_{options_, flows_, state_, consumer_};
  std::atomic<bool> is_over_ = false;
  // The wire works again when the output says that it waits.
  std::thread mender_{[this] {
    while (!is_over_) {
      if (!state_.waiting().empty()) wire_.proxy.SetStalled(false);
      absl::SleepFor(absl::Milliseconds(5));
    }
  }};
};

// What a broker has, and has not acknowledged when its transaction is aborted, must not make it take the next
// transaction's records for copies: the client gives them the same sequence numbers.
TEST_F(OutputTest, AnAbortOfUnacknowledgedRecordsLosesNothingOfTheNextTransaction) {
  ASSERT_OK(SharedClient().CreateTopic(options_.output, 1));
  BeginWithALostReply();
  // The client learns that the connection is gone, not what became of the record, and cannot ask.
  wire_.proxy.SetStalled(true);
  wire_.proxy.SetLosingReplies(false);
  wire_.proxy.Cut();
  EXPECT_EQ(output_.Abort(), Outcome::kAborted);
  CommitsTheNext();
}

// The same where it is aborted since another record of it was refused, which is no reason for another
// producer.
TEST_F(OutputTest, ARefusalAmongUnacknowledgedRecordsLosesNothingOfTheNextTransaction) {
  ASSERT_OK(
      SharedClient().CreateTopic(options_.output, 2, {{"message.timestamp.difference.max.ms", "3600000"}}));
  // So that the client does not send it again before the abort.
  options_.process.properties = {{"retry.backoff.ms", "5000"}};
  BeginWithALostReply();
  wire_.proxy.SetLosingReplies(false);
  wire_.proxy.Cut();
  ASSERT_OK(Produce("refused", 1, absl::ToUnixMillis(absl::Now() - absl::Hours(24))));
  ASSERT_TRUE(test::WaitUntil([&] { return output_.Poll() == Failure::kRefused; }, absl::Minutes(1)));
  EXPECT_EQ(output_.Abort(), Outcome::kAborted);
  CommitsTheNext();
}

// It is fenced, and what its client is made of is not there any more. It says so, whatever it is asked.
TEST_F(OutputTest, WithoutAProducerCallsFailWithTheReason) {
  ASSERT_NO_FATAL_FAILURE(BeginAndFence());
  ASSERT_OK(Produce("first"));
  TakeTheKeyAway();
  EXPECT_EQ(Commit(), Outcome::kStopped);
  EXPECT_THAT(output_.report().last_error, HasSubstr("ssl.key.location"));
  output_.Poll();
  EXPECT_EQ(output_.Abort(), Outcome::kStopped);
  EXPECT_TRUE(absl::IsUnavailable(output_.CountPartitions(0).status()));
  const absl::Status begun = output_.Begin();
  EXPECT_THAT(begun.message(), HasSubstr("ssl.key.location"));
  EXPECT_FALSE(absl::IsAborted(begun) || absl::IsCancelled(begun)) << "that would be waited for";
}

TEST_F(OutputTest, APartitionThatIsMissingIsSaidWithTheRemedy) {
  ASSERT_OK(SharedClient().CreateTopic(options_.output, 1));
  ASSERT_OK(output_.Open({1'000'000, 1'000'000}));
  ASSERT_OK(output_.CountPartitions(0));
  ASSERT_OK(output_.Begin());
  ASSERT_FALSE(Produce("first", 1).ok());
  const std::string& why = output_.report().to_blame.at(0);
  EXPECT_THAT(why, HasSubstr(options_.output));
  EXPECT_THAT(why, HasSubstr("add partitions"));
  EXPECT_EQ(output_.Abort(), Outcome::kAborted);
}

// Where that is seen when the next transaction begins.
TEST_F(OutputTest, ATransactionThatCannotBeginSaysWhyThereIsNoOtherProducer) {
  ASSERT_NO_FATAL_FAILURE(BeginAndFence());
  ASSERT_TRUE(test::WaitUntil([&] { return !Produce("more").ok() || output_.Poll() != Failure::kNone; },
                              absl::Minutes(1)));
  TakeTheKeyAway();
  const absl::Status begun = output_.Begin();
  EXPECT_THAT(begun.message(), HasSubstr("ssl.key.location"));
}

// Without transactions what was given up may be there: it is written again, and nothing is lost for it.
TEST_F(OutputTest, AtLeastOnceDroppingUnacknowledgedRecordsLosesNoLaterOne) {
  options_.process.delivery = Delivery::kAtLeastOnce;
  Output output(options_, flows_, state_, consumer_);
  ASSERT_OK(SharedClient().CreateTopic(options_.output, 1));
  ASSERT_OK(output.Open({1'000'000, 1'000'000}));
  ASSERT_OK(output.CountPartitions(0));
  const auto produce = [&](const std::string& value) {
    OutputRecord record;
    record.value = value;
    return output.Write(record);
  };
  ASSERT_OK(output.Begin());
  ASSERT_OK(produce("first"));
  ASSERT_TRUE(
      test::WaitUntil([&] { return output.Poll() == Failure::kNone && Size() == 1; }, absl::Minutes(1)));
  wire_.proxy.SetLosingReplies(true);
  ASSERT_OK(produce("given up"));
  ASSERT_TRUE(test::WaitUntil([&] { return Size() == 2; }, absl::Minutes(1)));
  wire_.proxy.SetStalled(true);
  wire_.proxy.SetLosingReplies(false);
  wire_.proxy.Cut();
  EXPECT_EQ(output.Abort(), Outcome::kAborted);
  wire_.proxy.SetStalled(false);
  ASSERT_OK(output.Begin());
  ASSERT_OK(produce("second"));
  ASSERT_TRUE(
      test::WaitUntil([&] { return output.Poll() == Failure::kNone && Size() == 3; }, absl::Minutes(1)));
  EXPECT_EQ(Values(), (std::vector<std::string>{"first", "given up", "second"}));
}

// The broker writes the offsets of one request as one batch.
TEST(OffsetsTest, OfThousandsOfPartitionsAreMoreThanOneBatch) {
  test::KafkaBrokerOptions broker_options;
  broker_options.properties = {{"message.max.bytes", "300000"}};  // also of the offsets topic
  const auto broker = test::KafkaBroker::Start(broker_options);
  ASSERT_OK(broker);
  constexpr int32_t kPartitions = 100;
  const auto client = test::KafkaClient::Connect((*broker)->bootstrap());
  ASSERT_OK(client);
  ASSERT_OK((*client)->CreateTopic("input", kPartitions));
  DaemonOptions options;
  options.process.brokers = (*broker)->bootstrap();
  options.process.group = "group";
  options.process.instance = "test";
  options.input = "input";
  options.output = "output";
  Flows flows;
  flows.Add(std::make_unique<Flow>(options, nullptr));
  const StopFlag stop;
  WorkerState state(0, stop);
  Consumer consumer(options, flows, 0);
  ASSERT_OK(consumer.Open());
  consumer.TakeGeneration();  // of a group that it has not joined: the broker takes commits all the same
  Output output(options, flows, state, consumer);
  ASSERT_OK(output.Open({1'000'000, 1'000'000}));
  std::vector<Position> positions;
  const std::string metadata(3'900, 'm');
  for (int32_t partition = 0; partition < kPartitions; ++partition) {
    positions.push_back({{0, partition}, 0, metadata});
  }
  ASSERT_OK(output.Begin());
  EXPECT_EQ(output.Commit(positions), Outcome::kCommitted) << output.report().last_error;
}

// Brokers close idle connections. What they carried was answered, so nothing of it can come late.
TEST(IdleConnectionsTest, Rule27AConnectionThatIsClosedWhileItIsIdleRenewsNoProducer) {
  const auto wire = test::LateWire::Start();
  ASSERT_OK(wire);
  test::KafkaBrokerOptions broker_options;
  broker_options.properties = {{"connections.max.idle.ms", "1000"}};
  broker_options.proxied = {{"WIRE", (*wire)->port()}};
  const auto broker = test::KafkaBroker::Start(broker_options);
  ASSERT_OK(broker);
  (*wire)->Forward((*broker)->port("WIRE"));
  const auto client = test::KafkaClient::Connect((*broker)->bootstrap());
  ASSERT_OK(client);
  ASSERT_OK((*client)->CreateTopic("output", 1));
  DaemonOptions options;
  options.process.brokers = absl::StrCat("127.0.0.1:", (*wire)->port());
  options.process.group = "group";
  options.process.instance = "test";
  options.input = "input";
  options.output = "output";
  Flows flows;
  flows.Add(std::make_unique<Flow>(options, nullptr));
  const StopFlag stop;
  WorkerState state(0, stop);
  Consumer consumer(options, flows, 0);
  ASSERT_OK(consumer.Open());
  consumer.TakeGeneration();
  Output output(options, flows, state, consumer);
  ASSERT_OK(output.Open({1'000'000, 1'000'000}));
  const auto await_closing = [&] {
    const int present = (*wire)->opened();
    return test::WaitUntil([&] { return output.Poll() == Failure::kNone && (*wire)->closed() >= present; },
                           absl::Minutes(1));
  };
  for (int transaction = 0; transaction < 2; ++transaction) {
    ASSERT_OK(output.Begin());
    OutputRecord record;
    record.value = "value";
    ASSERT_OK(output.Write(record));
    ASSERT_TRUE(await_closing()) << "within the transaction";
    ASSERT_EQ(output.Commit({}), Outcome::kCommitted) << output.report().last_error;
    ASSERT_TRUE(await_closing()) << "after the transaction";
  }
  ASSERT_OK(output.Begin());
  EXPECT_EQ(output.renewals(), 0);
  EXPECT_EQ(output.fences(), 0);
}

// The coordinator forgets a transactional id that has had no transaction for transactional.id.expiration.ms,
// and refuses the offsets of one that goes on with its producer id (INVALID_PRODUCER_ID_MAPPING).
TEST(ExpiryTest, AfterATransactionalIdHasExpiredOffsetsAreCommittedByANewProducer) {
  test::KafkaBrokerOptions broker_options;
  broker_options.properties = {{"transactional.id.expiration.ms", "1500"},
                               {"transaction.remove.expired.transaction.cleanup.interval.ms", "200"}};
  const auto broker = test::KafkaBroker::Start(broker_options);
  ASSERT_OK(broker);
  const auto client = test::KafkaClient::Connect((*broker)->bootstrap());
  ASSERT_OK(client);
  ASSERT_OK((*client)->CreateTopic("input", 1));
  DaemonOptions options;
  options.process.brokers = (*broker)->bootstrap();
  options.process.group = "group";
  options.process.instance = "test";
  options.input = "input";
  options.output = "output";
  Flows flows;
  flows.Add(std::make_unique<Flow>(options, nullptr));
  const StopFlag stop;
  WorkerState state(0, stop);
  Consumer consumer(options, flows, 0);
  ASSERT_OK(consumer.Open());
  consumer.TakeGeneration();  // of a group that it has not joined: the broker takes commits all the same
  Output output(options, flows, state, consumer);
  ASSERT_OK(output.Open({1'000'000, 1'000'000}));
  ASSERT_OK(output.Begin());
  ASSERT_EQ(output.Commit({{{0, 0}, 1, ""}}), Outcome::kCommitted) << output.report().last_error;
  // A record without a value deletes the id.
  ASSERT_TRUE(test::WaitUntil(
      [&] {
        const auto states = (*client)->ReadAll("__transaction_state", Isolation::kReadUncommitted);
        return states.ok() && std::any_of(states->begin(), states->end(),
                                          [](const test::Record& each) { return !each.value.has_value(); });
      },
      absl::Minutes(1)));
  ASSERT_OK(output.Begin());
  EXPECT_EQ(output.Commit({{{0, 0}, 2, ""}}), Outcome::kAborted);
  ASSERT_OK(output.Begin());
  EXPECT_EQ(output.Commit({{{0, 0}, 2, ""}}), Outcome::kCommitted) << output.report().last_error;
}

// Also where brokers make every topic that a producer writes to, with their number of partitions, and not
// compacted.
TEST(TopicsTest, AreNotMadeByWritingToThem) {
  test::KafkaBrokerOptions broker_options;
  broker_options.properties = {{"auto.create.topics.enable", "true"}};
  const auto broker = test::KafkaBroker::Start(broker_options);
  ASSERT_OK(broker);
  DaemonOptions options;
  options.process.brokers = (*broker)->bootstrap();
  const auto producer = BaseConfig(options).Set("message.timeout.ms", "3000").MakeProducer();
  ASSERT_OK(producer);
  ASSERT_EQ(rd_kafka_producev(producer->get(), RD_KAFKA_V_TOPIC("nowhere"), RD_KAFKA_V_VALUE(nullptr, 0),
                              RD_KAFKA_V_END),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(rd_kafka_flush(producer->get(), 60'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  const auto consumer = BaseConfig(options).MakeConsumer();
  ASSERT_OK(consumer);
  const auto partitions = CountPartitions(consumer->get(), "nowhere", 10'000);
  EXPECT_TRUE(absl::IsNotFound(partitions.status())) << partitions.status();
}

}  // namespace
}  // namespace lethe::kafka
