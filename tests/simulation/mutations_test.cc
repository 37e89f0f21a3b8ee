// Each mistake of mutations/list.txt is found: so the simulation can fail.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <iostream>
#include <string>

#include "tests/simulation/mutations/mutated.h"
#include "tests/simulation/play.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/shrink.h"

namespace lethe::simulation {
namespace {

struct Mistake {
  const char* name;
  const char* why;
  uint64_t seeds;  // within which it is found
};

constexpr Mistake kMistakes[] = {
#include "mutations.inc"
};

class MutationsTest : public testing::TestWithParam<Mistake> {};

TEST_P(MutationsTest, IsFound) {
  spdlog::set_level(spdlog::level::off);
  mutation = GetParam().name;
  const uint64_t most = GetParam().seeds;
  uint64_t seed = 1;
  Played played;
  while (seed <= most && (played = Play(MakeSchedule(seed))).problems.empty()) ++seed;
  mutation = "";
  ASSERT_LE(seed, most) << GetParam().why;
  std::cout << GetParam().name << ": found with seed " << seed << ": "
            << played.problems.front().substr(0, played.problems.front().find('\n')) << std::endl;
  EXPECT_TRUE(Play(MakeSchedule(seed)).problems.empty()) << "without the mistake nothing is wrong";
}

TEST(ShrinkTest, TheLeastScheduleFailsAsTheWholeOneDoes) {
  spdlog::set_level(spdlog::level::off);
  mutation = "aborted-deltas-are-counted";
  uint64_t seed = 1;
  while (!FailsLike("counters are WRONG")(MakeSchedule(seed))) ++seed;
  const Schedule least = Shrink(MakeSchedule(seed), FailsLike("counters are WRONG"));
  EXPECT_EQ(KindOf(Play(least).problems.front()), "WRONG") << least.Story();
  mutation = "";
}

INSTANTIATE_TEST_SUITE_P(Mistakes, MutationsTest, testing::ValuesIn(kMistakes), [](const auto& each) {
  std::string name = each.param.name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

}  // namespace
}  // namespace lethe::simulation
