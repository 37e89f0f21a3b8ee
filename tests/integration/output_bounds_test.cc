// What the output does not take, or takes slowly: no record stops a lane, and no refusal or quota makes it
// crawl.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/flow.h"
#include "tests/support/process.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

// Text that hardly compresses.
std::string Noise(size_t bytes, uint64_t seed = 1) {
  std::string text;
  text.reserve(bytes + 16);
  while (text.size() < bytes) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    absl::StrAppend(&text, absl::Hex(seed, absl::kZeroPad16));
  }
  text.resize(bytes);
  return text;
}

Record WithText(const std::string& id, std::string text) {
  Record record = WithId(id);
  record.value = absl::StrCat(R"({"id":")", id, R"(","text":")", text, R"("})");
  return record;
}

double Verdicts(const Daemon& daemon, const std::string& verdict) {
  return daemon.Metric("lethe_records_total", {absl::StrCat("verdict=\"", verdict, "\"")});
}

// The client's queue is as large as the records that the topics take.
TEST(OutputBoundsTest, Rule23ARecordLargerThanTheUsualQueueIsDelivered) {
  const KafkaClient::Configs large = {{"max.message.bytes", "95000000"}};
  Flow flow({LETHE_PROGRAM, 1, large, large});
  flow.Send({{WithId("a"), WithText("large", Noise(70'000'000)), WithId("b")}});
  const Finished finished = flow.RunToEnd();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(flow.ExactlyOnce());
}

// Where the queue is too small all the same, the record fails alone.
TEST(OutputBoundsTest, Rule23ARecordThatTheClientsQueueNeverTakesIsUndeliverable) {
  const KafkaClient::Configs large = {{"max.message.bytes", "4000000"}};
  Flow flow({LETHE_PROGRAM, 1, large, large});
  flow.Send({{WithId("a"), WithText("large", Noise(2'000'000)), WithId("b")}});
  const auto daemon = flow.Start({"--kafka=queue.buffering.max.kbytes=1024"});
  ASSERT_TRUE(AwaitJudged(*daemon, 3)) << daemon->Log();
  EXPECT_EQ(Verdicts(*daemon, "undeliverable"), 1);
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.OutputIds(), (std::vector<std::string>{"a", "b"}));
}

// Batches fit the output's segments, and a record that does not is refused (RECORD_LIST_TOO_LARGE).
TEST(OutputBoundsTest, Rule4ARecordLargerThanTheOutputsSegmentIsUndeliverable) {
  Flow flow({LETHE_PROGRAM, 1, {}, {{"segment.bytes", "20000"}}});
  std::vector<Record> records;
  for (uint64_t i = 0; i < 500; ++i) {
    records.push_back(WithText(absl::StrCat(i), Noise(i == 100 ? 30'000 : 200, i + 1)));
  }
  flow.Send(records);
  const auto daemon = flow.Start({"--kafka=compression.type=none"});
  ASSERT_TRUE(AwaitJudged(*daemon, records.size())) << daemon->Log();
  EXPECT_EQ(Verdicts(*daemon, "undeliverable"), 1);
  EXPECT_LE(daemon->Metric("lethe_transactions_aborted_total"), 1);
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.Output().size(), records.size() - 1);
}

TEST(OutputBoundsTest, Rule4ARecordWithoutAKeyIsUndeliverableToACompactedTopic) {
  Flow flow({LETHE_PROGRAM, 1, {}, {{"cleanup.policy", "compact"}}});
  std::vector<Record> records = {WithId("a"), WithId("b")};
  records[0].key = "k";
  records[1].key.reset();
  flow.Send(records);
  const auto daemon = flow.Start();
  ASSERT_TRUE(AwaitJudged(*daemon, records.size())) << daemon->Log();
  EXPECT_EQ(Verdicts(*daemon, "undeliverable"), 1);
  EXPECT_TRUE(daemon->AwaitLog("perhaps because it has no key, and the topic is compacted; dropped"));
  EXPECT_TRUE(daemon->AwaitLog("it refuses records without a key, and compaction deletes earlier events"));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.OutputIds(), std::vector<std::string>{"a"});
}

// One record in a hundred has a timestamp that the output refuses. They are found together, and later ones
// are known by the topic's settings: few transactions are aborted, however many there are. Nothing else is
// lost by it: a copy of a refused record with a good timestamp is the first of its id that goes out.
TEST(OutputBoundsTest, Rule4ManyRefusedTimestampsCostFewAborts) {
  Flow flow({LETHE_PROGRAM, 1, {}, {{"message.timestamp.before.max.ms", "3600000"}}});
  const int64_t now = absl::ToUnixMillis(absl::Now());
  constexpr int kRecords = 50'000;
  std::vector<Record> records;
  std::vector<std::string> expected;
  int refused = 0;
  for (int i = 0; i < kRecords; ++i) {
    const std::string id = absl::StrCat(i);
    if (i % 100 == 50) {
      records.push_back(WithId(id, 0, now - 7'200'000 - i));
      records.push_back(WithId(absl::StrCat(i - 1), 0, now - 7'200'000));  // a copy of a good one
      ++refused;
    }
    if (i % 1000 == 50) continue;  // of some there is no good copy
    expected.push_back(id);
    records.push_back(WithId(id, 0, now));
  }
  flow.Send(records);
  const absl::Time begin = SteadyNow();
  const auto daemon = flow.Start();
  ASSERT_TRUE(AwaitJudged(*daemon, records.size())) << daemon->Log();
  const double seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  EXPECT_EQ(Verdicts(*daemon, "undeliverable"), refused);
  EXPECT_EQ(Verdicts(*daemon, "duplicate"), refused);
  std::cout << kRecords / seconds << " records/s\n";
  // One for each time that the broker is asked again, and a few where several batches were on their way.
  EXPECT_LE(daemon->Metric("lethe_transactions_aborted_total"), 5 + seconds) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.OutputIds(), expected);
}

// The input took it compressed; so does the output, if it is compressed well enough.
TEST(OutputBoundsTest, ARecordThatFitsOnlyByABetterCodecIsDelivered) {
  Flow flow({LETHE_PROGRAM, 1, {{"max.message.bytes", "3000000"}}, {}});
  // Of 16 different characters, which lz4 does not make much smaller, and zstd halves.
  flow.Send({{WithId("a"), WithText("large", Noise(1'400'000)), WithId("b")}});
  const auto daemon = flow.Start();
  ASSERT_TRUE(AwaitJudged(*daemon, 3)) << daemon->Log();
  EXPECT_EQ(Verdicts(*daemon, "undeliverable"), 0) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
  // A codec that the user names stays.
  Flow by_lz4({LETHE_PROGRAM, 1, {{"max.message.bytes", "3000000"}}, {}});
  by_lz4.Send({{WithId("a"), WithText("large", Noise(1'400'000)), WithId("b")}});
  EXPECT_EQ(by_lz4.RunToEnd({"--kafka=compression.type=lz4"}).exit_code, 0);
  EXPECT_EQ(by_lz4.OutputIds(), (std::vector<std::string>{"a", "b"}));
}

// Has the broker slow the clients of this id down.
void SetQuota(const std::string& client, int produced_per_second, int fetched_per_second) {
  ProcessOptions tool;
  tool.args = {
      "java",
      "-Xmx128m",
      "-XX:TieredStopAtLevel=1",
      "-XX:+UseSerialGC",
      "-cp",
      absl::StrCat(LETHE_KAFKA_LIBS, "/*"),
      "kafka.admin.ConfigCommand",
      "--bootstrap-server",
      SharedBroker().bootstrap(),
      "--alter",
      "--entity-type",
      "clients",
      "--entity-name",
      client,
      "--add-config",
      absl::StrCat("producer_byte_rate=", produced_per_second, ",consumer_byte_rate=", fetched_per_second)};
  const auto finished = RunToEnd(tool, absl::Minutes(1));
  ASSERT_OK(finished);
  ASSERT_EQ(finished->exit_code, 0) << finished->out << finished->err;
}

// Whatever the quota is, and when it changes: nothing is aborted, four fifths of it are used, and lethe says
// what holds it back.
TEST(OutputBoundsTest, Rule22AnOutputUnderAQuotaGetsWhatItTakes) {
  Flow flow({LETHE_PROGRAM, 4, {}, {}});  // three of them stay empty
  const std::string client = flow.group();
  constexpr int kRecords = 30'000;
  {
    std::vector<Record> records;
    for (int i = 0; i < kRecords; ++i) {
      records.push_back(WithText(absl::StrCat(i), Noise(950, static_cast<uint64_t>(i) + 1)));
    }
    flow.Send(records);
  }
  constexpr int kFetched = 1'000'000;  // enough
  SetQuota(client, 200'000, kFetched);
  const auto daemon = flow.Start({"--kafka=client.id=" + client, "--kafka=compression.type=none"});
  ASSERT_TRUE(daemon->AwaitReady());
  const auto committed = [&] { return flow.Committed()[0].offset; };
  // The quota's window lets a burst of ten seconds by.
  ASSERT_TRUE(daemon->Await([&] { return committed() > 2500; })) << daemon->Log();
  for (const int rate : {200'000, 500'000}) {
    if (rate != 200'000) SetQuota(client, rate, kFetched);
    const int64_t before = committed();
    ASSERT_TRUE(daemon->Await([&] { return committed() > before; })) << daemon->Log();
    // Long enough that a commit of two seconds more or less does not matter.
    const int64_t first = committed();
    const absl::Time begin = SteadyNow();
    ASSERT_TRUE(daemon->Await([&] { return committed() >= first + rate * 15 / 1000; })) << daemon->Log();
    const double bytes = static_cast<double>(committed() - first) * 1000;
    const double used = bytes / rate / absl::ToDoubleSeconds(SteadyNow() - begin);
    std::cout << rate << " bytes/s: " << 100 * used << " % of the quota\n";
    EXPECT_GE(used, 0.8) << rate;
  }
  for (const char* name : {"consumer", "producer"}) {
    EXPECT_GT(daemon->Metric("lethe_client_throttled_seconds_total", {absl::StrCat("client=\"", name, "\"")}),
              1)
        << name;
  }
  // The partitions share one queue.
  const double queued = daemon->Metric("lethe_client_queued_records", {"client=\"consumer\""});
  EXPECT_GT(queued, 1000);
  EXPECT_LT(queued, kRecords);
  EXPECT_TRUE(
      daemon->Await([&] { return !absl::StrContains(daemon->Get("/status").body, "\"remarks\":[]"); }));
  EXPECT_EQ(daemon->Metric("lethe_transactions_aborted_total"), 0) << daemon->Log();
  EXPECT_LT(committed(), kRecords) << "there was not enough to write";
  // It is killed: a throttled broker may take longer to answer than a stop has time.
}

}  // namespace
}  // namespace lethe::test
