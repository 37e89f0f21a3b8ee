// Each mistake of mutations/list.txt is found: so the simulation can fail.
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <iostream>
#include <new>
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

// Plays them in a process of its own, which an assertion ends, and returns the seed of the first that shows
// the mistake; beyond `most`: none does.
uint64_t FirstThatShows(const char* mistake, uint64_t most) {
  void* const shared =
      mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& seed = *new (shared) std::atomic<uint64_t>(1);
  const pid_t player = fork();
  if (player == 0) {
    mutation = mistake;
    for (; seed <= most; ++seed) {
      const Played played = Play(MakeSchedule(seed));
      if (played.problems.empty()) continue;
      std::cout << mistake << ": found with seed " << seed << ": "
                << played.problems.front().substr(0, played.problems.front().find('\n')) << std::endl;
      break;
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(player, &status, 0), player);
  const bool has_ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  EXPECT_TRUE(has_ended || (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT))
      << "it ended with " << status;
  const uint64_t found = seed;
  munmap(shared, sizeof(uint64_t));
  return found;
}

TEST_P(MutationsTest, IsFound) {
  spdlog::set_level(spdlog::level::off);
  const uint64_t most = GetParam().seeds;
  const uint64_t seed = FirstThatShows(GetParam().name, most);
  ASSERT_LE(seed, most) << GetParam().why;
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
