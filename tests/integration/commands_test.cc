// The commands of Kafka's own tools that lethe's messages and pages tell people to run: as they are printed,
// on a broker.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "src/pipeline/assign/assigner.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/topic_rules.h"
#include "src/pipeline/report/remarks.h"
#include "tests/support/daemon.h"
#include "tests/support/free_port.h"
#include "tests/support/kafka_tools.h"
#include "tests/support/process.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

namespace fs = std::filesystem;

// Each command in a text: up to a mark of punctuation behind a word, or the end.
std::vector<std::string> CommandsIn(absl::string_view text) {
  std::vector<std::string> commands;
  std::vector<std::string> words;
  const auto end = [&] {
    if (words.size() > 1) commands.push_back(absl::StrJoin(words, " "));
    words.clear();
  };
  const std::string lines = absl::StrReplaceAll(text, {{"\\\n", " "}, {"\n", "; "}});
  for (absl::string_view word : absl::StrSplit(lines, ' ', absl::SkipEmpty())) {
    const size_t tool = word.find("kafka-");
    if (words.empty() && (tool == absl::string_view::npos || !absl::StrContains(word, ".sh"))) continue;
    if (words.empty()) word.remove_prefix(tool);
    const size_t last = word.find_last_not_of(":;,.)`");
    const bool ends = last + 1 < word.size();
    words.emplace_back(word.substr(0, last + 1));
    if (ends || word == "--execute") end();
  }
  end();
  return commands;
}

testing::AssertionResult Runs(const std::string& command) {
  const auto finished = RunKafkaTool(absl::StrSplit(command, ' '));
  if (!finished.ok()) return testing::AssertionFailure() << command << ": " << finished.status();
  // The tools of offsets say what is wrong, and end with 0.
  const bool is_well = finished->exit_code == 0 && !absl::StrContains(finished->out, "Error") &&
                       !absl::StrContains(finished->err, "Exception");
  if (is_well) return testing::AssertionSuccess();
  return testing::AssertionFailure() << command << " ended with " << finished->exit_code << "\n"
                                     << finished->out << finished->err;
}

// Offsets of a group that has no members.
void Commit(const std::string& group, const std::string& topic, int64_t offset) {
  auto producer = TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("commits"));
  ASSERT_OK(producer);
  ASSERT_OK((*producer)->Begin());
  ASSERT_OK((*producer)->SendOffsets(group, topic, {{offset, ""}, {offset, ""}}));
  ASSERT_OK((*producer)->Commit());
}

class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest() {
    options_.process.brokers = SharedBroker().bootstrap();
    options_.process.group = UniqueName("group");
    options_.input = UniqueName("orders");
    options_.output = options_.input + "-unique";
    options_.record.id = *IdSpec::Parse("json:/id");
    EXPECT_OK(SharedClient().CreateTopic(options_.input, 2));
    std::vector<Record> records(20);
    for (size_t i = 0; i < records.size(); ++i) {
      records[i].partition = static_cast<int32_t>(i % 2);
      records[i].value = "{}";
    }
    EXPECT_OK(SharedClient().Produce(options_.input, records));
    Commit(options_.process.group, options_.input, 5);
  }

  std::vector<int64_t> Offsets(const std::string& group) const {
    std::vector<int64_t> offsets;
    const std::vector<CommittedOffset> committed = SharedClient().Committed(group, options_.input).value();
    for (const CommittedOffset& each : committed) offsets.push_back(each.offset);
    return offsets;
  }

  DaemonOptions options_;
};

TEST_F(CommandsTest, AResetMovesTheOffsetsOfThePartitionsThatItNames) {
  const std::string& group = options_.process.group;
  const std::vector<std::string> commands = CommandsIn(ResetOrReadAgain(options_.process, options_.input));
  ASSERT_EQ(commands.size(), 1u);
  ASSERT_TRUE(Runs(commands[0]));
  EXPECT_EQ(Offsets(group), (std::vector<int64_t>{10, 10}));
  const std::vector<std::string> recreated = CommandsIn(RecreatedUnread(options_, 1, 5));
  ASSERT_EQ(recreated.size(), 1u);
  ASSERT_TRUE(Runs(recreated[0]));
  EXPECT_EQ(Offsets(group), (std::vector<int64_t>{10, 0}));
  ASSERT_TRUE(Runs(ResetOffsets(options_.process, group, {options_.input + ":0"}, "--to-offset 3")));
  EXPECT_EQ(Offsets(group), (std::vector<int64_t>{3, 0}));
}

TEST_F(CommandsTest, ATopicIsRoutedAgain) {
  const std::string repartition = RepartitionTopic(options_);
  const std::string routing = RoutingGroup(options_);
  ASSERT_OK(SharedClient().CreateTopic(repartition, 2));
  Commit(routing, options_.input, 5);
  const std::vector<std::string> again = CommandsIn(OtherId(JudgingOptions(options_)));
  ASSERT_EQ(again.size(), 2u);
  for (const std::string& command : again) ASSERT_TRUE(Runs(command));
  EXPECT_EQ(Offsets(routing), (std::vector<int64_t>{-1, -1}));
  EXPECT_FALSE(*SharedClient().Exists(repartition));
  Commit(routing, options_.input, 5);
  const std::vector<std::string> lost = CommandsIn(LostRepartitionTopic(JudgingOptions(options_)));
  ASSERT_EQ(lost.size(), 1u);
  ASSERT_TRUE(Runs(absl::StrReplaceAll(lost[0], {{"TIME", "2026-01-31T12:00:00.000"}})));
  EXPECT_NE(Offsets(routing), (std::vector<int64_t>{5, 5}));
}

TEST_F(CommandsTest, TheFindingsOfCheckAreMended) {
  ASSERT_OK(SharedClient().CreateTopic(options_.output, 1, {}));
  AllTopics topics;
  topics.input.name = options_.input;
  topics.input.partitions = 2;
  topics.output.name = options_.output;
  topics.output.partitions = 1;
  int commands = 0;
  for (const Finding& finding : ApplyTopicRules(options_, topics)) {
    for (const std::string& command : CommandsIn(finding.remedy)) {
      EXPECT_TRUE(Runs(command));
      ++commands;
    }
  }
  EXPECT_EQ(commands, 1) << "of partitions";
  EXPECT_EQ(*SharedClient().KnownPartitions(options_.output), 2);
  EXPECT_TRUE(Runs(AlterTopic(options_.process, options_.output, "retention.ms=604800000")));
}

TEST_F(CommandsTest, TheRemarksOfThePageAreFollowed) {
  const std::vector<std::string> quota =
      CommandsIn(ThrottleRemark(options_.process.brokers, "lane 0's consumer", 0.5));
  ASSERT_EQ(quota.size(), 1u);
  EXPECT_TRUE(Runs(quota[0]));

  auto hanging = TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("hanging"),
                                              {{"transaction.timeout.ms", "600000"}});
  ASSERT_OK(hanging);
  ASSERT_OK((*hanging)->Begin());
  Record record;
  record.value = "{}";
  record.partition = 0;
  ASSERT_OK((*hanging)->Produce(options_.input, {record}));
  PartitionReport report;
  report.topic = options_.input;
  report.log.position = 10;
  report.open_transaction_since = absl::Now();
  const std::vector<std::string> abort =
      CommandsIn(*OpenTransactionRemark(options_.process.brokers, {report}));
  ASSERT_EQ(abort.size(), 1u);
  EXPECT_TRUE(Runs(abort[0]));
  EXPECT_EQ((*SharedClient().EndOffsets(options_.input, Isolation::kReadCommitted))[0], 12);
}

// In the order of the pages, each page on topics and groups of its own as its names say.
TEST(PageCommandsTest, TheCommandsOfThePagesRun) {
  const std::string& brokers = SharedBroker().bootstrap();
  for (const std::string page : {"connectors/OPERATIONS.md", "dashboards/runbook.md", "README.md",
                                 "connectors/README.md", "dashboards/README.md", "SECURITY.md"}) {
    std::ifstream file(fs::path(LETHE_SOURCE_DIR) / page);
    std::stringstream text;
    text << file.rdbuf();
    ASSERT_FALSE(text.str().empty()) << page;
    for (std::string command : CommandsIn(text.str())) {
      // A shell's function, whose arguments follow, and a consumer that ends when it is interrupted.
      if (absl::StartsWith(command, "kafka-acls.sh") || absl::StartsWith(command, "kafka-console-")) continue;
      for (const std::string topic : {"orders", "lethe-orders-orders-repartition"}) {
        if (*SharedClient().Exists(topic)) continue;
        ASSERT_OK(SharedClient().CreateTopic(topic, 12));
      }
      for (const std::string group : {"lethe-orders", "lethe-orders-repartition"}) {
        const std::vector<CommittedOffset> committed = SharedClient().Committed(group, "orders").value();
        if (committed[0].offset < 0) Commit(group, "orders", 0);
      }
      // One broker has no three replicas.
      command = absl::StrReplaceAll(command, {{"localhost:9092", brokers},
                                              {"--replication-factor 3", "--replication-factor 1"},
                                              {"--config min.insync.replicas=2 ", ""}});
      EXPECT_TRUE(Runs(command)) << page;
    }
  }
}

// But for its port, and the folder of its data.
TEST(PageCommandsTest, PrometheusStartsAsThePageSays) {
  std::ifstream file(fs::path(LETHE_SOURCE_DIR) / "dashboards/README.md");
  std::string command;
  while (!absl::StartsWith(command, "prometheus ")) ASSERT_TRUE(std::getline(file, command));
  const std::string data = absl::StrCat(testing::TempDir(), "/", UniqueName("prometheus"));
  command = absl::StrReplaceAll(
      command.substr(0, command.find('#')),
      {{"dashboards/", absl::StrCat(LETHE_SOURCE_DIR, "/dashboards/")}, {"build/prometheus", data}});
  const int port = FreePort();
  ProcessOptions prometheus;
  prometheus.args = absl::StrSplit(command, ' ', absl::SkipEmpty());
  prometheus.args.push_back(absl::StrCat("--web.listen-address=127.0.0.1:", port));
  const auto process = Process::Start(prometheus);
  ASSERT_OK(process);
  EXPECT_TRUE(WaitUntil([&] { return HttpGet(port, "/-/ready").status == 200 || !(*process)->Running(); },
                        absl::Minutes(1)));
  EXPECT_TRUE((*process)->Running()) << (*process)->Stderr();
  EXPECT_TRUE(fs::exists(data));
  ASSERT_OK((*process)->Terminate(absl::Minutes(1)));
  fs::remove_all(data);
}

}  // namespace
}  // namespace lethe::test
