// What a filter costs and how often it errs while ids come at a steady rate.
#ifndef LETHE_TESTS_BENCH_STEADY_H_
#define LETHE_TESTS_BENCH_STEADY_H_

#include <cstdint>
#include <string>

#include "lethe/filter.h"
#include "tests/bench/traffic.h"

namespace lethe::bench {

// Lengths are in horizons. With warm_by_insert the filter is not asked while it is filled, and gets new ids
// only: it ends as it would, but that it has stored its false positives too (less than one id in a hundred).
struct Plan {
  double warm = 2;  // before anything is measured
  bool warm_by_insert = false;
  double batched = 2;       // timed in blocks of 512
  double single = 1;        // timed one by one, without a clock between them
  double each_timed = 1;    // one by one, each with the clock
  double false_hits = 400;  // probing ends with so many: 5 % of deviation
  double most_probes = 4e8;
};

struct Figures {
  std::string layout = "";
  double window = 0;
  int generations = 0;
  double target_fpp = 0;
  double bits_per_id = 0;
  double fpp = 0;
  double false_hits = 0;  // on which fpp rests
  double fpp_modelled = 0;
  double ns_from_nothing = 0;  // per id of the first horizon, in blocks; 0 if it was filled by inserts
  double ns_batch = 0;
  double ns_single = 0;
  double slowest_us = 0;
  double helper_ns = 0;  // per id while it was filled: other threads' time, which makes pages present
  // What must not be: empty, or what is wrong, for people.
  std::string fault = "";
  double window_kept = 0;  // horizons; at least 1
  double missed = 0;       // copies called unique, once warm
};

// All but layout, generations and target. bits_per_id is the most memory that was held, over the ids of a
// horizon.
Figures MeasureSteady(Filter* filter, double window, const Plan& plan);

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_STEADY_H_
