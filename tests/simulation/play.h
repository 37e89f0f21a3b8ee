// Plays a schedule, and judges what it leaves behind.
#ifndef LETHE_TESTS_SIMULATION_PLAY_H_
#define LETHE_TESTS_SIMULATION_PLAY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/faults/judge.h"
#include "tests/simulation/schedule.h"

namespace lethe::simulation {

struct Played {
  std::vector<std::string> problems;  // in words; none: all is as promised
  test::Judgement judgement;
  int64_t resets = 0;   // topics that an operator had to help
  absl::Duration took;  // of the simulation's time
  int64_t happened = 0;
  std::string log;  // of what happened, if it was kept
};

Played Play(const Schedule& schedule, bool keeps_log = false);

// What kind of problem it is: the first of its words that are in capitals.
std::string KindOf(absl::string_view problem);

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_PLAY_H_
