// The broker and the client that other tests rest on: what they say of a cluster must be true.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;

using Strings = std::vector<std::string>;
using Offsets = std::vector<int64_t>;

std::vector<Record> Numbered(int count, const std::string& prefix, int32_t partition = -1) {
  std::vector<Record> records(static_cast<size_t>(count));
  for (size_t i = 0; i < records.size(); ++i) {
    records[i].key = absl::StrCat(prefix, i);
    records[i].value = absl::StrCat("value of ", prefix, i);
    records[i].partition = partition;
  }
  return records;
}

std::vector<std::string> Keys(const std::vector<Record>& records) {
  std::vector<std::string> keys;
  for (const Record& record : records) keys.push_back(record.key.value_or("(null)"));
  return keys;
}

bool Exists(pid_t pid) { return kill(pid, 0) == 0; }

TEST(KafkaClientTest, RecordsComeBackAsTheyWereProduced) {
  const std::string topic = UniqueName("as-produced");
  ASSERT_OK(SharedClient().CreateTopic(topic, 3, {{"retention.ms", "-1"}}));
  Record full;
  full.key = std::string("k\0ey", 4);
  full.value = std::string("va\0lue", 6);
  full.headers = {{"a", "1"}, {"a", std::nullopt}, {"empty", ""}};
  full.timestamp_ms = 1'442'016'000'123;
  full.partition = 2;
  Record null_value;
  null_value.key = "";
  null_value.timestamp_ms = 1;
  null_value.partition = 1;
  Record null_key;
  null_key.value = "";
  null_key.timestamp_ms = 2;
  null_key.partition = 1;
  ASSERT_OK(SharedClient().Produce(topic, {full, null_value, null_key}));

  const auto read = SharedClient().ReadAll(topic, Isolation::kReadCommitted);
  ASSERT_OK(read);
  ASSERT_EQ(read->size(), 3u);
  const std::vector<Record> expected = {null_value, null_key, full};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*read)[i].key, expected[i].key);
    EXPECT_EQ((*read)[i].value, expected[i].value);
    EXPECT_EQ((*read)[i].headers, expected[i].headers);
    EXPECT_EQ((*read)[i].timestamp_ms, expected[i].timestamp_ms);
    EXPECT_EQ((*read)[i].partition, expected[i].partition);
  }
  EXPECT_EQ((*read)[1].offset, 1);
}

TEST(KafkaClientTest, BatchesKeepTheirOrderAndKeysTheirPartition) {
  const std::string topic = UniqueName("order");
  ASSERT_OK(SharedClient().CreateTopic(topic, 4));
  std::vector<Record> records;
  for (int i = 0; i < 150'000; ++i) {
    Record record;
    record.key = absl::StrCat("key ", i % 100);
    record.value = absl::StrCat(i);
    records.push_back(std::move(record));
  }
  ASSERT_OK(SharedClient().Produce(topic, records));
  const auto read = SharedClient().ReadAll(topic, Isolation::kReadCommitted);
  ASSERT_OK(read);
  ASSERT_EQ(read->size(), records.size());
  std::map<int32_t, int> last;
  std::map<std::string, int32_t> partition_of;
  for (const Record& record : *read) {
    const int number = std::stoi(*record.value);
    EXPECT_LT(last.try_emplace(record.partition, -1).first->second, number);
    last[record.partition] = number;
    EXPECT_EQ(partition_of.try_emplace(*record.key, record.partition).first->second, record.partition);
  }
  EXPECT_EQ(last.size(), 4u);
}

TEST(KafkaClientTest, AnOpenTransactionIsInvisibleUntilItIsCommitted) {
  const std::string topic = UniqueName("open");
  ASSERT_OK(SharedClient().CreateTopic(topic, 1));
  const auto producer = TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("producer"));
  ASSERT_OK(producer);
  ASSERT_OK(SharedClient().Produce(topic, Numbered(2, "before", 0)));
  ASSERT_OK((*producer)->Begin());
  ASSERT_OK((*producer)->Produce(topic, Numbered(1, "inside", 0)));
  ASSERT_OK(SharedClient().Produce(topic, Numbered(1, "after", 0)));

  const auto keys = [&](Isolation isolation) {
    const auto read = SharedClient().ReadAll(topic, isolation);
    EXPECT_OK(read);
    return Keys(*read);
  };
  const auto ends = [&](Isolation isolation) { return SharedClient().EndOffsets(topic, isolation).value(); };
  EXPECT_EQ(keys(Isolation::kReadCommitted), (Strings{"before0", "before1"}));
  EXPECT_EQ(keys(Isolation::kReadUncommitted), (Strings{"before0", "before1", "inside0", "after0"}));
  EXPECT_EQ(ends(Isolation::kReadCommitted), Offsets{2});
  EXPECT_EQ(ends(Isolation::kReadUncommitted), Offsets{4});

  ASSERT_OK((*producer)->Commit());
  EXPECT_EQ(Keys(*SharedClient().ReadSettled(topic)), (Strings{"before0", "before1", "inside0", "after0"}));
  EXPECT_EQ(ends(Isolation::kReadCommitted), Offsets{5}) << "the transaction's marker takes an offset";
}

TEST(KafkaClientTest, AbortedRecordsStayInvisible) {
  const std::string topic = UniqueName("aborted");
  ASSERT_OK(SharedClient().CreateTopic(topic, 2));
  const auto producer = TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("producer"));
  ASSERT_OK(producer);
  ASSERT_OK((*producer)->Begin());
  ASSERT_OK((*producer)->Produce(topic, Numbered(3, "aborted", 0)));
  ASSERT_OK((*producer)->Abort());
  ASSERT_OK((*producer)->Begin());
  ASSERT_OK((*producer)->Produce(topic, Numbered(1, "committed", 1)));
  ASSERT_OK((*producer)->Commit());
  EXPECT_EQ(Keys(*SharedClient().ReadSettled(topic)), Strings{"committed0"});
  EXPECT_EQ(SharedClient().ReadAll(topic, Isolation::kReadUncommitted)->size(), 4u);
}

TEST(KafkaClientTest, CommittedOffsetsCarryTheirMetadata) {
  const std::string topic = UniqueName("offsets");
  const std::string group = UniqueName("group");
  ASSERT_OK(SharedClient().CreateTopic(topic, 2));
  const auto none = SharedClient().Committed(group, topic);
  ASSERT_OK(none);
  EXPECT_EQ((*none)[0].offset, -1);

  const auto producer = TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("producer"));
  ASSERT_OK(producer);
  const std::string story(3500, 'm');
  ASSERT_OK((*producer)->Begin());
  ASSERT_OK((*producer)->SendOffsets(group, topic, {{7, ""}, {9, story}}));
  ASSERT_OK((*producer)->Commit());
  const auto committed = SharedClient().Committed(group, topic);
  ASSERT_OK(committed);
  ASSERT_EQ(committed->size(), 2u);
  EXPECT_EQ((*committed)[0].offset, 7);
  EXPECT_EQ((*committed)[0].metadata, "");
  EXPECT_EQ((*committed)[1].offset, 9);
  EXPECT_EQ((*committed)[1].metadata, story);
}

TEST(KafkaClientTest, TopicsGrowAndGo) {
  const std::string topic = UniqueName("grows");
  ASSERT_OK(SharedClient().CreateTopic(topic, 1));
  EXPECT_FALSE(SharedClient().CreateTopic(topic, 1).ok());
  ASSERT_OK(SharedClient().AddPartitions(topic, 3));
  EXPECT_EQ(*SharedClient().EndOffsets(topic, Isolation::kReadCommitted), Offsets(3, 0));
  ASSERT_OK(SharedClient().Produce(topic, Numbered(1, "x", 2)));
  EXPECT_EQ(SharedClient().ReadAll(topic, Isolation::kReadCommitted)->size(), 1u);
  ASSERT_OK(SharedClient().DeleteTopic(topic));
  EXPECT_FALSE(SharedClient().ReadAll(topic, Isolation::kReadCommitted).ok());
}

TEST(KafkaClientTest, ARecordThatTheBrokerRefusesIsAnError) {
  const std::string topic = UniqueName("small");
  ASSERT_OK(SharedClient().CreateTopic(topic, 1, {{"max.message.bytes", "1000"}}));
  Record record;
  record.value = std::string(5000, 'x');
  EXPECT_FALSE(SharedClient().Produce(topic, {record}).ok());
}

TEST(KafkaBrokerTest, KeepsItsDataThroughRestartsAndIsGoneAfterStop) {
  KafkaBrokerOptions options;
  options.properties = {{"message.max.bytes", "2000"}};
  auto broker = KafkaBroker::Start(options);
  ASSERT_OK(broker);
  const std::string bootstrap = (*broker)->bootstrap();
  const pid_t first = (*broker)->pid();
  {
    const auto client = KafkaClient::Connect(bootstrap);
    ASSERT_OK(client);
    ASSERT_OK((*client)->CreateTopic("kept", 1));
    ASSERT_OK((*client)->Produce("kept", Numbered(10, "a")));
    Record record;
    record.value = std::string(5000, 'x');
    EXPECT_FALSE((*client)->Produce("kept", {record}).ok()) << "the broker's extra property was not used";
  }
  ASSERT_OK((*broker)->Stop());
  EXPECT_FALSE(Exists(first));
  EXPECT_FALSE((*broker)->Stop().ok());
  ASSERT_OK((*broker)->Restart());
  EXPECT_EQ((*broker)->bootstrap(), bootstrap);
  {
    const auto client = KafkaClient::Connect(bootstrap);
    ASSERT_OK(client);
    EXPECT_EQ((*client)->ReadAll("kept", Isolation::kReadCommitted)->size(), 10u);
    ASSERT_OK((*client)->Produce("kept", Numbered(10, "b")));
  }
  const pid_t second = (*broker)->pid();
  ASSERT_OK((*broker)->Kill());
  EXPECT_FALSE(Exists(second));
  ASSERT_OK((*broker)->Restart());
  const auto client = KafkaClient::Connect(bootstrap);
  ASSERT_OK(client);
  EXPECT_EQ((*client)->ReadAll("kept", Isolation::kReadCommitted)->size(), 20u);

  const pid_t third = (*broker)->pid();
  broker->reset();
  EXPECT_FALSE(Exists(third));
}

TEST(KafkaBrokerTest, SaysWhyItDoesNotStart) {
  KafkaBrokerOptions options;
  options.properties = {{"num.io.threads", "none"}};
  const auto broker = KafkaBroker::Start(options);
  ASSERT_FALSE(broker.ok());
  EXPECT_THAT(broker.status().message(), HasSubstr("num.io.threads"));
}

// Each fault of the wire, as a client sees it whose every connection goes through it.
TEST(TcpProxyTest, EachFaultIsSeenAndEnds) {
  const auto proxy = TcpProxy::Start();
  ASSERT_OK(proxy);
  const int port = (*proxy)->Listen().value();
  KafkaBrokerOptions options;
  options.proxied = {{"CLIENT", port}};
  const auto broker = KafkaBroker::Start(options);
  ASSERT_OK(broker);
  (*proxy)->Forward(port, (*broker)->port("CLIENT"));
  const auto direct = KafkaClient::Connect((*broker)->bootstrap()).value();
  const auto proxied = KafkaClient::Connect(absl::StrCat("127.0.0.1:", port)).value();
  ASSERT_OK(direct->CreateTopic("t", 1));
  const auto sent = [&](const std::string& key) { return proxied->Produce("t", Numbered(1, key)); };
  const auto size = [&] { return direct->EndOffsets("t", Isolation::kReadUncommitted).value()[0]; };
  EXPECT_OK(sent("plain"));
  EXPECT_EQ(size(), 1);

  (*proxy)->Cut();
  EXPECT_OK(sent("cut"));

  (*proxy)->SetDelay(absl::Milliseconds(150));
  const absl::Time begin = SteadyNow();
  EXPECT_OK(sent("late"));
  EXPECT_GE(SteadyNow() - begin, absl::Milliseconds(300));  // there and back
  (*proxy)->SetDelay(absl::ZeroDuration());

  (*proxy)->SetStalled(true);
  std::thread stalled([&] { EXPECT_OK(sent("stalled")); });
  absl::SleepFor(absl::Milliseconds(200));
  EXPECT_EQ(size(), 3);
  (*proxy)->SetStalled(false);
  stalled.join();
  EXPECT_EQ(size(), 4);

  // The record arrives, and the client does not know.
  (*proxy)->SetLosingReplies(true);
  std::thread lost([&] { EXPECT_OK(sent("lost")); });
  EXPECT_TRUE(WaitUntil([&] { return size() == 5 && (*proxy)->lost_bytes() > 0; }, absl::Minutes(1)));
  (*proxy)->SetLosingReplies(false);
  lost.join();
  EXPECT_EQ(Keys(*direct->ReadAll("t", Isolation::kReadCommitted)),
            (Strings{"plain0", "cut0", "late0", "stalled0", "lost0"}));
}

TEST(KafkaBrokerTest, ThreeGoOnWithoutOne) {
  KafkaBrokerOptions options;
  options.heap = "256m";
  auto brokers = KafkaBroker::StartCluster({options, options, options});
  ASSERT_OK(brokers);
  const std::string bootstrap = absl::StrCat((*brokers)[0]->bootstrap(), ",", (*brokers)[1]->bootstrap(), ",",
                                             (*brokers)[2]->bootstrap());
  const auto client = KafkaClient::Connect(bootstrap).value();
  ASSERT_OK(client->CreateTopic("t", 3));
  const auto sent = [&](const std::string& key) { return client->Produce("t", Numbered(30, key)); };
  ASSERT_EQ(sent("a"), absl::OkStatus());
  const int32_t leader = client->Leaders("t").value()[0];
  KafkaBroker& killed = *(*brokers)[static_cast<size_t>(leader - 1)];
  EXPECT_EQ(killed.id(), leader);
  ASSERT_OK(killed.Kill());
  ASSERT_EQ(sent("b"), absl::OkStatus());
  EXPECT_NE(client->Leaders("t").value()[0], leader);
  EXPECT_EQ(client->ReadAll("t", Isolation::kReadCommitted)->size(), 60u);
  ASSERT_OK(killed.Restart());
  // It serves, and the other two hear of it one after the other.
  EXPECT_TRUE(
      WaitUntil([&] { return client->BrokerCount(absl::Minutes(1)).value() == 3; }, absl::Minutes(1)));
}

}  // namespace
}  // namespace lethe::test
