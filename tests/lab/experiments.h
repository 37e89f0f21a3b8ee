// The experiments. Each is a function from parameters and a seed to tables; the program runs them at the
// papers' scale, and lab_test at a small one. Time is simulated everywhere.
#ifndef LETHE_TESTS_LAB_EXPERIMENTS_H_
#define LETHE_TESTS_LAB_EXPERIMENTS_H_

#include <cstdint>
#include <vector>

#include "tests/lab/probing.h"
#include "tests/lab/table.h"

namespace lethe::lab {

// Figures 8 to 12 of the Forgetful Bloom Filter's paper. The engines that size themselves have some KiB at
// least, more than the paper's filters have. So they get `scale` times the elements, and the memory limit is
// that of the paper's filter with `scale` times the bits, whose FPP is the same.
struct FigureSize {
  int64_t probes = kPaperProbes;  // for each filter
  int repetitions = 10;           // filters that differ in the seed alone
  int64_t scale = 100;
  uint64_t seed = 1;
};

// FPP against the elements, which come evenly in `periods` refresh periods: the simple check, the published
// one, the corrected filter, sliced and compact, with Equation 3 and the model with shared intervals.
Table Figures8And9(const FigureSize& size, const std::vector<int64_t>& elements);
// How much lower the published check's FPP is than the simple one's, by the periods in which the elements
// come.
Table Figure8Spread(const FigureSize& size, int64_t elements);
// FPP against m.
Table Figure10(const FigureSize& size, const std::vector<int64_t>& bits);
// FPP against the rate, for several refresh periods; as published (N = 1), and with (N + 1) t held.
Table Figure11(const FigureSize& size);
// FPP against the rate, for several numbers of filters.
Table Figure12(const FigureSize& size);

}  // namespace lethe::lab

#endif  // LETHE_TESTS_LAB_EXPERIMENTS_H_
