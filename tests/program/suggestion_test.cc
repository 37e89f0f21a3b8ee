#include "src/text/suggestion.h"

#include <gtest/gtest.h>

namespace lethe {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("input", "input"), 0u);
  EXPECT_EQ(EditDistance("inptu", "input"), 1u);
  EXPECT_EQ(EditDistance("comit_interval", "commit_interval"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(Nearest, NamesOnlyWhatMayBeMeant) {
  const std::vector<std::string> names = {"id", "input", "output", "horizon"};
  EXPECT_EQ(Nearest("horison", names), "horizon");
  EXPECT_EQ(Nearest("imput", names), "input");
  EXPECT_EQ(Nearest("ouptut", names), "output");
  EXPECT_EQ(Nearest("ids", names), "id");
  EXPECT_EQ(Nearest("retries", {"metrics"}), std::nullopt);
  EXPECT_EQ(Nearest("matrcs", {"metrics"}), "metrics");
  EXPECT_EQ(Nearest("colour", names), std::nullopt);
  EXPECT_EQ(Nearest("xy", names), std::nullopt);
  EXPECT_EQ(Nearest("", names), std::nullopt);
  EXPECT_EQ(Nearest(std::string(100'000, 'x'), names), std::nullopt);
}

}  // namespace
}  // namespace lethe
