// What a person at a terminal sees of rebuilds, and of the log above it.
#include "src/cli/service/restore_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "src/cli/terminal/log.h"
#include "tests/support/pseudo_terminal.h"

namespace lethe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

struct Rebuild {
  Phase phase = Phase::kRestoring;
  int64_t from = 0;
  int64_t to = 0;
  int64_t left = 0;
};

DaemonReport Report(const std::vector<Rebuild>& partitions) {
  DaemonReport report;
  report.lanes.resize(1);
  for (size_t i = 0; i < partitions.size(); ++i) {
    PartitionReport partition;
    partition.partition = static_cast<int32_t>(i);
    partition.phase = partitions[i].phase;
    partition.restore.from = partitions[i].from;
    partition.restore.to = partitions[i].to;
    partition.restore.left = partitions[i].left;
    report.lanes[0].partitions.push_back(partition);
  }
  return report;
}

std::string Drawn(RestoreText& text, const std::vector<Rebuild>& partitions, double second) {
  const std::string line = text.Draw(Report(partitions), kNow + absl::Seconds(second), {}, 200);
  return line.substr(line.empty() ? 0 : line.find_first_not_of("# "));
}

TEST(RestoreText, IsThatOfAllRebuildsAtATime) {
  RestoreText text;
  // One that was rebuilt before does not count.
  EXPECT_EQ(Drawn(text, {{Phase::kActive, 0, 5000, 0}}, 0), "");
  EXPECT_EQ(Drawn(text, {{Phase::kActive, 0, 5000, 0}, {Phase::kRestoring, 0, 0, 0}}, 0), "");
  const std::vector<Rebuild> begin = {
      {Phase::kActive, 0, 5000, 0}, {Phase::kRestoring, 100, 1100, 1000}, {Phase::kRestoring, 0, 3000, 3000}};
  EXPECT_EQ(Drawn(text, begin, 1), "0 %, 0 of 4,000 restored, 2 of 2 partitions to go");
  const std::vector<Rebuild> middle = {
      {Phase::kActive, 0, 5000, 0}, {Phase::kActive, 100, 1100, 0}, {Phase::kRestoring, 0, 3000, 2000}};
  EXPECT_EQ(Drawn(text, middle, 10), "50 %, 2,000 of 4,000 restored, 10s left, 1 of 2 partitions to go");
  EXPECT_EQ(Drawn(text, {{Phase::kActive}, {Phase::kActive}, {Phase::kActive}}, 20), "");
  // The next begins again.
  EXPECT_EQ(Drawn(text, {{Phase::kRestoring, 0, 100, 75}}, 60),
            "25 %, 25 of 100 restored, 1 of 1 partitions to go");
}

class RestoreLineTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
  }
};

TEST_F(RestoreLineTest, StaysBeneathTheLogAndGoesWhenAllIsRestored) {
  test::PseudoTerminal terminal(100);
  StartLog({});
  std::atomic<bool> restored = false;
  const RestoreLine line([&] {
    return Report({{restored ? Phase::kActive : Phase::kRestoring, 0, 1000, restored ? 0 : 500}});
  });
  const std::string drawn = " 50 %, 500 of 1,000 restored, 1 of 1 partitions to go";
  ASSERT_TRUE(terminal.Await(drawn)) << terminal.Text();
  spdlog::info("a line of the log");
  ASSERT_TRUE(terminal.Await("a line of the log\r\n")) << terminal.Text();
  // The footer was taken away before, and is drawn again behind it.
  const size_t logged = terminal.Text().find("a line of the log");
  const size_t cleared = terminal.Text().rfind("\r\033[K", logged);
  ASSERT_NE(cleared, std::string::npos) << terminal.Text();
  EXPECT_THAT(terminal.Text().substr(cleared, logged - cleared), Not(HasSubstr("%"))) << terminal.Text();
  EXPECT_TRUE(terminal.Await("s left")) << terminal.Text();
  restored = true;
  for (int i = 0; i < 100 && !absl::EndsWith(terminal.Text(100), "\r\033[K"); ++i) {
  }
  EXPECT_THAT(terminal.Text(), EndsWith("\r\033[K"));
}

TEST_F(RestoreLineTest, IsNotThereForProgramsAndFiles) {
  {
    test::PseudoTerminal terminal(100);
    StartLog({.format = LogFormat::kJson});
    EXPECT_FALSE(LogHasFooter());
    SetLogFooter("nobody sees it");
    EXPECT_EQ(terminal.Text(), "");
  }
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  StartLog({});
  const bool has_footer = LogHasFooter();
  dup2(before, STDERR_FILENO);
  for (const int fd : {ends[0], ends[1], before}) close(fd);
  EXPECT_FALSE(has_footer);
}

TEST_F(RestoreLineTest, TheLogHasNoColourWhereNoneIsWanted) {
  setenv("NO_COLOR", "1", 1);
  test::PseudoTerminal terminal(100);
  StartLog({});
  spdlog::warn("plain");
  ASSERT_TRUE(terminal.Await("warning plain")) << terminal.Text();
  EXPECT_THAT(terminal.Text(), Not(HasSubstr("\033")));
}

}  // namespace
}  // namespace lethe
