#include "src/cli/terminal/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/time/clock.h"
#include "tests/support/pseudo_terminal.h"

namespace lethe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// An environment in which a terminal has colours.
class TerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
  }
};

TEST_F(TerminalTest, ColoursATerminalThatWantsThem) {
  EXPECT_TRUE(TextStyle::For(true).colour);
  EXPECT_EQ(TextStyle::For(true).Bold("a"), "\033[1ma\033[0m");
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(TextStyle::For(true).colour);
  setenv("TERM", "xterm", 1);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(TextStyle::For(true).colour);
  EXPECT_EQ(TextStyle::For(true).Bold("a"), "a");
  setenv("NO_COLOR", "", 1);  // as if it were not there
  EXPECT_TRUE(TextStyle::For(true).colour);
}

TEST_F(TerminalTest, ColoursNoPipe) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  EXPECT_FALSE(TextStyle::Of(pipe_ends[1]).colour);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(TerminalTest, DrawsBlocksWhereTheLocaleHasThem) {
  setenv("LC_ALL", "is_IS.UTF-8", 1);
  EXPECT_TRUE(TextStyle::For(true).blocks);
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(TextStyle::For(true).blocks);
  unsetenv("LC_ALL");
}

TEST(TextStyle, BarsAreAsLongAsTheirShare) {
  const TextStyle blocks = {.blocks = true};
  EXPECT_EQ(blocks.Bar(0, 4), "");
  EXPECT_EQ(blocks.Bar(1e-9, 4), "\u258F");  // what is there shows
  EXPECT_EQ(blocks.Bar(0.5, 4), "\u2588\u2588");
  EXPECT_EQ(blocks.Bar(0.625, 4), "\u2588\u2588\u258C");
  EXPECT_EQ(blocks.Bar(2, 2), "\u2588\u2588");
  const TextStyle plain;
  EXPECT_EQ(plain.Bar(0, 4), "");
  EXPECT_EQ(plain.Bar(1e-9, 4), "#");
  EXPECT_EQ(plain.Bar(0.5, 4), "##");
}

TEST(Progress, SaysHowFarAndHowLong) {
  Progress progress = {.done = 0, .total = 4000, .unit = "records", .elapsed = absl::Seconds(30), .note = ""};
  EXPECT_EQ(ProgressFigures(progress), "  0 %, 0 of 4,000 records");
  progress.done = 1000;
  EXPECT_EQ(ProgressFigures(progress), " 25 %, 1,000 of 4,000 records, 1m30s left");
  progress.elapsed = absl::Milliseconds(1);  // too early to tell
  EXPECT_EQ(ProgressFigures(progress), " 25 %, 1,000 of 4,000 records");
  progress.done = 4001;
  progress.note = "so be it";
  EXPECT_EQ(ProgressFigures(progress), "100 %, 4,001 of 4,000 records, so be it");
  progress = {.note = "nothing to do"};
  EXPECT_EQ(ProgressFigures(progress), "100 %, nothing to do");
}

TEST(Progress, EachShareFillsTheSamePlace) {
  Progress progress = {.total = 1000, .note = "this"};
  for (progress.done = 0; progress.done <= 1000; ++progress.done) {
    const std::string line = DrawProgress(progress, {}, 80);
    ASSERT_EQ(line.find('%'), 20 + 1 + 4) << line;
    ASSERT_LE(line.size(), 80) << line;
    ASSERT_EQ(DrawProgress(progress, {}, 30).size(), 30) << "cut at the width";
    ASSERT_GE(DrawProgress(progress, {.blocks = true}, 1).size(), 20) << "a bar at least";
  }
}

TEST_F(TerminalTest, ProgressIsDrawnOverAgainAndGoneAtTheEnd) {
  test::PseudoTerminal terminal(60);
  {
    ProgressLine line("records");
    for (int i = 0; terminal.Text(10).empty() && i < 1000; ++i) line.Show(1, 2, "and on");
    EXPECT_THAT(terminal.Text(), HasSubstr("\033[36m"));
    EXPECT_THAT(terminal.Text(), HasSubstr(" 50 %, 1 of 2 records"));
    EXPECT_THAT(terminal.Text(), Not(HasSubstr("\n")));
  }
  EXPECT_THAT(terminal.Text(), EndsWith("\r\033[K"));
}

TEST_F(TerminalTest, ProgressHasNoColourWhereNoneIsWanted) {
  setenv("NO_COLOR", "1", 1);
  test::PseudoTerminal terminal(80);
  ProgressLine line("records");
  for (int i = 0; terminal.Text(10).empty() && i < 1000; ++i) line.Show(1, 2);
  EXPECT_THAT(terminal.Text(), HasSubstr(" 50 %, 1 of 2 records"));
  EXPECT_THAT(terminal.Text(), Not(HasSubstr("m")));
}

TEST_F(TerminalTest, NoProgressWhereItCannotBeDrawnOverAgain) {
  setenv("TERM", "dumb", 1);
  test::PseudoTerminal terminal(80);
  EXPECT_FALSE(CanRedraw(STDERR_FILENO));
  {
    ProgressLine line("records");
    for (const absl::Time end = absl::Now() + absl::Milliseconds(500); absl::Now() < end;) line.Show(1, 2);
  }
  EXPECT_EQ(terminal.Text(), "");
}

}  // namespace
}  // namespace lethe
