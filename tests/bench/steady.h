// What a filter costs and how often it errs while ids come at a steady rate.
#ifndef LETHE_TESTS_BENCH_STEADY_H_
#define LETHE_TESTS_BENCH_STEADY_H_

#include <cstdint>
#include <string>

#include "lethe/filter.h"
#include "tests/bench/traffic.h"

namespace lethe::bench {

// Lengths are in horizons.
struct Plan {
  double warm = 2;          // before anything is measured
  double batched = 2;       // timed in blocks of 512
  double single = 1;        // timed one by one, without a clock between them
  double each_timed = 1;    // one by one, each with the clock
  double falling = 1;       // at kFallenRate, after all else
  double false_hits = 400;  // probing ends with so many: 5 % of deviation
  double most_probes = 4e8;
};

// Of the rate before.
inline constexpr double kFallenRate = 0.02;

struct Figures {
  std::string layout = "";
  double window = 0;
  int generations = 0;
  double target_fpp = 0;
  double bits_per_id = 0;       // the most memory held in the last of these, over the ids of a horizon
  double most_bits_per_id = 0;  // the same from the beginning on
  double fallen_share = 0;      // of the most memory, what is held a horizon after the fall
  double fpp = 0;
  double false_hits = 0;  // on which fpp rests
  double fpp_modelled = 0;
  double ns_from_nothing = 0;  // per id of the first horizon, in blocks
  double ns_batch = 0;
  double ns_single = 0;
  double ns_falling = 0;
  double slowest_us = 0;
  // What must not be: empty, or what is wrong, for people.
  std::string fault = "";
  double window_kept = 0;  // horizons; at least 1
  double missed = 0;       // copies called unique, once warm
};

// All but layout, generations and target.
Figures MeasureSteady(Filter* filter, double window, const Plan& plan);

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_STEADY_H_
