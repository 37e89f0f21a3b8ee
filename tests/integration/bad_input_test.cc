// What a stream can have in it that it should not have, topics that do not fit, and a broker that is away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/flow.h"
#include "tests/support/free_port.h"
#include "tests/support/pipeline.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

FlowOptions Options(int partitions = 1, KafkaClient::Configs input = {}, KafkaClient::Configs output = {}) {
  return {LETHE_PROGRAM, partitions, std::move(input), std::move(output)};
}

Record WithValue(std::optional<std::string> value, int32_t partition = 0) {
  Record record;
  record.key = "k";
  record.value = std::move(value);
  record.partition = partition;
  return record;
}

// Succeeds if both are the same records, in the same order, wherever they are.
testing::AssertionResult SameRecords(const std::vector<Record>& expected, const std::vector<Record>& actual) {
  for (size_t i = 0; i < std::max(expected.size(), actual.size()); ++i) {
    if (i >= actual.size()) {
      return testing::AssertionFailure() << actual.size() << " records, not " << expected.size();
    }
    if (i >= expected.size()) return testing::AssertionFailure() << "one too many: " << *actual[i].value;
    const Record& a = expected[i];
    const Record& b = actual[i];
    const char* other = a.key != b.key                     ? "key"
                        : a.value != b.value               ? "value"
                        : a.headers != b.headers           ? "headers"
                        : a.timestamp_ms != b.timestamp_ms ? "timestamp"
                        : a.partition != b.partition       ? "partition"
                                                           : nullptr;
    if (other != nullptr) {
      return testing::AssertionFailure() << "the " << other << " of record " << i << " (offset " << a.offset
                                         << " of the input) is another";
    }
  }
  return testing::AssertionSuccess();
}

double Verdicts(const Daemon& daemon, const std::string& verdict) {
  return daemon.Metric("lethe_records_total", {absl::StrCat("verdict=\"", verdict, "\"")});
}

TEST(BadInputTest, RecordsWithoutAUsableIdPassUnchangedAndAreCounted) {
  const KafkaClient::Configs large = {{"max.message.bytes", "2097152"}};
  Flow flow(Options(2, large, large));
  const std::string mebibyte(1 << 20, 'x');
  struct Case {
    std::string verdict;
    Record record;
  };
  std::vector<Case> cases = {
      {"missing_id", WithValue(R"({"x":1})")},
      {"missing_id", WithValue(R"({"id":null})")},
      {"missing_id", WithValue(R"({"id":true})")},
      {"missing_id", WithValue(R"({"id":{"id":"a"}})")},
      {"missing_id", WithValue(R"({"id":["a"]})")},
      {"missing_id", WithValue(R"({"id":""})")},
      {"missing_id", WithValue(R"({"id":"\ud800"})")},
      {"missing_id", WithValue(R"(["id","a"])")},
      {"missing_id", WithValue(std::nullopt)},
      {"malformed", WithValue("")},
      {"malformed", WithValue(R"({"id":"a")")},
      {"malformed", WithValue(R"({"id":"a"}})")},
      {"malformed", WithValue("no JSON")},
      {"malformed", WithValue(std::string("\0\xff\x80", 3))},
      {"unique", WithValue(R"({"id":"17"})")},
      {"unique", WithValue(R"({"id":17})")},
      {"duplicate", WithValue(R"({"id":17})")},
      {"unique", WithValue(absl::StrCat(R"({"id":")", mebibyte, R"("})"))},
      {"duplicate", WithValue(absl::StrCat(R"({"id":")", mebibyte, R"("})"))},
      {"unique", WithValue(absl::StrCat(R"({"id":")", mebibyte, R"(y"})"))},
  };
  Record odd = WithValue(R"({"id":"odd"})");
  odd.key = std::nullopt;
  odd.headers = {
      {"a", "1"}, {"null", std::nullopt}, {"empty", ""}, {"a", "2"}, {"bytes", std::string("\0\n", 2)}};
  odd.timestamp_ms = 1;
  cases.push_back({"unique", odd});
  odd.value = std::nullopt;
  odd.key = "";
  odd.timestamp_ms = 4'102'444'800'000;  // the year 2100
  cases.push_back({"missing_id", odd});
  cases.push_back({"missing_id", odd});  // each passes: nothing says that they are the same

  std::map<std::string, int> expected_counts;
  std::vector<Record> records;
  for (int32_t partition : {1, 0}) {
    for (Case& one : cases) {
      one.record.partition = partition;
      records.push_back(one.record);
      ++expected_counts[one.verdict];
    }
  }
  flow.Send(records);
  const auto daemon = flow.Start();
  ASSERT_TRUE(AwaitJudged(*daemon, records.size()));
  for (const auto& [verdict, count] : expected_counts)
    EXPECT_EQ(Verdicts(*daemon, verdict), count) << verdict;
  EXPECT_EQ(daemon->Metric("lethe_records_total", {"partition=\"1\""}), static_cast<double>(cases.size()));
  // Now and then one is named.
  EXPECT_THAT(daemon->Log(), AnyOf(HasSubstr(absl::StrCat(flow.input(), "-0 offset 0: passed without")),
                                   HasSubstr(absl::StrCat(flow.input(), "-1 offset 0: passed without"))));
  EXPECT_TRUE(daemon->Stop());

  std::vector<Record> expected;
  const std::vector<Record> input = flow.Input();
  ASSERT_EQ(input.size(), records.size());
  for (size_t i = 0; i < input.size(); ++i) {
    if (cases[i % cases.size()].verdict != "duplicate") expected.push_back(input[i]);
  }
  EXPECT_TRUE(SameRecords(expected, flow.Output()));
  EXPECT_EQ(flow.RunToEnd().exit_code, 0);
  EXPECT_TRUE(SameRecords(expected, flow.Output()));
}

// Whatever the broker takes is delivered, whatever it refuses is counted, with the rest of its batch
// unharmed. `twin` has the output's configuration: it says which is which.
void RunWithRefusals(Flow& flow, const KafkaClient::Configs& output, const std::vector<Record>& records,
                     Args args = {}) {
  args.emplace_back("--kafka=compression.type=none");  // as the twin's records are
  const std::string twin = UniqueName("twin");
  ASSERT_OK(SharedClient().CreateTopic(twin, 1, output));
  flow.Send(records);
  std::vector<Record> expected;
  std::vector<int64_t> refused;
  for (const Record& record : flow.Input()) {
    if (SharedClient().Produce(twin, {&record, 1}).ok()) {
      expected.push_back(record);
    } else {
      refused.push_back(record.offset);
    }
  }
  ASSERT_FALSE(refused.empty());
  ASSERT_FALSE(expected.empty());
  const absl::Time start = SteadyNow();
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(AwaitJudged(*daemon, records.size()));
  EXPECT_EQ(Verdicts(*daemon, "undeliverable"), static_cast<double>(refused.size()));
  EXPECT_EQ(Verdicts(*daemon, "unique"), static_cast<double>(expected.size()));
  // The first is told, and after that one in five seconds, however many there are, and however often they are
  // judged again.
  const auto most = static_cast<size_t>((SteadyNow() - start) / absl::Seconds(5)) + 1;
  std::vector<std::string> told = absl::StrSplit(daemon->Log(), '\n');
  std::erase_if(told, [](const std::string& line) { return !absl::StrContains(line, ": undeliverable: "); });
  EXPECT_GE(told.size(), 1u);
  EXPECT_LE(told.size(), most);
  for (const std::string& line : told) {
    EXPECT_TRUE(std::any_of(refused.begin(), refused.end(), [&](int64_t offset) {
      return absl::StrContains(line, absl::StrCat(flow.input(), "-0 offset ", offset, ": "));
    })) << line;
  }
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(SameRecords(expected, flow.Output()));
  EXPECT_EQ(flow.Committed()[0].offset, static_cast<int64_t>(records.size()));
}

std::vector<Record> OfManySizes() {
  std::vector<Record> records;
  // Around the limit: some are too large for the client, some for the broker only, and many fill a batch.
  for (int i = 0; i < 300; ++i) {
    const size_t size = i % 60 == 7 ? 1850 + static_cast<size_t>(i) / 2 : i % 7 == 0 ? 1800 : 100;
    const std::string id = absl::StrCat(i, "-");
    records.push_back(WithId(id + std::string(size - id.size(), 'x')));
    records.back().key.emplace(1, 'k');
  }
  records.push_back(WithId(std::string(10'000, 'x')));
  records.push_back(WithId(std::string(10'000, 'x')));  // nothing of it is out, so this is no duplicate
  records.push_back(WithId("last"));
  return records;
}

TEST(BadInputTest, Rule4RecordsThatAreTooLargeForTheOutput) {
  const KafkaClient::Configs small = {{"max.message.bytes", "2000"}};
  Flow flow(Options(1, {}, small));
  RunWithRefusals(flow, small, OfManySizes(), {});
}

// What could not be written was not passed: the retry that fits passes, also after a restart.
TEST(BadInputTest, Rule4ARestartDoesNotRememberWhatWasRefused) {
  Flow flow(Options(1, {}, {{"max.message.bytes", "2000"}}));
  flow.SendIds("a", 1, 20);
  flow.Send({{WithValue(absl::StrCat(R"({"id":"x","padding":")", Incompressible(5000), "\"}"))}});
  flow.SendIds("b", 1, 20);
  ASSERT_EQ(flow.RunToEnd().exit_code, 0);
  EXPECT_EQ(flow.OutputIds().size(), 40u);
  flow.SendIds("x", 0, 0);
  flow.Send({{WithValue(R"({"id":"x"})"), WithValue(R"({"id":"x"})")}});
  ASSERT_EQ(flow.RunToEnd().exit_code, 0);
  EXPECT_EQ(flow.OutputIds().size(), 42u);  // x0, and x once
  flow.Send({{WithValue(R"({"id":"x"})")}});
  ASSERT_EQ(flow.RunToEnd().exit_code, 0);
  EXPECT_EQ(flow.OutputIds().size(), 42u);
}

TEST(BadInputTest, RecordsThatAreTooLargeForTheOutputAtLeastOnce) {
  const KafkaClient::Configs small = {{"max.message.bytes", "2000"}};
  Flow flow(Options(1, {}, small));
  flow.Send(OfManySizes());
  EXPECT_EQ(flow.RunToEnd({"--delivery=at_least_once"}).exit_code, 0);
  // What came before a refused record in its batch may be out again; nothing is missing.
  std::vector<std::string> ids = flow.OutputIds();
  for (const Record& record : flow.Input()) {
    if (record.value->size() > 1850) continue;
    EXPECT_NE(std::find(ids.begin(), ids.end(), JsonId(record)), ids.end()) << record.offset;
  }
}

// Nothing is sent before the end, and then there is no time to find out which record it is that is refused:
// what was open is given up, which the last line says, and the next start judges it again.
TEST(BadInputTest, ARefusalAtTheEndIsNotSaidToBeCommitted) {
  Flow flow(Options(1, {}, {{"message.timestamp.before.max.ms", "3600000"}}));
  // A drained stream with counters stays open for the interval.
  const std::string counts = UniqueName("counts");
  ASSERT_OK(SharedClient().CreateTopic(counts, 1));
  const auto daemon = flow.Start({"--commit-interval=10s", "--kafka=linger.ms=20000",
                                  "--counter=name=ids,key=json:/id,output=" + counts});
  ASSERT_TRUE(daemon->AwaitReady());
  const int64_t now = absl::ToUnixMillis(absl::Now());
  flow.Send({{WithId("a", 0, now), WithId("old", 0, now - 7'200'000), WithId("b", 0, now)}});
  ASSERT_TRUE(
      daemon->Await([&] { return absl::StrContains(daemon->Get("/status").body, "\"at_offset\":3"); }));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_THAT(daemon->Log(), HasSubstr("the last transaction was aborted"));
  EXPECT_THAT(daemon->Log(), Not(HasSubstr("all committed")));
  EXPECT_TRUE(flow.OutputIds().empty());
  const Finished next = flow.RunToEnd();
  EXPECT_EQ(next.exit_code, 0);
  EXPECT_THAT(next.err, HasSubstr("all committed, left the group"));
  EXPECT_EQ(flow.OutputIds(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(flow.Committed()[0].offset, 3);
}

// A refusal may come while the client's queue is full, in the middle of a batch.
TEST(BadInputTest, Rule4ARefusalWhileTheQueueIsFull) {
  const KafkaClient::Configs small = {{"max.message.bytes", "2000"}};
  Flow flow(Options(1, {}, small));
  RunWithRefusals(flow, small, OfManySizes(), {"--kafka=queue.buffering.max.messages=10"});
}

TEST(BadInputTest, Rule4TimestampsThatTheOutputRefuses) {
  const KafkaClient::Configs recent = {{"message.timestamp.before.max.ms", "3600000"},
                                       {"message.timestamp.after.max.ms", "3600000"}};
  Flow flow(Options(1, {}, recent));
  const int64_t now = absl::ToUnixMillis(absl::Now());
  std::vector<Record> records;
  for (int i = 0; i < 60; ++i) {
    const int64_t off = i == 11 ? -7'200'000 : i == 12 || i == 40 ? 7'200'000 : 0;
    records.push_back(WithId(absl::StrCat(i), 0, now + off));
  }
  RunWithRefusals(flow, recent, records);
}

TEST(BadInputTest, ALimitBeyondTheClientsOwnRange) {
  const KafkaClient::Configs huge = {{"max.message.bytes", "2147483647"}};
  Flow flow(Options(1, huge, huge));
  flow.SendIds("a", 1, 10);
  const Finished finished = flow.RunToEnd();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(flow.ExactlyOnce());
  const KafkaClient::Configs tiny = {{"max.message.bytes", "500"}};
  Flow narrow(Options(1, {}, tiny));
  std::vector<Record> records = {WithId("a"), WithId(std::string(900, 'x')), WithId("b")};
  RunWithRefusals(narrow, tiny, records);
}

// The counters' records are small, whatever the records of the stream are.
TEST(BadInputTest, TheCounterTopicsLimitIsNotTheOutputs) {
  Flow flow(Options());
  const std::string counters = flow.input() + "-counters";
  ASSERT_OK(SharedClient().CreateTopic(counters, 1, {{"max.message.bytes", "2000"}}));
  std::vector<Record> records;
  int64_t total = 0;
  for (int i = 0; i < 500; ++i) {
    records.push_back(WithValue(absl::StrCat(R"({"id":)", i, R"(,"page":"page )", i, R"(","n":)", i,
                                             R"(,"text":")", std::string(3000, 'x'), R"("})")));
    total += i;
  }
  flow.Send(records);
  const Finished finished =
      flow.RunToEnd({"--counter=name=counter,key=json:/page,delta=json:/n,output=" + counters});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, Not(HasSubstr("undeliverable")));
  EXPECT_THAT(finished.err, HasSubstr("none aborted"));
  EXPECT_TRUE(SameRecords(flow.Input(), flow.Output()));
  const auto deltas = SharedClient().ReadSettled(counters);
  ASSERT_OK(deltas);
  int64_t counted = 0;
  for (const Record& delta : *deltas) counted += std::stoll(*delta.value);
  EXPECT_EQ(counted, total);
}

// Topics that do not fit: lethe ends at once, with a message that says what to do.
struct Unfit {
  Args args;
  int exit_code;
  std::string message;
};

TEST(BadInputTest, TopicsThatDoNotFitAreRefusedWithTheRemedy) {
  Flow flow(Options(3));
  const std::string narrow = UniqueName("narrow"), compacted = UniqueName("compacted"),
                    both = UniqueName("both");
  ASSERT_OK(SharedClient().CreateTopic(narrow, 2));
  ASSERT_OK(SharedClient().CreateTopic(compacted, 3, {{"cleanup.policy", "compact"}}));
  ASSERT_OK(SharedClient().CreateTopic(both, 3, {{"cleanup.policy", "compact,delete"}}));
  const auto counters = [](const std::string& topic) {
    return Args{"--counter=name=counter,key=key,delta=json:/n,output=" + topic};
  };
  const std::vector<Unfit> cases = {
      {{"--input=nowhere"}, 1, "input topic nowhere does not exist: create it"},
      {{"--output=nowhere"}, 1, "--create --topic nowhere --partitions 3"},
      {counters("nowhere"), 1, "counter topic nowhere does not exist: create it"},
      {{"--output=" + narrow}, 1, "has 2 partitions, the input has 3"},
      {{"--input=" + compacted}, 1, "use a topic with cleanup.policy=delete"},
      {{"--input=" + both}, 1, "is compacted (cleanup.policy=compact,delete)"},
      {counters(compacted), 1, "use a topic with cleanup.policy=delete"},
      {{"--output=" + flow.input()}, 2, "is also the input"},
      {{"--kafka=no.such.property=1"}, 2, "no.such.property"},
      {{"--kafka=session.timeout.ms=soon"}, 2, "session.timeout.ms"},
      {{"--kafka=isolation.level=read_uncommitted"}, 2, "this property cannot be set"},
      {{"--kafka=transactional.id=mine"}, 2, "set 'instance' instead"},
  };
  for (const Unfit& unfit : cases) {
    const Finished finished = flow.RunToEnd(unfit.args);
    EXPECT_EQ(finished.exit_code, unfit.exit_code) << unfit.args.back() << "\n" << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(unfit.message)) << unfit.args.back();
  }
  EXPECT_EQ(flow.Committed()[0].offset, -1);
}

TEST(BadInputTest, TopicsThatFitBadlyAreWarnedOf) {
  Flow flow(Options(2, {{"retention.ms", "3600000"}}));
  const std::string wide = UniqueName("wide");
  ASSERT_OK(SharedClient().CreateTopic(wide, 3, {{"message.timestamp.type", "LogAppendTime"}}));
  flow.SendIds("a", 1, 100, 1);
  const Finished finished = flow.RunToEnd({"--output=" + wide});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("has 3 partitions, the input has 2"));
  EXPECT_THAT(finished.err, HasSubstr("message.timestamp.type=LogAppendTime"));
  EXPECT_THAT(finished.err, HasSubstr("raise retention.ms"));
  EXPECT_EQ(SharedClient().ReadSettled(wide)->size(), 100u);
}

TEST(BadInputTest, WithoutABrokerItWaitsAndCanBeStopped) {
  Flow flow(Options());
  const auto daemon = flow.Start({absl::StrCat("--brokers=127.0.0.1:", FreePort())});
  ASSERT_TRUE(daemon->Await([&] { return daemon->Get("/readyz").status == 503; }));
  EXPECT_THAT(daemon->Get("/readyz").body, HasSubstr("waiting for the brokers at 127.0.0.1:"));
  EXPECT_EQ(daemon->Get("/healthz").status, 200);
  EXPECT_TRUE(daemon->Stop());  // wherever it is waiting
}

// The last, since all others share this broker.
TEST(BadInputTest, WhenTheBrokerAppearsItGoesOn) {
  Flow flow(Options());
  flow.SendIds("a", 1, 100);
  ASSERT_OK(SharedBroker().Stop());
  const auto daemon = flow.Start();
  ASSERT_TRUE(daemon->AwaitLog("waiting for 127.0.0.1:"));
  EXPECT_EQ(daemon->Get("/readyz").status, 503);
  ASSERT_OK(SharedBroker().Restart());
  ASSERT_TRUE(daemon->AwaitReady());
  ASSERT_TRUE(AwaitJudged(*daemon, 100));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

}  // namespace
}  // namespace lethe::test
