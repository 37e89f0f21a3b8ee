#include "src/cli/terminal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace lethe {
namespace {

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

}  // namespace
}  // namespace lethe
