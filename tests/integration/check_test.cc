// `lethe check` against a real broker, and what a running `lethe run` hears of its configuration and topics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <simdjson.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/support/flow.h"
#include "tests/support/free_port.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

testing::AssertionResult Says(const Finished& finished, const std::string& line) {
  if (absl::StrContains(finished.out, line)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no \"" << line << "\" in\n" << finished.out << finished.err;
}

TEST(CheckTest, AllIsWellAndNothingIsTouched) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  for (int p = 0; p < 2; ++p) flow.SendIds(absl::StrCat("p", p, "-"), 1, 500, p);
  const auto daemon = flow.Start();
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 1000; }));
  ASSERT_TRUE(daemon->AwaitReady());
  const std::vector<CommittedOffset> before = flow.Committed();
  const int64_t written = flow.OutputSize();
  const Finished check = flow.RunCommand("check");
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  for (const std::string line :
       {"ok       brokers ", "ok       partitions ", "ok       cleanup.policy ", "ok       group ",
        "ok       transactions ", "ok       commits ", "ok       write ", "ok       read ", "ok       ids ",
        "ok       keys ", "ok       clock ", "ok       memory ", " 0 warnings, 0 errors\n"}) {
    EXPECT_TRUE(Says(check, line));
  }
  // While lethe runs: it is neither fenced nor rebalanced, and nothing is written.
  EXPECT_EQ(flow.OutputSize(), written);
  EXPECT_EQ(flow.Committed()[0].offset, before[0].offset);
  EXPECT_EQ(flow.Committed()[0].metadata, before[0].metadata);
  flow.SendIds("p0-", 400, 600);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 1201; }));
  EXPECT_EQ(daemon->Metric("lethe_fences_total"), 0);
  EXPECT_EQ(daemon->Metric("lethe_transactions_aborted_total"), 0);
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// They have one transactional id.
TEST(CheckTest, SeveralAtOnceFindNothingWrong) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.SendIds("a", 1, 10);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    std::vector<Finished> checks(3);
    for (Finished& check : checks) threads.emplace_back([&] { check = flow.RunCommand("check"); });
    for (std::thread& thread : threads) thread.join();
    for (const Finished& check : checks) EXPECT_THAT(check.out, Not(HasSubstr("error    ")));
  }
}

TEST(CheckTest, WhatFitsBadlyIsAWarningWithARemedy) {
  Flow flow({LETHE_PROGRAM,
             2,
             {{"retention.ms", "86400000"}, {"retention.bytes", "1000"}},
             {{"max.message.bytes", "2000"}, {"message.timestamp.type", "LogAppendTime"}}});
  // A log of half an hour, of which a rate can be told.
  const int64_t begin = absl::ToUnixMillis(absl::Now() - absl::Minutes(30));
  std::vector<Record> records;
  for (int i = 0; i < 1000; ++i) {
    records.push_back(WithId(absl::StrCat(i % 900), i % 2 == 0 ? 0 : 1, begin + i * 1000));
    if (i % 3 == 0) records.back().key.reset();
  }
  records.push_back(WithId("a copy", 0));
  records.push_back(WithId("a copy", 1));
  records.push_back(WithId("none", 0));
  records.back().value = "{}";
  flow.Send(records);
  const Finished check = flow.RunCommand("check");
  EXPECT_EQ(check.exit_code, 1) << check.out << check.err;
  for (const std::string line : {"warning  retention ", "warning  retention.bytes ", "warning  size ",
                                 "warning  timestamps ", "warning  ids ", "warning  keys ", " 0 errors\n"}) {
    EXPECT_TRUE(Says(check, line));
  }
  EXPECT_TRUE(Says(check, "copies in different partitions"));
  // The daemon says at its start what it can know without reading.
  const Finished run = flow.RunToEnd();
  EXPECT_THAT(run.err, HasSubstr("max.message.bytes"));
  EXPECT_THAT(run.err, HasSubstr("raise retention.ms"));
}

// Records of three days ago in a topic that keeps an hour are gone when Kafka next looks.
TEST(CheckTest, WhatIsMissingIsCreatedLikeTheInputAndKeepsWhatIsRead) {
  Flow flow({LETHE_PROGRAM,
             3,
             {{"retention.ms", "2592000000"}, {"max.message.bytes", "2000000"}},
             {{"retention.ms", "3600000"}}});
  const int64_t old = absl::ToUnixMillis(absl::Now() - absl::Hours(72));
  std::vector<Record> records;
  for (int i = 0; i < 90; ++i) records.push_back(WithId(absl::StrCat("a", i), i % 3, old));
  flow.Send(records);
  const Finished check = flow.RunCommand("check");
  EXPECT_EQ(check.exit_code, 1) << check.out << check.err;
  EXPECT_TRUE(
      Says(check, "keeps records for 1h (retention.ms=3600000), and the oldest record to be read is 3d old"));
  EXPECT_TRUE(Says(check, "--add-config retention.ms=2592000000\n"));
  const std::string output = absl::StrCat(flow.output(), "-new");
  const Args args = {absl::StrCat("--output=", output)};
  EXPECT_EQ(flow.RunCommand("check", args).exit_code, 2);
  Args create = args;
  create.emplace_back("--create");
  const Finished created = flow.RunCommand("check", create);
  EXPECT_EQ(created.exit_code, 0) << created.out << created.err;
  EXPECT_TRUE(Says(created, absl::StrCat("output topic ", output,
                                         " was created like the input, with 3 partitions, 1 replica, "
                                         "max.message.bytes=2000000, min.insync.replicas=1, "
                                         "retention.bytes=-1, retention.ms=2592000000\n")));
  EXPECT_EQ(flow.RunCommand("check", args).exit_code, 0);
  const Finished run = flow.RunToEnd(args);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("retention.ms")));
  EXPECT_EQ(SharedClient().ReadAll(output, Isolation::kReadCommitted)->size(), 90u);
}

// What the group has still to read is needed, too, and the horizon before it.
TEST(CheckTest, TheInputMustBeKeptForTheLagToo) {
  Flow flow({LETHE_PROGRAM, 2, {{"retention.ms", "5400000"}}, {}});
  const int64_t now = absl::ToUnixMillis(absl::Now());
  std::vector<Record> records;
  for (int i = 0; i < 200; ++i) records.push_back(WithId(absl::StrCat("a", i), i % 2, now - 45 * 60'000));
  flow.Send(records);
  const Args args = {"--horizon=1h"};
  ASSERT_EQ(flow.RunToEnd(args).exit_code, 0);
  const Finished before = flow.RunCommand("check", args);
  EXPECT_EQ(before.exit_code, 0) << before.out << before.err;
  EXPECT_TRUE(Says(before, "(retention.ms=5400000), and the horizon is 1h\n"));
  records = {WithId("b", 1, now - 40 * 60'000)};
  flow.Send(records);
  const Finished check = flow.RunCommand("check", args);
  EXPECT_EQ(check.exit_code, 1) << check.out << check.err;
  EXPECT_TRUE(Says(check, "less than the horizon of 1h and the lag of the group of 40m"));
  EXPECT_TRUE(Says(check, "has an id at json:/id in all of 201 of its newest records"));
}

TEST(CheckTest, TheTopicThatSnapshotsGoToMustBeCompacted) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const std::string topic = UniqueName("snapshots");
  const Args args = {"--snapshots-to=topic:" + topic};
  EXPECT_FALSE(Says(flow.RunCommand("check", args), topic)) << "it is made at the start";
  ASSERT_OK(SharedClient().CreateTopic(topic, 1, {{"cleanup.policy", "delete"}}));
  const std::string finding = absl::StrCat("snapshot topic ", topic, " has cleanup.policy=delete");
  const Finished check = flow.RunCommand("check", args);
  EXPECT_EQ(check.exit_code, 1) << check.out << check.err;
  EXPECT_TRUE(Says(check, "warning  cleanup.policy  " + finding));
  EXPECT_TRUE(Says(check, "--add-config cleanup.policy=compact"));
  const Finished run = flow.RunToEnd(args);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr(finding));
}

TEST(CheckTest, BothStagesOfTheScopeOfATopic) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  flow.SendIds("a", 1, 100);
  const Args args = {"--scope=topic", "--horizon=1h"};
  const std::string topic = absl::StrCat(flow.group(), "-", flow.input(), "-repartition");
  const Finished before = flow.RunCommand("check", args);
  EXPECT_EQ(before.exit_code, 0) << before.out << before.err;
  EXPECT_TRUE(
      Says(before, absl::StrCat("repartition topic ", topic, " is made at the start, with 2 partitions")));
  EXPECT_FALSE(SharedClient().Exists(topic).value()) << "nothing is made by a check";
  ASSERT_EQ(flow.RunToEnd(args).exit_code, 0);
  const Finished after = flow.RunCommand("check", args);
  EXPECT_EQ(after.exit_code, 0) << after.out << after.err;
  for (const std::string& group : {flow.group(), flow.group() + "-repartition"}) {
    EXPECT_TRUE(Says(after, absl::StrCat("group ", group, " has committed offsets for 2 of 2 partitions")));
    EXPECT_TRUE(Says(after, absl::StrCat("group ", group, " takes offsets from this user")));
  }
  EXPECT_TRUE(Says(after, absl::StrCat("repartition topic ", topic, " has 2 partitions, the input has 2")));
  EXPECT_TRUE(Says(after, absl::StrCat("repartition topic ", topic, " may be written to")));
}

TEST(CheckTest, WhatCannotRunIsAnError) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  const std::pair<Args, std::string> cases[] = {
      {{"--input=nowhere"}, "input topic nowhere does not exist: create it"},
      {{absl::StrCat("--brokers=127.0.0.1:", FreePort())}, "error    brokers "},
      {{"--horizon=soon"}, "error    configuration   configuration is wrong: --horizon"},
  };
  for (const auto& [args, line] : cases) {
    const Finished check = flow.RunCommand("check", args);
    EXPECT_EQ(check.exit_code, 2) << check.out << check.err;
    EXPECT_TRUE(Says(check, line));
  }
  // The command can be copied to the end of its line.
  EXPECT_TRUE(
      Says(flow.RunCommand("check", {"--input=nowhere"}), "--create --topic nowhere --partitions 1\n"));
  Args json = {"--input=nowhere", "--format=json"};
  const Finished check = flow.RunCommand("check", json);
  simdjson::dom::parser parser;
  const simdjson::dom::element all = parser.parse(check.out);
  EXPECT_EQ(all["errors"].get_int64().value(), 1);
}

// Nor does a run go on from what another version has committed, or from what is damaged.
TEST(CheckTest, UnreadableCommitMetadataIsAnErrorAndEndsARun) {
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  flow.SendIds("a", 1, 10);
  flow.ResetGroup({{5, ""}, {0, "lethe/3 o=0"}});
  const std::string text = absl::StrCat(
      flow.input(),
      "-1 at offset 0: the commit was written in format lethe/3, this program reads lethe/1 and");
  const Finished check = flow.RunCommand("check");
  EXPECT_EQ(check.exit_code, 2) << check.out << check.err;
  EXPECT_TRUE(Says(check, absl::StrCat("group ", flow.group(), " cannot go on: ", text)));
  const Finished run = flow.RunToEnd();
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr(text));
}

TEST(CheckTest, RecordsDeletedBeforeTheyWereRoutedAreAnErrorAndSkippedWhereTheUserSaysSo) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.SendIds("a", 1, 100);
  const Args args = {"--scope=topic", "--horizon=1h"};
  ASSERT_EQ(flow.RunToEnd(args).exit_code, 0);
  flow.SendIds("b", 1, 100);
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, 150));
  const Finished check = flow.RunCommand("check", args);
  EXPECT_EQ(check.exit_code, 2) << check.out << check.err;
  EXPECT_TRUE(
      Says(check, absl::StrCat("partition ", flow.input(), "-0 begins at offset 150, and group ",
                               flow.group(), "-repartition has not read the records from offset 100")));
  const Args skip = args + Args{"--on-unread-deleted=continue"};
  EXPECT_TRUE(Says(flow.RunCommand("check", skip), "warning  unread records "));
  EXPECT_EQ(flow.RunToEnd(skip).exit_code, 0);
  EXPECT_EQ(flow.OutputIds().size(), 150u);
}

// No producer will ever be allowed that, so it is no use to make another.
TEST(CheckTest, ATransactionTimeoutAboveTheBrokersLimitEndsItWithTheReason) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.SendIds("a", 1, 100);
  const Args args = {"--kafka=transaction.timeout.ms=900001"};  // the default maximum is 15 minutes
  const std::string remedy =
      "transaction.timeout.ms is 900001 here, and the brokers' transaction.max.timeout.ms is lower: set "
      "transaction.timeout.ms under kafka to that at most, or raise that of the brokers";
  const Finished check = flow.RunCommand("check", args);
  EXPECT_EQ(check.exit_code, 2) << check.out << check.err;
  EXPECT_TRUE(Says(check, "error    transactions "));
  EXPECT_TRUE(Says(check, remedy));
  const Finished run = flow.RunToEnd(args);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr(remedy));
  EXPECT_EQ(flow.RunToEnd().exit_code, 0);
  EXPECT_TRUE(flow.ExactlyOnce());
}

TEST(RunTest, ASessionTimeoutThatTheBrokersRefuseEndsItWithTheReason) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const Finished run = flow.RunToEnd({"--kafka=session.timeout.ms=10", "--kafka=heartbeat.interval.ms=3"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("the brokers refuse session.timeout.ms 10: "));
}

// What has nowhere to go is held where the group is at work, and nothing is begun so.
TEST(RunTest, AnInputThatHasGrownIsAWarningOnceTheGroupHasBegun) {
  for (const std::string scope : {"--scope=partition", "--scope=topic"}) {
    Flow flow({LETHE_PROGRAM, 1, {}, {}});
    flow.SendIds("a", 1, 100);
    ASSERT_EQ(flow.RunToEnd({scope}).exit_code, 0);
    ASSERT_OK(SharedClient().AddPartitions(flow.input(), 3));
    const std::string finding =
        absl::StrCat("output topic ", flow.output(), " has 1 partition, the input has 3");
    const auto daemon = flow.Start({scope});
    EXPECT_TRUE(daemon->AwaitLog(finding));
    flow.SendIds("b", 1, 10, 2);
    EXPECT_TRUE(daemon->AwaitLog(flow.input() + "-2 is held at offset 0: records keep the partition"));
    EXPECT_TRUE(daemon->Stop());

    const Args fresh = {scope, "--group=" + UniqueName("new"), "--accept-nonempty-output=true"};
    const Finished run = flow.RunToEnd(fresh);
    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_THAT(run.err, HasSubstr(finding));
  }
}

// A daemon that nobody can end with Ctrl-C any more would keep its partitions.
TEST(RunTest, EndsWhenItsTerminalIsClosed) {
  const std::string http = absl::StrCat("127.0.0.1:", FreePort());
  const std::string brokers = absl::StrCat("127.0.0.1:", FreePort());
  const auto [terminal, inside] = OpenTerminal();
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    login_tty(inside);
    execl(LETHE_PROGRAM, LETHE_PROGRAM, "run", "--brokers", brokers.c_str(), "--input", "a", "--output", "b",
          "--id", "key", "--http", http.c_str(), nullptr);
    _exit(127);
  }
  close(inside);
  // Its log has begun, so that it waits for signals.
  std::string log;
  char buffer[1024];
  while (!absl::StrContains(log, "status page")) {
    const ssize_t size = read(terminal, buffer, sizeof buffer);
    if (size <= 0) break;
    log.append(buffer, static_cast<size_t>(size));
  }
  EXPECT_THAT(log, HasSubstr("status page"));
  close(terminal);
  int status = -1;
  const bool ended = WaitUntil([&] { return waitpid(pid, &status, WNOHANG) == pid; }, absl::Seconds(20));
  EXPECT_TRUE(ended);
  if (!ended) {
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  }
  EXPECT_EQ(status, 0);
}

// The daemon as systemd starts it, with a log for programs.
TEST(ServiceTest, TellsTheServiceManagerHowItIsAndLogsLinesOfJson) {
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("lethe-notify-", getpid())).string();
  const int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(manager, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::string heard;
  const auto hears = [&](const std::string& text) {
    char datagram[512];
    ssize_t size = 0;
    while ((size = recv(manager, datagram, sizeof datagram, MSG_DONTWAIT)) > 0) {
      absl::StrAppend(&heard, absl::string_view(datagram, static_cast<size_t>(size)), "\n");
    }
    return absl::StrContains(heard, text);
  };
  Flow flow({LETHE_PROGRAM, 2, {}, {}});
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  setenv("WATCHDOG_USEC", "20000000", 1);
  const auto daemon = flow.Start({"--log-format=json", "--id=json:/a\n\"b\""});
  unsetenv("NOTIFY_SOCKET");
  unsetenv("WATCHDOG_USEC");
  EXPECT_TRUE(daemon->Await([&] { return hears("STATUS=judging 2 partitions of " + flow.input() + "\n"); }))
      << heard;
  EXPECT_EQ(heard.find("READY=1\n"), 0u) << heard;
  EXPECT_TRUE(daemon->Await([&] { return hears("WATCHDOG=1\n"); })) << heard;
  flow.SendIds("a", 1, 10);
  EXPECT_TRUE(daemon->AwaitLog("passed without a verdict"));
  EXPECT_FALSE(hears("STOPPING=1"));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(hears("STOPPING=1\n")) << heard;
  simdjson::dom::parser parser;
  for (const absl::string_view line : absl::StrSplit(daemon->Log(), '\n', absl::SkipEmpty())) {
    EXPECT_EQ(parser.parse(std::string(line))["message"].error(), simdjson::SUCCESS) << line;
  }
  close(manager);
  std::filesystem::remove(path);
}

TEST(ExpansionTest, PartitionsThatTheOutputDoesNotHaveYetWait) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const auto daemon = flow.Start();
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 100; }));
  ASSERT_OK(SharedClient().AddPartitions(flow.input(), 3));
  for (int p = 1; p < 3; ++p) flow.SendIds(absl::StrCat("p", p, "-"), 1, 100, p);
  ASSERT_TRUE(daemon->AwaitLog(flow.input() + "-2 is held at offset 0: records keep the partition"));
  EXPECT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_partition_failed") == 2; }));
  EXPECT_THAT(daemon->Get("/readyz").body,
              HasSubstr(absl::StrCat("--alter --topic ", flow.output(), " --partitions 3")));
  simdjson::dom::parser parser;
  const simdjson::padded_string status(daemon->Get("/status").body);
  EXPECT_EQ(std::string(parser.parse(status)["partitions"].at(2)["phase"].get_string().value()), "held");
  // The others go on, and nothing is tried again and again.
  flow.SendIds("a", 51, 150);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 200; }));
  EXPECT_EQ(daemon->Metric("lethe_transactions_aborted_total"), 0);
  EXPECT_TRUE(daemon->Stop());
  // Nor does a new process refuse to go on with what has somewhere to go.
  const auto second = flow.Start();
  ASSERT_TRUE(second->AwaitLog("has 1 partition, the input has 3"));
  ASSERT_TRUE(second->Await([&] { return second->Metric("lethe_partition_failed") == 2; }));
  flow.SendIds("a", 101, 200);
  ASSERT_TRUE(second->Await([&] { return second->Metric("lethe_records_total") == 100; }));
  ASSERT_OK(SharedClient().AddPartitions(flow.output(), 3));
  ASSERT_TRUE(second->Await([&] { return second->Metric("lethe_records_total") == 300; }));
  EXPECT_TRUE(second->AwaitReady());
  EXPECT_TRUE(second->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

}  // namespace
}  // namespace lethe::test
