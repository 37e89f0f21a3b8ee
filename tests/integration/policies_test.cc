// What becomes of a record that is no unique event: each policy, what it writes, and what it counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/report/shared_id_watch.h"
#include "tests/support/flow.h"
#include "tests/support/oracle.h"
#include "tests/support/pipeline.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

using Header = std::pair<std::string, std::optional<std::string>>;

// A flow whose diverted records have a topic, with as many partitions.
class PolicyFlow : public Flow {
 public:
  explicit PolicyFlow(int partitions = 1, KafkaClient::Configs output = {},
                      KafkaClient::Configs diverted = {})
      : Flow({LETHE_PROGRAM, partitions, {{"max.message.bytes", "2097152"}}, std::move(output)}),
        diverted_(input() + "-diverted") {
    EXPECT_OK(SharedClient().CreateTopic(diverted_, partitions, diverted));
  }

  // Without compression, which would make small what is to be too large.
  Args Diverting(Args args) const {
    args.emplace_back("--kafka=compression.type=none");
    args.push_back("--divert=" + diverted_);
    return args;
  }
  const std::string& diverted() const { return diverted_; }
  std::vector<Record> Diverted() { return SharedClient().ReadSettled(diverted_).value(); }

 private:
  const std::string diverted_;
};

Record Broken(int32_t partition = 0) {
  Record record = WithId("broken", partition);
  record.value = "{";
  return record;
}

Record WithoutId(int32_t partition = 0) {
  Record record = WithId("none", partition);
  record.value = R"({"x":1})";
  return record;
}

double Count(const Daemon& daemon, const std::string& metric, const std::string& label) {
  return daemon.Metric(metric, {label});
}

// Succeeds if `diverted` is `original` with the headers that say why it is here and where it was.
testing::AssertionResult IsDiverted(const Record& original, const std::string& input,
                                    const std::string& verdict, const std::string& reason,
                                    const Record& diverted) {
  std::vector<Header> headers = original.headers;
  const Header own[] = {{"lethe.verdict", verdict},
                        {"lethe.reason", reason},
                        {"lethe.topic", input},
                        {"lethe.partition", absl::StrCat(original.partition)},
                        {"lethe.offset", absl::StrCat(original.offset)}};
  headers.insert(headers.end(), std::begin(own), std::end(own));
  if (diverted.key != original.key || diverted.value != original.value ||
      diverted.timestamp_ms != original.timestamp_ms || diverted.partition != original.partition) {
    return testing::AssertionFailure() << "offset " << original.offset << " was changed";
  }
  if (diverted.headers.size() != headers.size()) return testing::AssertionFailure() << "headers are missing";
  for (size_t i = 0; i < headers.size(); ++i) {
    const bool same = headers[i].first == "lethe.reason"
                          ? absl::StrContains(diverted.headers[i].second.value_or(""), reason)
                          : diverted.headers[i] == headers[i];
    if (!same) {
      return testing::AssertionFailure() << "header " << diverted.headers[i].first << " is \""
                                         << diverted.headers[i].second.value_or("") << "\"";
    }
  }
  return testing::AssertionSuccess();
}

TEST(PoliciesTest, ATaggedDuplicateKeepsItsPlaceAndIsNotCounted) {
  PolicyFlow flow;
  const std::string counters = flow.input() + "-counters";
  ASSERT_OK(SharedClient().CreateTopic(counters, 1));
  std::vector<Record> records;
  for (int i = 0; i < 300; ++i) {
    records.push_back(WithId(absl::StrCat(i % 100)));
    records.back().value = absl::StrCat(R"({"id":)", i % 100, R"(,"n":)", i + 1, "}");
    if (i % 3 == 0) records.back().headers = {{"own", absl::StrCat(i)}, {"null", std::nullopt}};
  }
  flow.Send(records);
  const auto daemon =
      flow.Start({"--on-duplicate=tag", "--counter=name=counter,key=key,delta=json:/n,output=" + counters});
  ASSERT_TRUE(AwaitJudged(*daemon, 300));
  EXPECT_EQ(Count(*daemon, "lethe_records_total", "verdict=\"duplicate\""), 200);
  EXPECT_EQ(Count(*daemon, "lethe_record_actions_total", "action=\"tagged\""), 200);
  EXPECT_EQ(Count(*daemon, "lethe_record_actions_total", "action=\"passed\""), 100);
  EXPECT_TRUE(daemon->Stop());

  std::vector<Record> expected = flow.Input();
  for (size_t i = 100; i < 300; ++i) expected[i].headers.emplace_back("lethe.verdict", "duplicate");
  const std::vector<Record> output = flow.Output();
  ASSERT_EQ(output.size(), 300u);
  for (size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(output[i].value, expected[i].value) << i;
    EXPECT_EQ(output[i].headers, expected[i].headers) << i;
    EXPECT_EQ(output[i].timestamp_ms, expected[i].timestamp_ms) << i;
  }
  int64_t counted = 0;
  const std::vector<Record> deltas = SharedClient().ReadSettled(counters).value();
  for (const Record& delta : deltas) counted += std::stoll(*delta.value);
  EXPECT_EQ(counted, 100 * 101 / 2);
}

// 1,000 events with an id that says nothing, among 1,000 with ids of their own, each sent twice.
std::vector<Record> WithConstantId() {
  std::vector<Record> records;
  for (int i = 0; i < 1000; ++i) {
    records.push_back(WithId("unknown"));
    records.back().value = absl::StrCat(R"({"id":"unknown","n":)", i, "}");
    records.push_back(WithId(absl::StrCat("own-", i)));
    records.push_back(records.back());
  }
  return records;
}

TEST(PoliciesTest, AConstantIdIsNamedOnThePageAndInTheLogAndCounted) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.Send(WithConstantId());
  const auto daemon = flow.Start();
  ASSERT_TRUE(AwaitJudged(*daemon, 3000));
  EXPECT_EQ(daemon->Metric("lethe_suspicious_duplicates_total"), 1000 - 1 - SharedIdWatch::kEnough);
  EXPECT_EQ(Count(*daemon, "lethe_records_total", "verdict=\"duplicate\""), 1999);
  const HttpAnswer ready = daemon->Get("/readyz");
  EXPECT_EQ(ready.status, 200);
  EXPECT_THAT(ready.body, HasSubstr("share one id"));
  EXPECT_THAT(daemon->Log(), HasSubstr("json:/id seems to be a constant"));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.Output().size(), 1001u);
}

// A deployment lets the ids begin at 1 again.
TEST(PoliciesTest, AJumpOfTheDuplicatesIsNamedWithItsBeginAndCounted) {
  constexpr int kBefore = 30'000;
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.SendIds("a", 1, kBefore);
  const auto daemon = flow.Start();
  ASSERT_TRUE(AwaitJudged(*daemon, kBefore));
  EXPECT_EQ(daemon->Metric("lethe_duplicates_jumped"), 0);
  EXPECT_EQ(daemon->Get("/readyz").body, "ready\n");
  int next = 1;
  EXPECT_TRUE(daemon->Await([&] {
    std::vector<Record> others;
    for (int i = 0; i < 1000 && next <= kBefore; ++i) {
      others.push_back(WithId(absl::StrCat("a", next++)));
      others.back().value = absl::StrCat(R"({"other":true,)", others.back().value->substr(1));
    }
    flow.Send(others);
    return daemon->Metric("lethe_duplicates_jumped") == 1;
  })) << next;
  const std::string ready = daemon->Get("/readyz").body;
  EXPECT_THAT(ready, HasSubstr(absl::StrCat(flow.input(), "-0: ")));
  EXPECT_THAT(ready, HasSubstr("lost"));
  EXPECT_THAT(daemon->Log(), HasSubstr("of the records are duplicates since"));
  EXPECT_TRUE(daemon->Stop());
}

TEST(PoliciesTest, RetriesWithoutEndOfOneEventAreNotTakenForAConstantId) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.Send(std::vector<Record>(20'000, WithId("again")));
  const auto daemon = flow.Start();
  ASSERT_TRUE(AwaitJudged(*daemon, 20'000));
  EXPECT_EQ(daemon->Metric("lethe_suspicious_duplicates_total"), 0);
  EXPECT_THAT(daemon->Get("/readyz").body, Not(HasSubstr("share one id")));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.Output().size(), 1u);
}

TEST(PoliciesTest, EventsOfASuspiciousIdAreDivertedOrPassedOrStopThePartition) {
  PolicyFlow flow;
  flow.Send(WithConstantId());
  Finished done = flow.RunToEnd(flow.Diverting({"--on-suspicious-id=divert"}));
  EXPECT_TRUE(EndsWell(done));
  EXPECT_EQ(flow.Output().size(), 1001u);
  const std::vector<Record> diverted = flow.Diverted();
  ASSERT_EQ(diverted.size(), 899u);
  EXPECT_TRUE(IsDiverted(flow.Input()[303], flow.input(), "suspicious_id", "", diverted[0]));

  Flow passing({LETHE_PROGRAM, 1, {}, {}});
  passing.Send(WithConstantId());
  EXPECT_TRUE(EndsWell(passing.RunToEnd({"--on-suspicious-id=pass"})));
  EXPECT_EQ(passing.Output().size(), 1001u + 899u);

  Flow stopping({LETHE_PROGRAM, 1, {}, {}});
  stopping.Send(WithConstantId());
  const auto daemon = stopping.Start({"--on-suspicious-id=fail"});
  ASSERT_TRUE(daemon->Await([&] { return daemon->Get("/readyz").status == 503; }));
  EXPECT_TRUE(daemon->Await([&] {
    return absl::StrContains(daemon->Get("/readyz").body, "on_suspicious_id is fail");
  })) << daemon->Get("/readyz").body;
  EXPECT_LT(stopping.Committed()[0].offset, 3000);
}

TEST(PoliciesTest, DivertedRecordsNameReasonAndPlace) {
  PolicyFlow flow(2);
  std::vector<Record> records;
  for (int32_t partition : {0, 1}) {
    records.push_back(WithId("a", partition));
    records.push_back(WithId("a", partition));
    records.push_back(WithoutId(partition));
    records.push_back(Broken(partition));
    records.push_back(WithId("b", partition));
  }
  for (Record& record : records) record.headers = {{"own", "1"}, {"own", "2"}};
  records[1].key = std::nullopt;
  flow.Send(records);
  const auto daemon = flow.Start(
      flow.Diverting({"--on-duplicate=divert", "--on-missing-id=divert", "--on-malformed=divert"}));
  ASSERT_TRUE(AwaitJudged(*daemon, records.size()));
  EXPECT_EQ(Count(*daemon, "lethe_record_actions_total", "action=\"diverted\""), 6);
  EXPECT_EQ(Count(*daemon, "lethe_record_actions_total", "action=\"passed\""), 4);
  EXPECT_EQ(Count(*daemon, "lethe_records_total", "verdict=\"missing_id\""), 2);
  EXPECT_TRUE(daemon->Stop());

  const std::vector<Record> input = flow.Input();
  const std::vector<Record> diverted = flow.Diverted();
  ASSERT_EQ(input.size(), 10u);
  ASSERT_EQ(diverted.size(), 6u);
  for (size_t p : {0u, 1u}) {
    const Record* of_it = &diverted[p * 3];
    EXPECT_TRUE(IsDiverted(input[p * 5 + 1], flow.input(), "duplicate", "the same id", of_it[0]));
    EXPECT_TRUE(IsDiverted(input[p * 5 + 2], flow.input(), "missing_id", "id", of_it[1]));
    EXPECT_TRUE(IsDiverted(input[p * 5 + 3], flow.input(), "malformed", "JSON", of_it[2]));
  }
  EXPECT_EQ(flow.OutputIds(), (std::vector<std::string>{"a", "b", "a", "b"}));
}

TEST(PoliciesTest, WhatHasNoUsableIdCanBeDropped) {
  PolicyFlow flow;
  flow.Send({{WithoutId(), WithId("a"), Broken(), Broken(), WithId("b")}});
  const auto daemon = flow.Start({"--on-missing-id=drop", "--on-malformed=drop"});
  ASSERT_TRUE(AwaitJudged(*daemon, 5));
  EXPECT_EQ(Count(*daemon, "lethe_record_actions_total", "action=\"dropped\""), 3);
  EXPECT_EQ(Count(*daemon, "lethe_records_total", "verdict=\"malformed\""), 2);
  EXPECT_THAT(daemon->Log(), HasSubstr("dropped without a verdict"));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.OutputIds(), (std::vector<std::string>{"a", "b"}));
}

// An id of another place, or without an optional part, is another one, and is counted apart.
TEST(PoliciesTest, IdsWithOptionalPartsAndLaterPlacesAreCountedApart) {
  PolicyFlow flow;
  const auto event = [](const char* header, const char* value) {
    Record record;
    record.key = "key";
    record.partition = 0;
    record.value = value;
    if (header != nullptr) record.headers.emplace_back("event-id", header);
    return record;
  };
  const char* const whole = R"({"tenant":"t","id":"1"})";
  const char* const partial = R"({"id":"1"})";
  std::vector<Record> input;
  for (int copy = 0; copy < 2; ++copy) {
    input.insert(input.end(), {event("1", whole), event(nullptr, whole), event(nullptr, partial)});
  }
  input.push_back(event(nullptr, R"({"tenant":"t"})"));
  flow.Send(input);
  const auto daemon = flow.Start({"--id=header:event-id or json:/tenant?+json:/id"});
  ASSERT_TRUE(AwaitJudged(*daemon, 7));
  EXPECT_EQ(Count(*daemon, "lethe_records_total", "verdict=\"duplicate\""), 3);
  EXPECT_EQ(Count(*daemon, "lethe_records_total", "verdict=\"missing_id\""), 1);
  EXPECT_EQ(daemon->Metric("lethe_later_place_ids_total"), 4);
  EXPECT_EQ(daemon->Metric("lethe_partial_ids_total"), 2);
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.Output().size(), 4u);
}

// Diverting is part of the transaction: whatever is killed, each duplicate is diverted once.
TEST(PoliciesTest, DivertingIsExactlyOnceThroughKills) {
  RetryingClients clients(TestSeed());
  PolicyFlow flow(3);
  const Args args = flow.Diverting({"--on-duplicate=divert"});
  for (int round = 0; round < 3; ++round) {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(daemon->AwaitReady());
    const int64_t before = flow.OutputSize();
    flow.Send(clients.Take(5000));
    ASSERT_TRUE(daemon->Await([&] { return flow.OutputSize() > before; }));
  }  // killed
  const Finished finished = flow.RunToEnd(args);
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_TRUE(flow.ExactlyOnce());
  const std::vector<Record> diverted = flow.Diverted();
  EXPECT_EQ(diverted.size() + flow.Output().size(), flow.Input().size());
  std::set<std::pair<int32_t, std::string>> places;
  for (const Record& record : diverted) {
    EXPECT_TRUE(places.emplace(record.partition, *record.headers.back().second).second);
  }
}

void FailsAt(PolicyFlow& flow, const std::string& policy, const std::string& because) {
  const std::string problem = absl::StrCat(flow.input(), "-1 offset 50: ");
  const Args args = {absl::StrCat("--", policy, "=fail"), "--kafka=compression.type=none"};
  const Finished finished = flow.RunToEnd(args);
  EXPECT_EQ(finished.exit_code, 1) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr(problem));
  EXPECT_THAT(finished.err, HasSubstr(because));
  // Everything before it is committed, and nothing after it; the other partition is not concerned.
  EXPECT_EQ(flow.Committed()[0].offset, 10);
  EXPECT_EQ(flow.Committed()[1].offset, 50);
  EXPECT_EQ(flow.Output().size(), 60u);
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_partition_failed") == 1; }));
  EXPECT_THAT(daemon->Get("/readyz").body, HasSubstr(problem));
  flow.SendIds("more", 1, 10, 0);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 20; }));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.Committed()[1].offset, 50);
  EXPECT_EQ(flow.Output().size(), 70u);
  // The remedy.
  const Finished after = flow.RunToEnd({absl::StrCat("--", policy, "=drop"), args.back()});
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_EQ(flow.Committed()[1].offset, 101) << after.err;
  EXPECT_EQ(flow.Output().size(), 120u);
}

void SendAround(PolicyFlow& flow, const Record& bad) {
  flow.SendIds("other", 1, 10, 0);
  flow.SendIds("before", 1, 50, 1);
  flow.Send({&bad, 1});
  flow.SendIds("after", 1, 50, 1);
}

TEST(PoliciesTest, FailStopsThePartitionInFrontOfAMalformedRecord) {
  PolicyFlow flow(2);
  SendAround(flow, Broken(1));
  FailsAt(flow, "on-malformed", "on_malformed is fail");
}

TEST(PoliciesTest, FailStopsThePartitionInFrontOfARecordWithoutAnId) {
  PolicyFlow flow(2);
  SendAround(flow, WithoutId(1));
  FailsAt(flow, "on-missing-id", "on_missing_id is fail");
}

TEST(PoliciesTest, FailStopsThePartitionInFrontOfARecordThatIsRefused) {
  PolicyFlow flow(2, {{"max.message.bytes", "2000"}});
  SendAround(flow, WithId(std::string(10'000, 'x'), 1));
  FailsAt(flow, "on-undeliverable", absl::StrCat("topic ", flow.output(), " does not take the record"));
}

TEST(PoliciesTest, ARecordThatTheOutputRejectsCanBeDiverted) {
  PolicyFlow flow(1, {{"max.message.bytes", "2000"}});
  const std::string large(10'000, 'x');
  flow.Send({{WithId("a"), WithId(large), WithId("b"), WithId(large), WithId("c")}});
  const auto daemon = flow.Start(flow.Diverting({"--on-undeliverable=divert"}));
  ASSERT_TRUE(AwaitJudged(*daemon, 5));
  EXPECT_EQ(Count(*daemon, "lethe_records_total", "verdict=\"undeliverable\""), 2);
  EXPECT_EQ(Count(*daemon, "lethe_record_actions_total", "action=\"diverted\""), 2);
  EXPECT_TRUE(daemon->Stop());
  const std::vector<Record> diverted = flow.Diverted();
  ASSERT_EQ(diverted.size(), 2u);
  EXPECT_TRUE(IsDiverted(flow.Input()[1], flow.input(), "undeliverable", "too large", diverted[0]));
  EXPECT_TRUE(IsDiverted(flow.Input()[3], flow.input(), "undeliverable", "too large", diverted[1]));
  EXPECT_EQ(flow.OutputIds(), (std::vector<std::string>{"a", "b", "c"}));
}

// Where neither topic takes it, it is counted, and does not come up again and again.
TEST(PoliciesTest, ARecordThatTheDivertTopicRejectsIsDropped) {
  PolicyFlow flow(1, {{"max.message.bytes", "2000"}}, {{"max.message.bytes", "2000"}});
  const std::string large(10'000, 'x');
  std::vector<Record> records = {WithId("a"), WithId(large), WithId("a"), WithId("b")};
  Record broken = Broken();
  broken.value = "{" + large;  // its policy diverts it, and only the divert topic refuses it
  records.push_back(broken);
  records.push_back(WithId("c"));
  flow.Send(records);
  const auto daemon = flow.Start(
      flow.Diverting({"--on-undeliverable=divert", "--on-malformed=divert", "--on-duplicate=divert"}));
  ASSERT_TRUE(AwaitJudged(*daemon, records.size()));
  EXPECT_EQ(Count(*daemon, "lethe_records_total", "verdict=\"undeliverable\""), 2);
  EXPECT_EQ(Count(*daemon, "lethe_record_actions_total", "action=\"dropped\""), 2);
  EXPECT_EQ(Count(*daemon, "lethe_record_actions_total", "action=\"diverted\""), 1);
  EXPECT_EQ(Count(*daemon, "lethe_record_actions_total", "action=\"passed\""), 3);
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.OutputIds(), (std::vector<std::string>{"a", "b", "c"}));
  const std::vector<Record> diverted = flow.Diverted();
  ASSERT_EQ(diverted.size(), 1u);
  EXPECT_TRUE(IsDiverted(flow.Input()[2], flow.input(), "duplicate", "the same id", diverted[0]));
}

TEST(PoliciesTest, TheDivertTopicIsCheckedAtTheStart) {
  PolicyFlow flow(2);
  const std::string narrow = UniqueName("narrow"), compacted = UniqueName("compacted");
  ASSERT_OK(SharedClient().CreateTopic(narrow, 1));
  ASSERT_OK(SharedClient().CreateTopic(compacted, 2, {{"cleanup.policy", "compact"}}));
  for (const auto& [topic, message] :
       {std::pair<std::string, std::string>("nowhere", "divert topic nowhere does not exist: create it"),
        {narrow, "has 1 partition, the input has 2"},
        {compacted, "use a topic with cleanup.policy=delete"}}) {
    const Finished finished = flow.RunToEnd({"--on-duplicate=divert", "--divert=" + topic});
    EXPECT_EQ(finished.exit_code, 1) << topic;
    EXPECT_THAT(finished.err, HasSubstr(message));
  }
  // What nothing is written to need not be there.
  EXPECT_EQ(flow.RunToEnd({"--divert=nowhere", "--on-undeliverable=drop"}).exit_code, 0);
}

}  // namespace
}  // namespace lethe::test
