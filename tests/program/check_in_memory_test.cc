// `lethe check` on brokers in memory: what it asks and tries, and what it finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/counters.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/options/topic_list.h"
#include "src/pipeline/preflight/check.h"
#include "src/pipeline/preflight/repartition_rules.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "tests/support/fake_brokers.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

using Severity = Finding::Severity;

class FakeProbes final : public Probes {
 public:
  explicit FakeProbes(FakeTopics& topics) : topics_(topics) {}

  absl::StatusOr<std::unique_ptr<Brokers>> MakeBrokers(const DaemonOptions& options,
                                                       Isolation isolation) override {
    if (isolation == Isolation::kReadUncommitted) uncommitted.push_back(options.input);
    return std::make_unique<FakeBrokers>(topics_, options.process.group);
  }
  absl::Status MakeClients(const DaemonOptions&) override { return clients; }
  TriedTransaction TryTransaction(const DaemonOptions& options, const std::string& id,
                                  int64_t offset) override {
    tried.push_back(absl::StrCat(id, " ", options.input, " ", offset));
    std::deque<TriedTransaction>& answers = transactions[options.process.group];
    if (answers.empty()) return {};
    const TriedTransaction answer = answers.front();
    if (answers.size() > 1) answers.pop_front();
    return answer;
  }
  absl::Status TryWriting(const DaemonOptions&, const std::string& topic, int64_t value_bytes) override {
    written[topic] = value_bytes;
    const auto answer = writes.find(topic);
    return answer == writes.end() ? absl::OutOfRangeError("too large") : answer->second;
  }

  absl::Status clients = {};
  std::map<std::string, std::deque<TriedTransaction>> transactions = {};  // by group; the last one stays
  std::map<std::string, absl::Status> writes = {};                        // by topic

  std::vector<std::string> uncommitted = {};  // inputs whose ends are high watermarks
  std::vector<std::string> tried = {};
  std::map<std::string, int64_t> written = {};

 private:
  FakeTopics& topics_;
};

TopicConfig Config(TopicConfig config = {}) {
  config.try_emplace("cleanup.policy", "delete");
  config.try_emplace("retention.ms", "604800000");
  config.try_emplace("retention.bytes", "-1");
  config.try_emplace("max.message.bytes", "1000");
  config.try_emplace("message.timestamp.type", "CreateTime");
  return config;
}

class CheckInMemory : public testing::Test {
 protected:
  CheckInMemory() {
    options_.process.brokers = "b:9092";
    options_.process.group = "g";
    options_.process.instance = "i";
    options_.record.id = *IdSpec::Parse("key");
    options_.stage.horizon = absl::Hours(1);
    options_.max_future = absl::Minutes(3);
    options_ = Entry("in", "out");
    AddInput("in");
    AddTopic("out");
  }

  DaemonOptions Entry(const std::string& input, const std::string& output) const {
    DaemonOptions entry = options_;
    entry.input = input;
    entry.output = output;
    return entry;
  }
  FakeTopics::Topic& AddTopic(const std::string& name, TopicConfig config = {}) {
    return topics_.by_name[name] = {.partitions = 2, .config = Config(std::move(config))};
  }
  // Two partitions with a record every two seconds of the last half hour.
  void AddInput(const std::string& name) {
    FakeTopics::Topic& topic = AddTopic(name);
    for (int i = 0; i < 1800; ++i) {
      topic.records.push_back({.partition = i % 2,
                               .offset = i / 2,
                               .time = clock_.Wall() - absl::Seconds(1800 - i),
                               .key = absl::StrCat(name, i)});
    }
    topic.ends = {{0, 900}, {1, 900}};
  }
  // The group has committed this offset of both partitions.
  void Commit(const std::string& group, const std::string& topic, int64_t offset,
              const std::string& id_fingerprint, std::vector<TotalKeys> totals = {}) {
    CommitMetadata metadata{{0, 2}, {0, clock_.Wall()}, clock_.Wall(), id_fingerprint, absl::Hours(1)};
    metadata.totals = std::move(totals);
    topics_.by_name[topic].commits[group] = {{offset, metadata.ToString()}, {offset, metadata.ToString()}};
  }

  // What is not fine, and counts of what is.
  std::string Check() { return Wrong(lethe::Check(options_, probes_, clock_)); }
  std::string CheckAll(std::vector<DaemonOptions> entries) {
    const auto list = TopicList::Create(std::move(entries));
    EXPECT_OK(list);
    return Wrong(lethe::Check(options_, *list, probes_, clock_, [this](int64_t done, int64_t total) {
      shown_.push_back(absl::StrCat(done, "/", total));
    }));
  }
  std::string Wrong(std::vector<Finding> findings) {
    found_ = std::move(findings);
    std::string wrong;
    for (const Finding& finding : found_) {
      if (finding.severity == Severity::kOk) continue;
      absl::StrAppend(&wrong, finding.severity == Severity::kError ? "error " : "warning ", finding.check,
                      finding.topic.empty() ? "" : absl::StrCat(" of ", finding.topic), ": ", finding.Text(),
                      "\n");
    }
    return wrong;
  }
  // The findings of this check that are fine: "where what\n".
  std::string Fine(const std::string& check) const {
    std::string fine;
    for (const Finding& finding : found_) {
      if (finding.severity != Severity::kOk || finding.check != check) continue;
      absl::StrAppend(&fine, finding.topic.empty() ? "" : absl::StrCat(finding.topic, ": "), finding.Text(),
                      "\n");
    }
    return fine;
  }
  int Count(const std::string& check) const {
    int count = 0;
    for (const Finding& finding : found_) count += finding.check == check ? 1 : 0;
    return count;
  }
  std::string Judged() const { return IdFingerprint(options_, 2); }

  DaemonOptions options_;
  const test::ManualClock clock_;
  FakeTopics topics_;
  FakeProbes probes_{topics_};
  std::vector<Finding> found_;
  std::vector<std::string> shown_;
};

TEST_F(CheckInMemory, AllIsWell) {
  Commit("g", "in", 800, Judged());
  EXPECT_EQ(Check(), "");
  EXPECT_EQ(Fine("brokers"), "brokers b:9092 answer, 1 of them\n");
  EXPECT_EQ(Fine("group"), "in: group g has committed offsets for 2 of 2 partitions\n");
  EXPECT_EQ(Fine("transactions"), "transactional id g/i/check may be used; lanes need the prefix g/\n");
  EXPECT_EQ(Fine("commits"), "group g takes offsets from this user (the attempt was aborted)\n");
  EXPECT_EQ(Fine("write"), "in: output topic out may be written to\n");
  EXPECT_EQ(Fine("read"), "in: input topic in may be read\n");
  EXPECT_EQ(Fine("ids"), "in: input topic in has an id at key in all of 1800 of its newest records\n");
  EXPECT_EQ(Fine("reach"), "in: input topic in holds all records that a restart replays\n");
  EXPECT_NE(Fine("record size"), "");
  EXPECT_EQ(probes_.tried, std::vector<std::string>{"g/i/check in 800"}) << "the committed offset, again";
  EXPECT_EQ(probes_.written, (std::map<std::string, int64_t>{{"out", 1001}})) << "one byte too large";
}

// Records keep their times: those older than the output's retention vanish from it.
TEST_F(CheckInMemory, WhatIsWrittenMustKeepTheOldestRecordThatIsRead) {
  for (FakeTopics::Record& record : topics_.by_name["in"].records) record.time -= absl::Hours(72);
  AddTopic("out", {{"retention.ms", "3600000"}});
  const std::string retention =
      "warning retention of in: output topic out keeps records for 1h (retention.ms=3600000), and the oldest "
      "record to be read is 3d30m old (in-0 offset 0, of 2023-11-11 21:43:20 UTC): records keep their times, "
      "so "
      "Kafka deletes it there soon after lethe has written it: kafka-configs.sh --bootstrap-server b:9092 "
      "--alter --entity-type topics --entity-name out --add-config retention.ms=604800000\n";
  EXPECT_EQ(Check(), retention);
  topics_.by_name["in"].config["retention.ms"] = "-1";
  EXPECT_THAT(Check(), EndsWith("retention.ms=-1\n"));
  topics_.by_name["in"].config["retention.ms"] = "259200000";
  EXPECT_THAT(Check(), HasSubstr("out --add-config retention.ms=522000000\n")) << "twice the age";
  topics_.by_name["in"].config["retention.ms"] = "604800000";

  Commit("g", "in", 899, Judged());
  EXPECT_THAT(Check(), HasSubstr("in-0 offset 899, of 2023-11-11 22:13:18 UTC"));
  Commit("g", "in", 900, Judged());
  EXPECT_EQ(Check(), "");
  topics_.by_name["in"].commits.clear();
  options_.start = Start::kLatest;
  EXPECT_EQ(Check(), "");
  options_.start = Start::kEarliest;

  // The other topics that get the records.
  AddTopic("out");
  options_.policies.on_duplicate = Action::kDivert;
  options_.divert = "copies";
  AddTopic("copies", {{"retention.ms", "3600000"}});
  EXPECT_THAT(Check(), HasSubstr("divert topic copies keeps records for 1h")) << Wrong(found_);
  AddTopic("copies", {{"retention.ms", "3600000"}, {"message.timestamp.type", "LogAppendTime"}});
  EXPECT_THAT(Check(), Not(HasSubstr("retention")));
  AddTopic("copies", {{"retention.ms", "3600000"}});
  options_.scope = Scope::kTopic;
  EXPECT_THAT(Check(), HasSubstr("divert topic copies keeps records for 1h")) << Wrong(found_);
}

TEST_F(CheckInMemory, CreatesWhatIsMissingLikeTheInput) {
  options_.policies.on_duplicate = Action::kDivert;
  options_.divert = "copies";
  topics_.by_name["in"].config["retention.ms"] = "86400000";
  topics_.by_name["in"].config["min.insync.replicas"] = "2";
  topics_.by_name.erase("out");
  EXPECT_THAT(Check(), HasSubstr("does not exist"));
  EXPECT_TRUE(topics_.created.empty());
  EXPECT_EQ(Wrong(lethe::Check(options_, probes_, clock_, Missing::kCreate)), "");
  EXPECT_EQ(topics_.created, (std::vector<std::string>{"out", "copies"}));
  for (const char* name : {"out", "copies"}) {
    EXPECT_EQ(topics_.by_name[name].partitions, 2);
    EXPECT_EQ(topics_.by_name[name].config["retention.ms"], "86400000");
    EXPECT_EQ(topics_.by_name[name].config["min.insync.replicas"], "2");
  }
  EXPECT_THAT(Fine("create"), HasSubstr("output topic out was created like the input, with 2 partitions"));
  topics_.created.clear();
  EXPECT_EQ(Wrong(lethe::Check(options_, probes_, clock_, Missing::kCreate)), "");
  EXPECT_TRUE(topics_.created.empty()) << "all are there";
  topics_.by_name.erase("out");
  topics_.may_create = absl::PermissionDeniedError("no");
  EXPECT_THAT(Wrong(lethe::Check(options_, probes_, clock_, Missing::kCreate)),
              HasSubstr("output topic out cannot be created: no: grant this user Create on topic out"));
}

// Timestamps in seconds are January 1970 to Kafka.
TEST_F(CheckInMemory, TimesInAnotherUnitAreFound) {
  for (FakeTopics::Record& record : topics_.by_name["in"].records) {
    record.time = absl::FromUnixMillis(absl::ToUnixSeconds(record.time));
  }
  EXPECT_THAT(Check(), HasSubstr("error times of in: input topic in has wrong timestamps"));
  EXPECT_THAT(Check(), HasSubstr("likely seconds"));
}

// After a renamed group, or one whose offsets expired.
TEST_F(CheckInMemory, AGroupThatBeginsWhereTheOutputHasRecordsIsRefused) {
  AddTopic("out").ends = {{0, 0}, {1, 5}};
  EXPECT_EQ(Check(), "") << "aborted transactions, or deleted records";
  topics_.by_name["out"].records = {{.partition = 1, .offset = 4, .time = clock_.Wall(), .key = "a"}};
  const std::string error =
      "error group of in: output topic out has records, and group g has no committed offsets of in";
  EXPECT_THAT(Check(), HasSubstr(error)) << Wrong(found_);
  EXPECT_THAT(Check(), HasSubstr("set output to out-2"));
  options_.accept_nonempty_output = true;
  EXPECT_EQ(Check(), "");
  options_.accept_nonempty_output = false;
  options_.scope = Scope::kTopic;
  EXPECT_THAT(Check(), HasSubstr(error)) << Wrong(found_);
  Commit("g-repartition", "in", 0, "");
  EXPECT_THAT(Check(), Not(HasSubstr(error))) << "it has begun";
  options_.scope = Scope::kPartition;
  options_.start = Start::kLatest;
  EXPECT_EQ(Check(), "");
  options_.start = Start::kEarliest;
  Commit("g", "in", 800, Judged());
  EXPECT_EQ(Check(), "");
}

// Merged inputs share what is judged: one that is new among them is no beginning.
TEST_F(CheckInMemory, OfMergedInputsOneThatIsNewIsNoBeginning) {
  AddInput("east");
  AddTopic("out").ends = {{1, 5}};
  topics_.by_name["out"].records = {{.partition = 1, .offset = 4, .time = clock_.Wall(), .key = "a"}};
  options_.scope = Scope::kTopic;
  options_.merged = {"in", "east"};
  const std::string begins = CheckAll({options_});
  EXPECT_THAT(begins, HasSubstr(" no committed offsets of in, east: lethe would write "));
  EXPECT_EQ(Count("group"), 1 + 4) << "one error, and what is fine of each input and group";
  const std::string judged = RepartitionTopic(options_);
  AddTopic(judged).ends = {{0, 1000}, {1, 1000}};
  Commit("g", judged, 800, Judged());
  Commit(RoutingGroup(options_), "in", 800, absl::StrCat(Judged(), "/2"));
  EXPECT_THAT(CheckAll({options_}), Not(HasSubstr("has records")));
}

TEST_F(CheckInMemory, WithoutBrokersNothingElseIsAsked) {
  topics_.refusal = absl::PermissionDeniedError("the brokers do not let this user in");
  EXPECT_EQ(Check(),
            "error brokers: brokers b:9092 do not answer: the brokers do not let this user in: correct the "
            "credentials\n");
  topics_.refusal = absl::InternalError("no route");
  EXPECT_EQ(Check(),
            "error brokers: brokers b:9092 do not answer: no route: see the address, the network and "
            "security.protocol\n");
  probes_.clients = absl::InvalidArgumentError("no such property");
  EXPECT_EQ(Check(),
            "error configuration: kafka is not accepted: no such property: see the properties under kafka\n");
  EXPECT_EQ(CheckAll({Entry("^i(.*)$", "o$1")}),
            "error configuration: kafka is not accepted: no such property: see the properties under kafka\n");
  EXPECT_TRUE(probes_.tried.empty());
  EXPECT_TRUE(probes_.written.empty());
}

TEST_F(CheckInMemory, AGroupThatMayNotBeUsedIsAnErrorOfItsOwn) {
  topics_.group_trouble["g"] = absl::PermissionDeniedError("not authorized");
  EXPECT_EQ(Check(),
            "error group: group g cannot be used: not authorized: grant this user Read on group g\n");
  EXPECT_EQ(probes_.tried, std::vector<std::string>{"g/i/check in 0"}) << "no offset is known";
}

TEST_F(CheckInMemory, ARefusedTransactionHasItsRemedy) {
  const auto with = [&](TriedTransaction answer) {
    probes_.transactions["g"] = {std::move(answer)};
    return Check();
  };
  const std::string where = "error transactions: transactional id g/i/check ";
  EXPECT_EQ(with({.begun = absl::PermissionDeniedError("no")}),
            where + "cannot be used: no: grant this user Write on transactional ids with the prefix g/\n");
  EXPECT_EQ(with({.begun = absl::FailedPreconditionError("no"), .timeout_ms = "900001"}),
            where +
                "cannot be used: no: transaction.timeout.ms is 900001 here, and the brokers' "
                "transaction.max.timeout.ms is lower: set transaction.timeout.ms under kafka to that at "
                "most, or raise that of the brokers\n");
  EXPECT_EQ(with({.begun = absl::UnavailableError("no")}), where + "cannot be used: no: check again\n");
  EXPECT_EQ(with({.begun = absl::InvalidArgumentError("no")}), where + "no: see kafka\n");
  EXPECT_EQ(Count("commits"), 0);
  EXPECT_EQ(with({.offsets = absl::PermissionDeniedError("no")}),
            "error commits: group g takes no offsets from this user: no: grant this user Read on group g\n");
  EXPECT_NE(Fine("transactions"), "");

  options_.process.delivery = Delivery::kAtLeastOnce;
  probes_.tried.clear();
  EXPECT_EQ(Check(), "");
  EXPECT_TRUE(probes_.tried.empty()) << "it needs no transactions";
}

TEST_F(CheckInMemory, AnotherCheckThatTakesTheIdSaysNothing) {
  probes_.transactions["g"] = {
      {.begun = absl::AbortedError("fenced")}, {.offsets = absl::AbortedError("fenced")}, {}};
  EXPECT_EQ(Check(), "");
  EXPECT_EQ(probes_.tried.size(), 3u);
  EXPECT_EQ(Count("transactions"), 1);

  probes_.tried.clear();
  probes_.transactions["g"] = {{.offsets = absl::AbortedError("fenced")}};
  EXPECT_EQ(Check(),
            "warning transactions: group g were not tried: other checks of this instance run at the same "
            "time: check again\n");
  EXPECT_EQ(probes_.tried.size(), 5u);
  EXPECT_EQ(Count("commits"), 0);
}

TEST_F(CheckInMemory, ATopicThatMayNotBeWrittenIsAnErrorAndADoubtAWarning) {
  options_.counters = {{"n", CounterMode::kDelta, {}, "counts"}};
  options_.divert = "rest";
  AddTopic("counts");
  AddTopic("rest");
  probes_.writes = {{"counts", absl::PermissionDeniedError("no")}, {"rest", absl::UnavailableError("late")}};
  EXPECT_EQ(Check(),
            "error write of in: counter topic counts may not be written to: no: grant this user Write on "
            "topic counts\n"
            "warning write of in: divert topic rest did not say whether it may be written to: late: see "
            "whether this user has Write on topic rest\n");
  EXPECT_EQ(Fine("write"), "in: output topic out may be written to\n");
  probes_.writes = {{"counts", absl::InvalidArgumentError("no")}, {"rest", absl::OkStatus()}};
  EXPECT_EQ(Check(), "error write of in: counter topic counts no: see kafka\n");
}

TEST_F(CheckInMemory, NothingIsSentThatMightBeAcceptedOrIsVeryLarge) {
  const std::string not_tried =
      "warning write of in: output topic out was not tried: its size limit is not known, or is very large: "
      "see whether this user has Write on topic out\n";
  AddTopic("out", {{"max.message.bytes", "16777217"}});
  EXPECT_THAT(Check(), HasSubstr(not_tried));
  topics_.by_name["out"].config.clear();
  EXPECT_THAT(Check(), HasSubstr(not_tried));
  EXPECT_TRUE(probes_.written.empty());
  EXPECT_EQ(Count("record size"), 0);
  AddTopic("out", {{"max.message.bytes", "16777216"}});
  EXPECT_THAT(Check(), Not(HasSubstr(not_tried)));
  EXPECT_EQ(probes_.written["out"], 16777217);
}

TEST_F(CheckInMemory, AnInputThatCannotBeReadIsAnErrorOrAWarning) {
  topics_.by_name["in"].may_be_read = absl::PermissionDeniedError("no");
  EXPECT_EQ(Check(),
            "error read of in: input topic in cannot be read: no: grant this user Read on topic in\n");
  topics_.by_name["in"].may_be_read = absl::InternalError("broken");
  EXPECT_EQ(Check(), "warning read of in: input topic in cannot be read: broken: check again\n");
}

TEST_F(CheckInMemory, AMissingTopicEndsTheCheckOfItsInput) {
  topics_.by_name.erase("out");
  EXPECT_THAT(Check(), HasSubstr("topics cannot be used: output topic out does not exist: create it"));
  EXPECT_EQ(Count("group") + Count("write") + Count("read"), 0);
}

TEST_F(CheckInMemory, OffsetsThatTheLogDoesNotHaveAreAnError) {
  Commit("g", "in", 901, Judged());
  EXPECT_THAT(Check(), HasSubstr("partition in-1 ends at 900, and group g has committed offset 901"));
  EXPECT_EQ(Fine("reach"), "") << "no restart reads it";
  Commit("g", "in", 800, Judged());
  topics_.by_name["in"].starts[1] = 850;
  EXPECT_THAT(
      Check(),
      HasSubstr("partition in-1 begins at offset 850, and group g has not read the records from offset 800"));
  topics_.by_name["in"].starts.clear();
  Commit("g", "in", 800, "other");
  EXPECT_THAT(Check(), HasSubstr("error group of in: group g cannot go on: in-0: "));
  topics_.by_name["in"].commits["g"] = {{50, ""}, {0, "lethe/1 g"}};
  EXPECT_THAT(Check(), HasSubstr("cannot go on: in-1 at offset 0: damaged commit metadata"));
  topics_.by_name["in"].commits["g"] = {{50, ""}, {}};
  EXPECT_THAT(Check(), HasSubstr("has offsets in 1 partition that another program committed"));
}

TEST_F(CheckInMemory, AnInputThatHasGrownIsAWarningOnceTheGroupHasBegun) {
  topics_.by_name["in"].partitions = 3;
  const std::string grown = " partitions of in: output topic out has 2 partitions, the input has 3";
  EXPECT_THAT(Check(), HasSubstr("error" + grown));
  Commit("g", "in", 800, IdFingerprint(options_, 3));
  EXPECT_THAT(Check(), HasSubstr("warning" + grown));
}

// What the group has still to read is needed, too, and the horizon before it.
TEST_F(CheckInMemory, TheLagCountsForTheRetention) {
  topics_.by_name["in"].config["retention.ms"] = "5400000";
  Commit("g", "in", 890, Judged());
  EXPECT_EQ(Check(), "");
  for (FakeTopics::Record& record : topics_.by_name["in"].records) record.time -= absl::Minutes(40);
  EXPECT_THAT(Check(), HasSubstr("less than the horizon of 1h and the lag of the group of 40m"));
  topics_.by_name["in"].commits["g"][0].offset = 900;
  topics_.by_name["in"].commits["g"][1] = {};
  EXPECT_THAT(Check(), Not(HasSubstr("retention"))) << "nothing is known of a partition without an offset";

  Commit("g", "in", 890, Judged());
  const auto with_times = [&](absl::Time time) {
    for (FakeTopics::Record& record : topics_.by_name["in"].records) record.time = time;
    return Check();
  };
  EXPECT_THAT(with_times(absl::InfinitePast()), Not(HasSubstr("retention"))) << "of any time";
  topics_.by_name["in"].config["retention.ms"] = "3300000";
  EXPECT_THAT(with_times(clock_.Wall() + absl::Minutes(10)), HasSubstr("less than the horizon of 1h:"));
}

TEST_F(CheckInMemory, TheLogMustReachBackForTheLagToo) {
  options_.stage.horizon = absl::Minutes(20);
  topics_.by_name["in"].starts = {{0, 10}, {1, 10}};
  topics_.by_name["in"].commits["g"] = {{900, ""}, {900, ""}};
  EXPECT_THAT(Check(), Not(HasSubstr("reach")));
  topics_.by_name["in"].commits["g"] = {{600, ""}, {600, ""}};
  EXPECT_THAT(Check(), HasSubstr("less than the horizon of 20m and the lag of the group of 10m"));
  // One that is empty has nothing that might be too young.
  topics_.by_name["in"].starts = {{1, 900}};
  topics_.by_name["in"].commits.clear();
  EXPECT_EQ(Check(), "");
}

TEST_F(CheckInMemory, TheSampleIsOfTheNewestRecordsOfEachPartition) {
  FakeTopics::Topic& topic = AddTopic("in");
  for (int i = 0; i < 30'000; ++i) {
    topic.records.push_back({.partition = i % 2,
                             .offset = i / 2,
                             .time = clock_.Wall() - absl::Minutes(30),
                             .key = absl::StrCat(i)});
  }
  topic.ends = {{0, 15'000}, {1, 15'000}};
  EXPECT_EQ(Check(), "");
  EXPECT_EQ(Fine("ids"), "in: input topic in has an id at key in all of 20000 of its newest records\n");
  // 30,000 records in half an hour.
  EXPECT_THAT(Fine("memory"), HasSubstr("has 16.67 records a second in the last hour"));
}

// Many records in a minute are not too few in an hour.
TEST_F(CheckInMemory, AYoungLogTellsNoRate) {
  FakeTopics::Topic& topic = AddTopic("in");
  for (int i = 0; i < 30'000; ++i) {
    topic.records.push_back({.partition = i % 2,
                             .offset = i / 2,
                             .time = clock_.Wall() - absl::Minutes(1),
                             .key = absl::StrCat(i)});
  }
  topic.ends = {{0, 15'000}, {1, 15'000}};
  EXPECT_EQ(Check(), "");
  EXPECT_THAT(Fine("memory"), HasSubstr("has records of a few minutes only"));
}

TEST_F(CheckInMemory, AListNamesItsTopicsAndSaysOnceWhatIsOfTheProcess) {
  for (const char* input : {"a.x", "b.x", "c.x"}) AddInput(input);
  for (const char* output : {"out.a", "out.b"}) AddTopic(output);
  const std::vector<DaemonOptions> entries = {Entry("^(.)\\.x$", "out.$1"), Entry("in", "missing"),
                                              Entry("^none(.*)$", "some$1"), Entry("^(c.*)$", "copy.$1"),
                                              Entry("^(i.*)$", "own.$1")};
  const std::string wrong = CheckAll(entries);
  EXPECT_THAT(wrong, HasSubstr("error topics of c.x: input topic c.x is not read: "));
  EXPECT_THAT(wrong, HasSubstr("warning topics: pattern ^none(.*)$ matches no topic: correct it, or"));
  EXPECT_THAT(wrong, HasSubstr("warning topics: pattern ^(i.*)$ matches no topic but in, which lethe"));
  EXPECT_THAT(wrong, HasSubstr("error topics of in: topics cannot be used: output topic missing"));
  EXPECT_EQ(Count("topics"), 4) << wrong;
  EXPECT_EQ(Fine("write"),
            "a.x: output topic out.a may be written to\nb.x: output topic out.b may be written to\n");
  EXPECT_EQ(shown_, (std::vector<std::string>{"0/3", "1/3", "2/3"}));
  EXPECT_EQ(probes_.tried.size(), 1u) << "once a group";
  EXPECT_EQ(Count("brokers"), 1);
  // Memory is of all together: two of them have a record a second.
  EXPECT_EQ(Count("memory"), 1);
  EXPECT_THAT(Fine("memory"), HasSubstr("process of 3 topics "));
  EXPECT_THAT(Fine("memory"), HasSubstr("has 2.0"));
}

// Each topic is seen by itself.
TEST_F(CheckInMemory, WhatOneTopicShowsIsNotSaidOfTheNext) {
  AddInput("next");
  AddTopic("narrow").partitions = 1;
  AddInput("last");
  Commit("g", "in", 800, Judged());
  const std::string wrong = CheckAll({Entry("in", "out"), Entry("next", "narrow"), Entry("last", "missing")});
  EXPECT_THAT(wrong, HasSubstr("error partitions of next: output topic narrow has 1 partition"))
      << "its group has not begun";
  EXPECT_THAT(Fine("memory"), HasSubstr("has 2.0"));

  topics_.group_trouble["g"] = absl::PermissionDeniedError("no");
  CheckAll({Entry("in", "out"), Entry("next", "narrow")});
  EXPECT_EQ(Count("group"), 1) << "it is of the process";
}

TEST_F(CheckInMemory, BothStagesOfAMissingRepartitionTopic) {
  options_.scope = Scope::kTopic;
  const DaemonOptions router = RoutingOptions(options_, "in");
  EXPECT_EQ(Check(), "");
  EXPECT_EQ(
      Fine("create"),
      "in: repartition topic g-in-repartition is made at the start, with 2 partitions; this user may\n");
  EXPECT_EQ(Fine("group"),
            "in: group g-repartition has committed offsets for 0 of 2 partitions\nin: group g can be used\n");
  EXPECT_EQ(probes_.tried, std::vector<std::string>{"g-repartition/i/check in 0"});
  EXPECT_TRUE(topics_.created.empty());

  topics_.may_create = absl::PermissionDeniedError("no");
  EXPECT_THAT(Check(), HasSubstr("error create of in: repartition topic g-in-repartition cannot be made: no: "
                                 "grant this user Create on topic g-in-repartition, or make it: "));
  topics_.group_trouble["g"] = absl::PermissionDeniedError("not yours");
  EXPECT_THAT(Check(),
              HasSubstr("error group: group g cannot be used: not yours: grant this user Read on group g\n"));

  topics_.may_create = {};
  topics_.group_trouble.clear();
  Commit("g-repartition", "in", 800, IdFingerprint(router, 2));
  EXPECT_THAT(Check(), HasSubstr("error create of in: repartition topic g-in-repartition is gone, and group "
                                 "g-repartition has routed records of in to it"));
  EXPECT_EQ(Count("create"), 1);
}

TEST_F(CheckInMemory, BothStagesOfARepartitionTopic) {
  options_.scope = Scope::kTopic;
  const std::string repartition = "g-in-repartition";
  const DaemonOptions router = RoutingOptions(options_, "in");
  AddTopic(repartition, RepartitionConfig({.name = "in", .config = Config()})).ends = {{0, 900}, {1, 900}};
  Commit("g-repartition", "in", 800, IdFingerprint(router, 2));
  Commit("g", repartition, 700, Judged());
  EXPECT_EQ(Check(), "");
  EXPECT_EQ(Fine("group"),
            "in: group g-repartition has committed offsets for 2 of 2 partitions\nin: group g has committed "
            "offsets for 2 of 2 partitions\n");
  EXPECT_EQ(probes_.tried,
            (std::vector<std::string>{"g-repartition/i/check in 800", "g/i/check g-in-repartition 700"}));
  EXPECT_EQ(
      Fine("write"),
      "in: repartition topic g-in-repartition may be written to\nin: output topic out may be written to\n");

  EXPECT_EQ(Fine("restart"), "") << "it replays the repartition topic";

  Commit("g", repartition, 901, Judged());
  const std::string beyond = Check();
  EXPECT_THAT(beyond, HasSubstr("error group of in: partition g-in-repartition-1 ends at 900, and group g "
                                "has committed offset 901"));
  // A commit is answered before it is stable.
  EXPECT_EQ(probes_.uncommitted.back(), repartition);

  topics_.by_name[repartition].commits.clear();
  EXPECT_THAT(Check(), HasSubstr("warning create of in: repartition topic g-in-repartition may have been "
                                 "deleted and created again"));
  Commit("g", repartition, 700, Judged());
  topics_.by_name[repartition].partitions = 3;
  EXPECT_THAT(Check(), HasSubstr("has so far routed by another id than key, or g-in-repartition has another "
                                 "number of partitions than before"));
  topics_.by_name[repartition].partitions = 2;
  Commit("g-repartition", "in", 901, IdFingerprint(router, 2));
  EXPECT_THAT(Check(),
              HasSubstr("partition in-1 ends at 900, and group g-repartition has committed offset 901"));
}

TEST_F(CheckInMemory, AGroupThatHasJudgedWithAnotherScopeCannotGoOn) {
  Commit("g", "in", 800, Judged());
  options_.scope = Scope::kTopic;
  EXPECT_THAT(Check(), HasSubstr("error group of in: group g cannot go on: group g has judged in so far"));
  EXPECT_EQ(Count("group"), 3);
  AddTopic("g-in-repartition");
  EXPECT_THAT(Check(), HasSubstr("error group of in: group g cannot go on: group g has judged in so far"));
  EXPECT_EQ(Count("group"), 2) << "its routers have routed nothing";

  options_.scope = Scope::kPartition;
  Commit("g", "g-in-repartition", 800, Judged());
  EXPECT_THAT(
      Check(),
      HasSubstr("error group of in: group g cannot go on: group g has judged g-in-repartition so far"));
  EXPECT_EQ(Count("group"), 1);
}

TEST_F(CheckInMemory, MergedInputsAreCheckedOneByOneAndNeedMemoryOnce) {
  AddInput("east");
  options_.scope = Scope::kTopic;
  options_.merged = {"in", "east"};
  topics_.by_name["east"].may_be_read = absl::PermissionDeniedError("no");
  EXPECT_EQ(CheckAll({options_}),
            "error read of east: input topic east cannot be read: no: grant this user Read on topic east\n");
  topics_.by_name["east"].may_be_read = {};
  EXPECT_EQ(CheckAll({options_}), "");
  EXPECT_EQ(Fine("read"), "in: input topic in may be read\neast: input topic east may be read\n");
  EXPECT_THAT(Fine("memory"), HasSubstr("process of 1 topics has 2.0"));
  EXPECT_EQ(shown_.back(), "0/1");
  options_.stage.memory_limit_bytes = LeastMemory(options_, 2) - 1;
  EXPECT_THAT(CheckAll({options_}), HasSubstr(", and its 2 partitions need at least "));
  EXPECT_EQ(Count("transactions"), 1);
}

TEST_F(CheckInMemory, TotalsThatAreLostAreAnError) {
  options_.counters = {{"n", CounterMode::kTotal, {}, "totals"}, {"m", CounterMode::kDelta, {}, "deltas"}};
  AddTopic("totals", {{"cleanup.policy", "compact"}}).ends = {{0, 5}};
  AddTopic("deltas");
  Commit("g", "in", 800, Judged(),
         {{TotalsFingerprint(options_.counters[0]), 7}, {TotalsFingerprint(options_.counters[1]), 7}});
  EXPECT_THAT(Check(),
              HasSubstr("error totals of in: counter topic totals lacks totals in 1 of 2 partitions: "
                        "counter n had 7 totals in totals-1 at"));
  topics_.by_name["totals"].ends[1] = 1;
  EXPECT_EQ(Check(), "");
  topics_.by_name.erase("totals");
  EXPECT_THAT(Check(), Not(HasSubstr("write of in"))) << "it is created later";
  EXPECT_THAT(Check(),
              HasSubstr("error totals of in: counter topic totals lacks totals in 2 of 2 partitions: "));
  Commit("g", "in", 800, Judged());
  EXPECT_EQ(Count("totals"), 1);
  EXPECT_THAT(Check(), Not(HasSubstr("totals of in")));
}

// Readers of the topic add up all that is in it.
TEST_F(CheckInMemory, TotalsOfARenamedCounterAreAWarning) {
  options_.counters = {{"new", CounterMode::kTotal, {}, "totals"}};
  FakeTopics::Topic& totals = AddTopic("totals", {{"cleanup.policy", "compact"}});
  totals.ends = {{0, 6}, {1, 6}};
  const auto add = [&](const CounterTotal& total, bool is_deleted = false) {
    const auto offset = static_cast<int64_t>(totals.records.size());
    totals.records.push_back(
        {.partition = 1, .offset = offset, .key = total.RecordKey(), .value = total.RecordValue()});
    if (is_deleted) totals.records.back().value.reset();
  };
  add({"new", "in", 1, "a", 1, 7});
  add({"old", "another input", 1, "a", 1, 7});
  EXPECT_EQ(Check(), "");
  add({"old", "in", 1, "a", 1, 7});
  EXPECT_EQ(Check(),
            "warning totals of in: counter topic totals also has totals of counter old of in, which `lethe "
            "counters` adds up with those of counter new: give the counter an output of its own, or its "
            "former name if it was renamed\n");
  add({"old", "in", 0, "a", 1, 7}, true);
  EXPECT_EQ(Count("totals"), 1);
  EXPECT_NE(Check(), "") << "of another partition";
  add({"old", "in", 1, "a", 1, 7}, true);
  EXPECT_EQ(Check(), "") << "they were deleted";

  totals.may_be_read = absl::PermissionDeniedError("no");
  EXPECT_EQ(
      Check(),
      "error read of in: counter topic totals cannot be read: no: grant this user Read on topic totals\n");
}

}  // namespace
}  // namespace lethe
