// Copies in different partitions: found with `scope: topic`, warned of without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "tests/support/flow.h"
#include "tests/support/pipeline.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

FlowOptions Options(int partitions) { return {LETHE_PROGRAM, partitions, {}, {}}; }

std::string RepartitionTopic(const Flow& flow) {
  return absl::StrCat(flow.group(), "-", flow.input(), "-repartition");
}

// As a producer without keys sends them, but that the partitions are chosen at random.
std::vector<Record> Unkeyed(std::vector<Record> records, int partitions, std::mt19937_64& random) {
  for (Record& record : records) {
    record.key = std::nullopt;
    record.partition = static_cast<int32_t>(random() % static_cast<uint64_t>(partitions));
  }
  return records;
}

// Succeeds if each id of the input is in the output once, in the partition where one of its copies is, with
// that one's headers and timestamp.
testing::AssertionResult OncePerTopic(Flow& flow) {
  const std::vector<Record> input = flow.Input();
  std::multimap<std::string, const Record*> copies;
  std::set<std::string> ids;
  for (const Record& record : input) {
    copies.emplace(JsonId(record), &record);
    ids.insert(JsonId(record));
  }
  const std::vector<Record> output = flow.Output();
  std::set<std::string> seen;
  for (const Record& record : output) {
    const std::string id = JsonId(record);
    if (!seen.insert(id).second) return testing::AssertionFailure() << id << " is there twice";
    const auto [begin, end] = copies.equal_range(id);
    const bool is_a_copy = std::any_of(begin, end, [&](const auto& copy) {
      return copy.second->key == record.key && copy.second->value == record.value &&
             copy.second->headers == record.headers && copy.second->timestamp_ms == record.timestamp_ms &&
             copy.second->partition == record.partition;
    });
    if (!is_a_copy) return testing::AssertionFailure() << id << " is like none of its copies";
  }
  if (seen != ids) {
    testing::AssertionResult failure = testing::AssertionFailure()
                                       << seen.size() << " ids, not " << ids.size();
    for (const std::string& id : ids) {
      if (seen.contains(id)) continue;
      const auto [begin, end] = copies.equal_range(id);
      for (auto copy = begin; copy != end; ++copy) {
        failure << "; " << id << " is in partition " << copy->second->partition << " at "
                << copy->second->offset << ", time " << copy->second->timestamp_ms;
      }
    }
    return failure;
  }
  return testing::AssertionSuccess();
}

// The limit of Kafka 4, on all brokers that this program runs on.
const bool kBoundsTimestamps = [] {
  KafkaBrokerOptions options;
  options.properties = {{"log.message.timestamp.after.max.ms", "3600000"}};
  SetSharedBrokerOptions(std::move(options));
  return true;
}();

TEST(ScopeTest, CopiesInDifferentPartitionsMeet) {
  Flow flow(Options(3));
  std::vector<Record> records;
  for (int i = 0; i < 900; ++i) {
    records.push_back(WithId(absl::StrCat(i % 300), (i + i / 300) % 3));
    records.back().key = std::nullopt;
    if (i % 2 == 0) records.back().headers = {{"own", absl::StrCat(i)}, {"null", std::nullopt}, {"own", ""}};
  }
  flow.Send(records);
  const Finished finished = flow.RunToEnd({"--scope=topic", "--lanes=2", "--log-level=warning"});
  ASSERT_TRUE(EndsWell(finished));
  EXPECT_EQ(finished.err, "") << "a first start is nothing to warn of";
  EXPECT_TRUE(OncePerTopic(flow));
  EXPECT_EQ(flow.Output().size(), 300u);
  const std::vector<Record> routed = SharedClient().ReadSettled(RepartitionTopic(flow)).value();
  EXPECT_EQ(routed.size(), 900u);
  EXPECT_EQ(SharedClient().EndOffsets(RepartitionTopic(flow), Isolation::kReadCommitted)->size(), 3u);
  // What comes later meets what came before it.
  flow.SendIds("", 200, 399, 2);
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--scope=topic"})));
  EXPECT_TRUE(OncePerTopic(flow));
  EXPECT_EQ(flow.Output().size(), 400u);
}

// The topic between takes what the input takes, whatever the brokers' own limits are: Kafka 4 takes no
// timestamps by default that are more than an hour ahead.
TEST(ScopeTest, Rule20TheTopicBetweenTakesTheInputsTimestamps) {
  const KafkaClient::Configs any_time = {{"message.timestamp.after.max.ms", "9223372036854775807"}};
  Flow flow({LETHE_PROGRAM, 1, any_time, any_time});
  const int64_t ahead = absl::ToUnixMillis(absl::Now()) + 2 * 3'600'000;
  std::vector<Record> records;
  for (int i = 0; i < 10; ++i) records.push_back(WithId(absl::StrCat(i), 0, ahead + i));
  flow.Send(records);
  const Finished check = flow.RunCommand("check", {"--scope=topic"});
  EXPECT_NE(check.exit_code, 2) << check.out;
  const Finished first = flow.RunToEnd({"--scope=topic"});
  ASSERT_TRUE(EndsWell(first));
  EXPECT_THAT(first.err, Not(HasSubstr("does not exist"))) << "of a topic that it has just created";
  EXPECT_EQ(flow.Output().size(), 10u);
}

// It is read again when the router starts, and the ids are the second stage's to remember.
TEST(ScopeTest, TheRouterRemembersNoIds) {
  Flow flow(Options(1));
  const int64_t at = absl::ToUnixMillis(absl::Now());
  std::vector<Record> records;
  for (int i = 0; i < 200'000; ++i) records.push_back(WithId(absl::StrCat(i), 0, at));  // all in its horizon
  flow.Send(records);
  const Args args = {"--scope=topic", "--engine=exact", "--memory=1MiB"};
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(daemon->AwaitReady());
  EXPECT_GT(daemon->Metric("lethe_memory_used_bytes"), 0);
  EXPECT_LE(daemon->Metric("lethe_memory_used_bytes"), daemon->Metric("lethe_memory_limit_bytes"));
  EXPECT_TRUE(daemon->Stop());
}

TEST(ScopeTest, ExactlyOncePerTopicThroughKills) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  RetryingClients clients(seed);
  Flow flow(Options(4));
  const Args args = {"--scope=topic"};
  for (int round = 0; round < 4; ++round) {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(daemon->AwaitReady());
    const int64_t before = flow.OutputSize();
    flow.Send(Unkeyed(clients.Take(4000), 4, random));
    ASSERT_TRUE(daemon->Await([&] { return flow.OutputSize() > before; }));
  }  // killed
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_TRUE(OncePerTopic(flow));
}

// It is not copied, so that the second stage never stands in front of a record that has nowhere to go.
TEST(ScopeTest, OnlyPartitionsThatTheOutputLacksAreHeld) {
  Flow flow(Options(1));
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--scope=topic"})));
  ASSERT_OK(SharedClient().AddPartitions(flow.input(), 2));
  flow.SendIds("b", 1, 100, 1);
  const auto daemon = flow.Start({"--scope=topic", "--kafka=topic.metadata.refresh.interval.ms=300000"});
  ASSERT_TRUE(daemon->AwaitLog(flow.input() + "-1 is held at offset 0: "));
  flow.SendIds("a", 51, 200);
  EXPECT_TRUE(daemon->Await([&] { return flow.OutputIds().size() == 200; })) << daemon->Log();
  EXPECT_TRUE(daemon->Await([&] {
    const HttpAnswer ready = daemon->Get("/readyz");
    return ready.status == 503 &&
           absl::StrContains(ready.body, absl::StrCat("--alter --topic ", flow.output(), " --partitions 2"));
  })) << daemon->Get("/readyz").body;
  EXPECT_EQ(daemon->Metric("lethe_transactions_aborted_total"), 0);
  ASSERT_OK(SharedClient().AddPartitions(flow.output(), 2));
  EXPECT_TRUE(daemon->Await([&] { return flow.OutputIds().size() == 300; })) << daemon->Log();
  EXPECT_TRUE(daemon->AwaitReady());
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(OncePerTopic(flow));
}

// The second stage holds its partitions, reports the reason, and resumes by itself.
TEST(ScopeTest, AnOutputDeletedUnderItIsReportedAndAwaited) {
  Flow flow(Options(1));
  const auto daemon = flow.Start({"--scope=topic", "--kafka=topic.metadata.refresh.interval.ms=500",
                                  "--kafka=topic.metadata.propagation.max.ms=500"});
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 100; }));
  ASSERT_TRUE(daemon->AwaitReady());
  ASSERT_OK(SharedClient().DeleteTopic(flow.output()));
  flow.SendIds("b", 1, 100);
  EXPECT_TRUE(daemon->Await([&] {
    const HttpAnswer ready = daemon->Get("/readyz");
    return ready.status == 503 && absl::StrContains(ready.body, "it resumes when you create it");
  })) << daemon->Log();
  ASSERT_OK(SharedClient().CreateTopic(flow.output(), 1, {{"retention.ms", "-1"}}));
  EXPECT_TRUE(daemon->Await([&] { return flow.OutputIds().size() == 100; })) << daemon->Log();
  EXPECT_TRUE(daemon->AwaitReady()) << daemon->Get("/readyz").body;
  EXPECT_TRUE(daemon->Stop());
}

// In the second stage, with the place that the record had in the input.
TEST(ScopeTest, PoliciesAreThoseOfTheInput) {
  Flow flow(Options(2));
  const std::string diverted_topic = flow.input() + "-diverted";
  ASSERT_OK(SharedClient().CreateTopic(diverted_topic, 2));
  std::vector<Record> records = {WithId("a", 0), WithId("a", 1), WithId("b", 1)};
  records[2].value = "{";
  for (Record& record : records) record.key = std::nullopt;
  flow.Send(records);
  ASSERT_TRUE(EndsWell(flow.RunToEnd(
      {"--scope=topic", "--on-duplicate=tag", "--on-malformed=divert", "--divert=" + diverted_topic})));
  const std::vector<Record> output = flow.Output();
  ASSERT_EQ(output.size(), 2u);
  // Which of the two came first is not said.
  EXPECT_EQ(output[0].headers.size() + output[1].headers.size(), 1u);
  const std::vector<Record> diverted = SharedClient().ReadSettled(diverted_topic).value();
  ASSERT_EQ(diverted.size(), 1u);
  EXPECT_EQ(diverted[0].partition, 1);
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] : diverted[0].headers) headers[name] = *value;
  EXPECT_EQ(headers.size(), 5u);
  EXPECT_EQ(headers["lethe.verdict"], "malformed");
  EXPECT_EQ(headers["lethe.topic"], flow.input());
  EXPECT_EQ(headers["lethe.partition"], "1");
  EXPECT_EQ(headers["lethe.offset"], "1");

  flow.Send({&records[2], 1});
  const Finished failed = flow.RunToEnd({"--scope=topic", "--on-malformed=fail"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err, HasSubstr(absl::StrCat(flow.input(), "-1 offset 2 (")));
}

// The topic that the records are copied to is lethe's own: it deletes what no restart needs.
TEST(ScopeTest, RecordsThatNoRestartNeedsAreDeleted) {
  Flow flow(Options(1));
  const int64_t step = 20'000;
  const int64_t begin = absl::ToUnixMillis(absl::Now()) - 3 * 24 * 3'600'000;
  std::vector<Record> records;
  for (int i = 0; i < 5000; ++i) records.push_back(WithId(absl::StrCat("a", i), 0, begin + i * step));
  flow.Send(records);
  const Args args = {"--scope=topic", "--horizon=1h"};
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  const auto kept = [&] {
    return static_cast<int64_t>(
        SharedClient().ReadAll(RepartitionTopic(flow), Isolation::kReadCommitted)->size());
  };
  EXPECT_GT(kept(), 180);  // an hour of them
  // The window is an eighth longer. Its beginning, and that of what a rebuild reads before it, are the ends
  // of batches, which have up to 512 records.
  EXPECT_LE(kept(), 180 + 180 / 8 + 2 * 512);
  std::vector<Record> retries;
  for (const int old : {4999, 4900, 4850}) {
    retries.push_back(WithId(absl::StrCat("a", old), 0, begin + 5000 * step));
  }
  flow.Send(retries);
  const Finished again = flow.RunToEnd(args);
  ASSERT_TRUE(EndsWell(again));
  EXPECT_THAT(again.err, Not(HasSubstr("short history")));
  EXPECT_EQ(flow.Output().size(), 5000u);
}

TEST(ScopeTest, TheWayOfAnIdMustNotChange) {
  Flow flow(Options(2));
  flow.SendIds("a", 1, 10, 0);
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--scope=topic"})));
  const Finished other_id = flow.RunToEnd({"--scope=topic", "--id=key"});
  EXPECT_EQ(other_id.exit_code, 1);
  EXPECT_THAT(other_id.err, HasSubstr("has so far routed by another id"));
  ASSERT_OK(SharedClient().AddPartitions(RepartitionTopic(flow), 3));
  const Finished wider = flow.RunToEnd({"--scope=topic"});
  EXPECT_EQ(wider.exit_code, 1);
  EXPECT_THAT(wider.err, HasSubstr("has another number of partitions than before"));
}

// From the scope that finds no copies to the one that does: no step writes the input to the former output
// again.
TEST(ScopeTest, AnotherScopeDoesNotWriteToTheFormerOutputAgain) {
  Flow flow(Options(2));
  for (int p = 0; p < 2; ++p) flow.SendIds("a", 1, 100, p);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_EQ(flow.Output().size(), 200u);
  const Finished same_group = flow.RunToEnd({"--scope=topic"});
  EXPECT_EQ(same_group.exit_code, 1) << same_group.err;
  const std::string group = flow.group() + "-2";
  const std::string output = flow.output() + "-2";
  EXPECT_THAT(same_group.err, HasSubstr(absl::StrCat("--group ", group, " --output ", output)));
  const Finished same_output = flow.RunToEnd({"--scope=topic", "--group=" + group});
  EXPECT_EQ(same_output.exit_code, 1) << same_output.err;
  EXPECT_THAT(same_output.err, HasSubstr("output to " + output));
  for (const std::string& each : {flow.group(), group}) {
    EXPECT_FALSE(SharedClient().Exists(absl::StrCat(each, "-", flow.input(), "-repartition")).value())
        << each;
  }
  EXPECT_EQ(flow.Output().size(), 200u);
  const Args args = {"--scope=topic", "--group=" + group, "--output=" + output};
  Args create = args;
  create.emplace_back("--create");
  EXPECT_EQ(flow.RunCommand("check", create).exit_code, 0);
  const Finished run = flow.RunToEnd(args);
  ASSERT_TRUE(EndsWell(run));
  EXPECT_THAT(run.err, Not(HasSubstr("created again")));
  EXPECT_EQ(SharedClient().ReadSettled(output)->size(), 100u);
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args))) << "the group has begun";
}

// What was routed is not judged, and what is known of ids goes with it: nobody is to hear of that by chance.
TEST(ScopeTest, AMissingRepartitionTopicIsNotRecreatedSilently) {
  Flow flow(Options(2));
  const Args args = {"--scope=topic"};
  for (int p = 0; p < 2; ++p) flow.SendIds(absl::StrCat("p", p, "-"), 1, 100, p);
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  const std::string topic = RepartitionTopic(flow);
  const std::string group = flow.group() + "-repartition";
  const std::vector<CommittedOffset> routed = SharedClient().Committed(group, flow.input()).value();
  ASSERT_OK(SharedClient().DeleteTopic(topic));
  const std::string gone = absl::StrCat("repartition topic ", topic, " is gone, and group ", group,
                                        " has routed records of ", flow.input(), " to it");
  const std::string remedy =
      absl::StrCat("--group ", group, " --topic ", flow.input(), " --reset-offsets --to-earliest --execute");
  const Finished check = flow.RunCommand("check", args);
  EXPECT_EQ(check.exit_code, 2) << check.out << check.err;
  EXPECT_THAT(check.out, HasSubstr(gone));
  EXPECT_THAT(check.out, HasSubstr(remedy));
  const Finished run = flow.RunToEnd(args);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr(gone));
  EXPECT_THAT(run.err, HasSubstr(remedy));
  EXPECT_FALSE(SharedClient().Exists(topic).value()) << "it was recreated";
  EXPECT_EQ(SharedClient().Committed(group, flow.input())->front().metadata, routed.front().metadata);

  // Nor is it taken for the former one when it is created by hand.
  ASSERT_OK(SharedClient().CreateTopic(topic, 2, {{"retention.ms", "-1"}}));
  const std::string recreated = "may have been deleted and created again";
  const Finished warned = flow.RunCommand("check", args);
  EXPECT_THAT(warned.out, HasSubstr(recreated));
  EXPECT_THAT(warned.out, HasSubstr(remedy));
  const Finished warns = flow.RunToEnd(args);
  EXPECT_THAT(warns.err, HasSubstr(recreated));
  EXPECT_THAT(flow.RunToEnd(args).err, Not(HasSubstr(recreated)));

  // As it is said there: all of it is judged again, and is in the output once more.
  flow.ResetGroup({{0, ""}, {0, ""}}, group);
  const Finished reset = flow.RunCommand("check", args);
  EXPECT_EQ(reset.exit_code, 0) << reset.out << reset.err;
  EXPECT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_EQ(flow.Output().size(), 400u);
}

// More partitions of the input do not change the way of an id.
TEST(ScopeTest, TheInputMayGrow) {
  Flow flow(Options(2));
  flow.SendIds("a", 1, 100, 0);
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--scope=topic"})));
  ASSERT_OK(SharedClient().AddPartitions(flow.input(), 4));
  ASSERT_OK(SharedClient().AddPartitions(flow.output(), 4));
  flow.SendIds("a", 51, 150, 3);
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--scope=topic"})));
  EXPECT_TRUE(OncePerTopic(flow));
  EXPECT_EQ(flow.Output().size(), 150u);
}

// A copy whose key is another has come to the partition of the first by chance.
TEST(ScopeTest, CopiesWithOtherKeysAreWarnedOf) {
  for (const bool differ : {true, false}) {
    Flow flow(Options(2));
    std::vector<Record> records;
    for (int i = 0; i < 8000; ++i) {
      records.push_back(WithId(absl::StrCat(i % 4000), i % 2));
      records.back().key = absl::StrCat(i % 2, differ && i >= 4000 ? "-again" : "", "-", i % 4000);
    }
    flow.Send(records);
    const Finished finished = flow.RunToEnd();
    ASSERT_TRUE(EndsWell(finished));
    EXPECT_EQ(flow.Output().size(), 4000u);
    EXPECT_EQ(absl::StrContains(finished.err, "have another key: they met in one partition by chance"),
              differ)
        << finished.err;
    EXPECT_EQ(absl::StrContains(finished.err, "set scope to topic, or key the records by the id"), differ);
    EXPECT_THAT(finished.err, Not(HasSubstr("have no key")));
  }
}

// Where it is routed to is the id's to say, in every run; the record stays as it was, behind what came before
// it in its partition, and says where that was.
TEST(ScopeTest, Rule20RoutedRecordsAreTheInputsById) {
  Flow flow(Options(3));
  const int64_t begin = absl::ToUnixMillis(absl::Now()) - 10 * 24 * 3'600'000;  // older than topics keep
  std::map<std::string, std::set<int32_t>> ways;
  for (int run = 0; run < 2; ++run) {
    std::vector<Record> records;
    for (int i = 0; i < 300; ++i) {
      records.push_back(WithId(absl::StrCat(i % 100), (i + run) % 3, begin + run * 1000 + i));
      if (i % 2 == 0) records.back().key = std::nullopt;
      records.back().headers = {{"own", absl::StrCat(i)}, {"lethe.routed.offset", "its own"}};
    }
    flow.Send(records);
    ASSERT_TRUE(EndsWell(flow.RunToEnd({"--scope=topic"})));
  }
  std::map<std::pair<int32_t, int64_t>, Record> input;
  for (Record& record : flow.Input()) input[{record.partition, record.offset}] = std::move(record);
  const std::vector<Record> routed = SharedClient().ReadSettled(RepartitionTopic(flow)).value();
  ASSERT_EQ(routed.size(), 600u);
  std::map<std::pair<int32_t, int32_t>, int64_t> last;  // by where to and where from
  for (const Record& record : routed) {
    ASSERT_EQ(record.headers.size(), 4u);
    EXPECT_EQ(record.headers[2].first, "lethe.routed.partition");
    EXPECT_EQ(record.headers[3].first, "lethe.routed.offset");
    const auto from = static_cast<int32_t>(std::stol(*record.headers[2].second));
    const int64_t offset = std::stoll(*record.headers[3].second);
    const auto original = input.extract({from, offset});
    ASSERT_FALSE(original.empty()) << "it is not there, or was routed before: " << from << "/" << offset;
    EXPECT_EQ(record.key, original.mapped().key);
    EXPECT_EQ(record.value, original.mapped().value);
    EXPECT_EQ(record.timestamp_ms, original.mapped().timestamp_ms);
    const auto own = absl::MakeConstSpan(record.headers).first(2);
    EXPECT_TRUE(std::equal(own.begin(), own.end(), original.mapped().headers.begin()));
    const auto [before, is_first] = last.try_emplace({record.partition, from}, offset);
    EXPECT_TRUE(is_first || before->second < offset) << "the order is another";
    before->second = offset;
    ways[JsonId(record)].insert(record.partition);
  }
  EXPECT_TRUE(input.empty());
  std::set<int32_t> used;
  for (const auto& [id, partitions] : ways) {
    EXPECT_EQ(partitions.size(), 1u) << id;
    used.insert(partitions.begin(), partitions.end());
  }
  EXPECT_EQ(used.size(), 3u);
  EXPECT_EQ(flow.Output().size(), 100u);
}

// Unkeyed, in partitions of unequal size: `span` of records up to a minute ago, each tenth a second time up
// to a minute later.
std::vector<Record> Backlog(int ids, absl::Duration span, std::mt19937_64& random) {
  const int64_t span_ms = absl::ToInt64Milliseconds(span);
  const int64_t begin = absl::ToUnixMillis(absl::Now()) - span_ms - 60'000;
  std::vector<std::pair<int64_t, int>> events;
  for (int id = 0; id < ids; ++id) {
    events.emplace_back(begin + span_ms * id / ids, id);
    if (id % 10 == 0) events.emplace_back(events.back().first + static_cast<int64_t>(random() % 59'000), id);
  }
  std::sort(events.begin(), events.end());
  std::discrete_distribution<int32_t> partition({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  std::vector<Record> records;
  for (const auto& [at, id] : events) {
    records.push_back(WithId(absl::StrCat(id), partition(random), at));
    records.back().key = std::nullopt;
  }
  return records;
}

// A day of records waits, and the horizon is ten minutes: the router must not read one partition ahead of the
// others, also where it goes on after a kill.
TEST(ScopeTest, Rule20NoCopyPassesAfterABacklogAndAKill) {
  std::mt19937_64 random(TestSeed());
  Flow flow(Options(12));
  constexpr int kIds = 20'000;
  flow.Send(Backlog(kIds, absl::Hours(24), random));
  const Args args = {"--scope=topic", "--horizon=10m"};
  {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(daemon->Await([&] { return flow.OutputSize() > kIds / 4; }));
  }  // killed
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_TRUE(OncePerTopic(flow));
}

// The partitions of one process wait for those of the other, also while that one is away.
TEST(ScopeTest, Rule20NoCopyPassesAfterABacklogOfTwoProcessesAndAKill) {
  std::mt19937_64 random(TestSeed());
  Flow flow(Options(12));
  const auto start = [&](const char* instance) {
    return flow.Start({"--scope=topic", "--horizon=10m", "--kafka=session.timeout.ms=30000", instance});
  };
  auto one = start("--instance=1");
  const auto two = start("--instance=2");
  const auto routes_half = [](const Daemon& daemon) {
    return daemon.Metric("lethe_lane_partitions", {"lane=\"routing-"}) == 6;
  };
  ASSERT_TRUE(one->Await([&] { return routes_half(*one) && routes_half(*two); })) << two->Log();
  // What is not in the log yet is not waited for, so they are stopped meanwhile, for longer than a router
  // believes what it was told of a partition's end.
  for (const auto& daemon : {one.get(), two.get()}) ASSERT_OK(daemon->process().Signal(SIGSTOP));
  constexpr int kIds = 10'000;
  flow.Send(Backlog(kIds, absl::Hours(1), random));
  absl::SleepFor(absl::Seconds(4));
  for (const auto& daemon : {one.get(), two.get()}) ASSERT_OK(daemon->process().Signal(SIGCONT));
  ASSERT_TRUE(two->Await([&] { return flow.OutputSize() > kIds / 4; }));
  one.reset();  // killed
  one = start("--instance=1");
  // And both are stopped anywhere.
  const int64_t stop_at = kIds / 2 + static_cast<int64_t>(random() % (kIds / 2));
  ASSERT_TRUE(two->Await([&] { return flow.OutputSize() >= stop_at; })) << one->Log();
  EXPECT_TRUE(one->Stop());
  EXPECT_TRUE(two->Stop());
  const Finished last = flow.RunToEnd({"--scope=topic", "--horizon=10m"});
  ASSERT_TRUE(EndsWell(last));
  EXPECT_TRUE(OncePerTopic(flow)) << one->Log() << two->Log() << last.err;
}

TEST(ScopeTest, AnInputThatLooksUnkeyedIsWarnedOf) {
  std::mt19937_64 random(TestSeed());
  RetryingClients clients(TestSeed());
  Flow flow(Options(2));
  flow.Send(Unkeyed(clients.Take(3000), 2, random));
  const auto daemon = flow.Start();
  ASSERT_TRUE(daemon->AwaitLog("records have no key"));
  EXPECT_THAT(daemon->Log(), HasSubstr("set scope to topic, or key the records"));
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_unkeyed_records_total") == 3000; }));
  EXPECT_TRUE(daemon->Stop());

  Flow keyed(Options(2));
  keyed.Send(clients.Take(3000));
  const Finished finished = keyed.RunToEnd();
  ASSERT_TRUE(EndsWell(finished));
  EXPECT_THAT(finished.err, Not(HasSubstr("have no key")));
}

}  // namespace
}  // namespace lethe::test
