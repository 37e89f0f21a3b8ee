// The daemon from start to end, with brokers in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/pipeline/daemon/daemon.h"
#include "src/pipeline/report/readiness.h"
#include "src/pipeline/report/remarks.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "tests/support/fake_brokers.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/log_of.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Its waits are short, and something happens in each that is not a lane's.
class ShortWaits final : public Clock {
 public:
  absl::Time Steady() const override { return SystemClock().Steady(); }
  absl::Time Wall() const override { return SystemClock().Wall(); }
  bool WaitFor(const StopFlag& stop, absl::Duration duration) const override {
    if (duration >= absl::Milliseconds(250) && on_wait) on_wait();
    return SystemClock().WaitFor(stop, std::min(duration, absl::Milliseconds(1)));
  }

  std::function<void()> on_wait;
};

// All partitions of the topics that are there at its start are assigned to the first lane.
class FakeConnector final : public Connector {
 public:
  FakeConnector(FakeTopics& topics, FakeCluster& logs) : topics_(topics), logs_(logs) {}

  absl::StatusOr<std::unique_ptr<Brokers>> MakeBrokers(const DaemonOptions& options, Isolation) override {
    return std::make_unique<FakeBrokers>(topics_, options.process.group);
  }
  Streams MakeStreams(const Shared& shared, WorkerState& state,
                      std::function<absl::Status()> /*may_recreate*/) override {
    auto source = std::make_unique<FakeSource>(logs_);
    std::vector<At> assigned;
    for (int32_t flow = 0; flow < shared.flows.size() && state.lane == 0; ++flow) {
      for (int32_t id = 0; id < shared.flows.at(flow).topics.partitions; ++id) assigned.push_back({flow, id});
    }
    source->Tell(SourceEvent::Kind::kAssigned, assigned);
    auto sink = std::make_unique<FakeSink>(logs_);
    auto answers = std::make_unique<FakeAnswers>(logs_, shared.flows, 1);
    return {std::move(source), std::move(sink), std::move(answers)};
  }
  absl::StatusOr<std::unique_ptr<SnapshotLog>> OpenSnapshots(const DaemonOptions&) override {
    return absl::InternalError("no test takes snapshots");
  }
  std::unique_ptr<TotalsLog> OpenTotals(const DaemonOptions&, const std::string&) override { return nullptr; }

 private:
  FakeTopics& topics_;
  FakeCluster& logs_;
};

class DaemonRunTest : public testing::Test {
 protected:
  DaemonRunTest() {
    options_.process.group = "g";
    options_.process.brokers = "nowhere:1";
    options_.process.instance = absl::StrCat("daemon-run-test-", getpid());
    options_.process.exit_at_end = true;
    options_.record.id = *IdSpec::Parse("key");
    options_.input = "in";
    options_.output = "out";
  }

  DaemonOptions Entry(const std::string& input, const std::string& output) const {
    DaemonOptions entry = options_;
    entry.input = input;
    entry.output = output;
    return entry;
  }
  // Of the input with this number.
  void Append(int32_t flow, const std::string& input, const std::string& key) {
    logs_.Append({flow, 0}, {.key = key, .value = "v"});
    topics_.by_name[input].ends[0] = logs_.logs[{flow, 0}].end();
  }
  absl::Status Run(std::vector<DaemonOptions> entries = {}) {
    auto created = Daemon::Create(std::move(connector_), options_, nullptr, std::move(entries), clock_);
    if (!created.ok()) return created.status();
    daemon_ = *std::move(created);
    return daemon_->Run();
  }
  // For another life of the process.
  void Restart() {
    daemon_.reset();
    connector_ = std::make_unique<FakeConnector>(topics_, logs_);
  }
  std::vector<std::string> Out() const {
    std::vector<std::string> keys;
    for (const FakeCluster::Written& each : logs_.output) keys.push_back(*each.record.key);
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  using Keys = std::vector<std::string>;
  DaemonOptions options_;
  FakeTopics topics_ = {.by_name = {{"in", {}}, {"out", {}}}};
  FakeCluster logs_;
  ShortWaits clock_;
  std::unique_ptr<FakeConnector> connector_ = std::make_unique<FakeConnector>(topics_, logs_);
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(DaemonRunTest, ReadsToTheEndOfTheStart) {
  for (const char* key : {"a", "b", "a"}) Append(0, "in", key);
  EXPECT_OK(Run());
  EXPECT_EQ(Out(), (Keys{"a", "b"}));
  EXPECT_FALSE(daemon_->LeavesUnfinished());
  EXPECT_TRUE(daemon_->OnlyLeaves());
  EXPECT_FALSE(daemon_->IsUnanswered());
}

TEST_F(DaemonRunTest, WaitsForBrokersThatAreAway) {
  Append(0, "in", "a");
  topics_.is_away = true;
  int waits = 0;
  Keys reasons;
  clock_.on_wait = [&] {
    if (!topics_.is_away) return;
    reasons = daemon_->Report().not_ready;
    if (++waits == 3) topics_.is_away = false;
  };
  EXPECT_OK(Run());
  EXPECT_EQ(waits, 3);
  EXPECT_EQ(reasons, Keys{"waiting for the brokers at nowhere:1: no broker answers"});
  EXPECT_EQ(Out(), Keys{"a"});
}

TEST_F(DaemonRunTest, AStopWhileItWaitsEndsItWell) {
  topics_.is_away = true;
  clock_.on_wait = [&] { daemon_->Stop(); };
  EXPECT_OK(Run());
  EXPECT_TRUE(logs_.output.empty());
}

TEST_F(DaemonRunTest, WhetherBrokersAnswerAtTheEndIsKnown) {
  options_.process.exit_at_end = false;
  Append(0, "in", "a");
  clock_.on_wait = [&] {
    if (daemon_->Report().lanes.empty() || daemon_->Report().lanes[0].totals.unique == 0) return;
    topics_.is_away = true;
    daemon_->Stop();
  };
  EXPECT_OK(Run());
  EXPECT_TRUE(daemon_->IsUnanswered());
  EXPECT_FALSE(daemon_->LeavesUnfinished());
}

TEST_F(DaemonRunTest, AMissingTopicIsWaitedForAMoment) {
  topics_.by_name.erase("out");
  Append(0, "in", "a");
  clock_.on_wait = [&] { topics_.by_name["out"]; };
  EXPECT_OK(Run());
  EXPECT_EQ(Out(), Keys{"a"});
}

TEST_F(DaemonRunTest, ATopicOfSnapshotsThatCannotBeUsedEndsIt) {
  options_.process.snapshots.topic = "snapshots";
  topics_.may_create = absl::PermissionDeniedError("denied");
  const absl::Status ended = Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(ended)) << ended;
  EXPECT_THAT(ended.message(), HasSubstr("snapshots cannot go to topic snapshots: denied"));
}

TEST_F(DaemonRunTest, AStopWhileTheTopicOfSnapshotsIsAwayEndsItWell) {
  options_.process.snapshots.topic = "snapshots";
  topics_.trouble["snapshots"] = absl::UnavailableError("no leader");
  int waits = 0;
  clock_.on_wait = [&] {
    if (++waits == 3) daemon_->Stop();
  };
  EXPECT_OK(Run());
  EXPECT_EQ(waits, 3);
}

// A renamed group, or one whose offsets were deleted: it would write all events again.
TEST_F(DaemonRunTest, AGroupThatBeginsWhereTheOutputHasRecordsIsRefused) {
  Append(0, "in", "a");
  topics_.by_name["out"].ends[0] = 2;
  EXPECT_OK(Run()) << "an aborted transaction is no record";
  Restart();
  topics_.by_name["in"].commits.clear();
  topics_.by_name["out"].records = {{.key = "a"}};
  const absl::Status refused = Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("set output to out-2"));
  EXPECT_THAT(refused.message(), HasSubstr("set accept_nonempty_output"));
  Restart();
  options_.accept_nonempty_output = true;
  EXPECT_OK(Run());
}

// Nothing is created by it: what follows would take the topic for one that was recreated.
TEST_F(DaemonRunTest, ARunThatIsRefusedCreatesNothing) {
  Append(0, "in", "a");
  topics_.by_name["out"].ends[0] = 1;
  topics_.by_name["out"].records = {{.key = "a"}};
  options_.scope = Scope::kTopic;
  options_.counters = {{"n", CounterMode::kTotal, {.key = *Field::Parse("key")}, "totals"}};
  EXPECT_TRUE(absl::IsFailedPrecondition(Run()));
  EXPECT_TRUE(topics_.created.empty());
  // The other scope of the same group.
  Restart();
  topics_.by_name["out"].records.clear();
  topics_.by_name["in"].commits["g"] = {
      {1, CommitMetadata{{0, 1}, {0, absl::UnixEpoch()}, absl::UnixEpoch(), "x", absl::Hours(1)}.ToString()}};
  const absl::Status other = Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_THAT(other.message(), HasSubstr("--group g-2 --output out-2"));
  EXPECT_TRUE(topics_.created.empty());
}

TEST_F(DaemonRunTest, OfAListEachOutputThatHasRecordsIsRefused) {
  Append(0, "more", "b");
  topics_.by_name["in"].ends[0] = 1;
  for (const char* output : {"out", "out2"}) {
    topics_.by_name[output].ends[0] = 1;
    topics_.by_name[output].records = {{.key = "a"}};
  }
  topics_.by_name["more"].commits["g"] = {{0, ""}};
  EXPECT_FALSE(Run({Entry("in", "out"), Entry("more", "out2")}).ok());
  EXPECT_EQ(Out(), Keys{"b"}) << "the other one is read";
}

TEST_F(DaemonRunTest, AGroupThatBeginsWithItsOutputIsNotWarnedOf) {
  Append(0, "in", "a");
  EXPECT_EQ(WarningsOf([&] { EXPECT_OK(Run()); }), "");
}

TEST_F(DaemonRunTest, AGroupThatBeginsAtTheEndIsNotWarnedOf) {
  Append(0, "in", "a");
  topics_.by_name["out"].ends[0] = 1;
  topics_.by_name["out"].records = {{.key = "a"}};
  options_.start = Start::kLatest;
  EXPECT_EQ(WarningsOf([&] { EXPECT_OK(Run()); }), "");
}

TEST_F(DaemonRunTest, AnOutputThatKeepsRecordsTooShortlyIsWarnedOf) {
  Append(0, "in", "a");
  FakeTopics::Topic& input = topics_.by_name["in"];
  input.records = {{.time = clock_.Wall() - absl::Hours(72), .key = "a"}};
  topics_.by_name["out"].config = {{"cleanup.policy", "delete"}, {"retention.ms", "3600000"}};
  const std::string warnings = WarningsOf([&] { EXPECT_OK(Run()); });
  EXPECT_THAT(warnings, HasSubstr("output topic out keeps records for 1h (retention.ms=3600000)"));
  EXPECT_THAT(warnings, HasSubstr("3d old (in-0 offset 0"));
}

// Not only of the first record at the start: a producer may send old ones while lethe runs.
TEST_F(DaemonRunTest, RecordsThatTheOutputDeletesAreSaidAndCounted) {
  const int64_t now = absl::ToUnixMillis(clock_.Wall());
  for (int i = 0; i < 41; ++i) {
    const int64_t age_ms = i == 0 ? 0 : 72 * 3'600'000;
    logs_.Append({0, 0}, {.key = absl::StrCat(i), .value = "v", .timestamp_ms = now - age_ms});
  }
  topics_.by_name["in"].ends[0] = logs_.logs[{0, 0}].end();
  topics_.by_name["out"].config = {{"cleanup.policy", "delete"}, {"retention.ms", "3600000"}};
  const std::string warnings = WarningsOf([&] { EXPECT_OK(Run()); });
  EXPECT_THAT(warnings, HasSubstr("40 of the last 41 records that lethe wrote to out"));
  const DaemonReport report = daemon_->Report();
  ASSERT_FALSE(report.lanes.empty());
  EXPECT_EQ(report.lanes[0].totals.expired, 40);
}

TEST_F(DaemonRunTest, TimesInAnotherUnitAreSaidInLogAndReport) {
  for (int i = 0; i < 300; ++i) {
    logs_.Append({0, 0}, {.key = absl::StrCat(i), .value = "v", .timestamp_ms = 1'700'000'000 + i});
  }
  topics_.by_name["in"].ends[0] = logs_.logs[{0, 0}].end();
  const std::string warnings = WarningsOf([&] { EXPECT_OK(Run()); });
  EXPECT_THAT(warnings, HasSubstr("in: wrong timestamps"));
  EXPECT_THAT(warnings, HasSubstr("likely seconds"));
  EXPECT_EQ(Out().size(), 300u);
  const std::vector<std::string> remarks = Remarks(daemon_->Report());
  ASSERT_THAT(remarks, ElementsAre(HasSubstr("likely seconds")));
}

TEST_F(DaemonRunTest, ATopicThatWouldFeedItselfIsRefused) {
  options_.output = "in";
  EXPECT_TRUE(absl::IsInvalidArgument(Run()));
}

TEST_F(DaemonRunTest, APatternWaitsForTopicsThatItsUserMaySee) {
  topics_.by_name.clear();
  Keys reasons;
  clock_.on_wait = [&] {
    if (!topics_.by_name.empty()) return;
    reasons = daemon_->Report().not_ready;
    topics_.by_name["a-in"];
    topics_.by_name["a-out"];
    Append(0, "a-in", "a");
  };
  EXPECT_OK(Run({Entry("^(.*)-in$", "$1-out")}));
  ASSERT_THAT(reasons, ElementsAre(HasSubstr("grant this user Describe")));
  EXPECT_EQ(Out(), Keys{"a"});
}

TEST_F(DaemonRunTest, OfAListWhatCannotBeReadIsSaidAtTheEnd) {
  topics_.by_name["more"];
  Append(0, "in", "a");
  Append(1, "more", "b");
  Append(2, "held", "c");
  const absl::Status ended = Run({Entry("in", "out"), Entry("held", "missing"), Entry("more", "out2")});
  EXPECT_TRUE(absl::IsFailedPrecondition(ended));
  EXPECT_THAT(ended.message(), HasSubstr("held is not read"));
  const size_t more = ended.message().find("more is not read");
  EXPECT_NE(more, std::string::npos) << "its output is missing, too";
  EXPECT_EQ(ended.message().find("more is not read", more + 1), std::string::npos) << "once";
  EXPECT_EQ(Out(), Keys{"a"});
}

TEST_F(DaemonRunTest, OfAListUnreadTopicsAreCountedByNameAndByPattern) {
  topics_.by_name["a-in"];
  topics_.by_name["b-in"];
  Append(0, "in", "a");
  const std::vector<DaemonOptions> entries = {Entry("in", "out"), Entry("held", "missing"),
                                              Entry("^(.*)-in$", "$1-out")};
  EXPECT_TRUE(absl::IsFailedPrecondition(Run(entries)));
  const DaemonReport report = daemon_->Report();
  EXPECT_EQ(CountUnread(report, /*named=*/true), 1) << "held";
  EXPECT_EQ(CountUnread(report, /*named=*/false), 2) << "what strangers may create";
}

TEST_F(DaemonRunTest, OfAListATopicThatIsAboutToBeReadableIsRead) {
  topics_.by_name["more"];
  topics_.trouble["more"] = absl::UnavailableError("has no leader");
  Append(0, "in", "a");
  Append(1, "more", "b");
  clock_.on_wait = [&] { topics_.trouble.clear(); };
  topics_.by_name["out2"];
  EXPECT_OK(Run({Entry("in", "out"), Entry("more", "out2")}));
  EXPECT_EQ(Out(), (Keys{"a", "b"}));
}

TEST_F(DaemonRunTest, OnePartitionThatFailsIsSaidAtTheEnd) {
  topics_.by_name["in"].partitions = topics_.by_name["out"].partitions = 1;
  options_.policies.on_missing_id = Action::kFail;
  Append(0, "in", "a");
  logs_.Append({0, 0}, {.key = std::nullopt, .value = "without a key"});
  topics_.by_name["in"].ends[0] = 2;
  const absl::Status ended = Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(ended)) << ended;
  EXPECT_EQ(Out(), Keys{"a"});
}

// A line for each would fill the log after a crash.
TEST_F(DaemonRunTest, RestoresOfManyPartitionsTakeOneLine) {
  topics_.by_name["in"].partitions = topics_.by_name["out"].partitions = 17;
  logs_.output_partitions = 17;
  for (int32_t id = 0; id < 17; ++id) {
    for (const char* key : {"a", "b"}) logs_.Append(id, {.key = key, .value = "v"});
    topics_.by_name["in"].ends[id] = 2;
  }
  EXPECT_OK(Run());
  connector_ = std::make_unique<FakeConnector>(topics_, logs_);
  const std::string said = LogOf(spdlog::level::info, [&] { EXPECT_OK(Run()); });
  EXPECT_THAT(said, HasSubstr("lane 0: 17 partitions ready after replaying 34 offsets\n"));
  EXPECT_THAT(said, Not(HasSubstr("ready at offset")));
}

// Once may be an election.
TEST_F(DaemonRunTest, BrokersThatDoNotTellEndsTwiceAreNamed) {
  Lanes lanes(options_, *connector_, clock_);
  auto flow = std::make_unique<Flow>(options_, DedupStage::Create(options_.stage).value());
  flow->topics.partitions = flow->topics.output_partitions = flow->topics.least_partitions = 1;
  lanes.flows().Add(std::move(flow));
  StopFlag stop;
  lanes.Start(stop, [](const absl::Status& status) { EXPECT_OK(status); });
  while (lanes.Partitions(0).empty()) clock_.WaitFor(stop, absl::Milliseconds(1));
  const auto reasons = [&] {
    Keys told;
    std::vector<TopicProblem> problems;
    lanes.AddReasons({}, told, problems);
    return told.size();
  };
  EXPECT_TRUE(lanes.AskEnds());
  topics_.is_away = true;
  EXPECT_FALSE(lanes.AskEnds());
  EXPECT_EQ(reasons(), 0u);
  EXPECT_FALSE(lanes.AskEnds());
  EXPECT_EQ(reasons(), 1u);
  // A topic that was deleted is no trouble of the brokers.
  topics_.is_away = false;
  topics_.by_name.erase("in");
  EXPECT_TRUE(lanes.AskEnds());
  EXPECT_EQ(reasons(), 0u);
  stop.Request();
  lanes.Join();
}

}  // namespace
}  // namespace lethe::test
