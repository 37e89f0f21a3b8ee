// The experiments. Each is a function from parameters and a seed to tables; the program runs them at the
// papers' scale, and lab_test at a small one. Time is simulated everywhere.
#ifndef LETHE_TESTS_LAB_EXPERIMENTS_H_
#define LETHE_TESTS_LAB_EXPERIMENTS_H_

#include <cstdint>
#include <string>
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
// one, the corrected filter and compact, with Equation 3 and the model with shared intervals.
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

// Figure 13: a load that rises and subsides twice, then stays; Algorithm 3 as printed (with Algorithm 2's
// text, and with its pseudocode), corrected, and compact. Each second all ids that were inserted are
// looked for: the window ends where the youngest lost one is.
struct AdaptationSize {
  double seconds = 150;
  double target = 0.01;
  int64_t horizon_ms = 22'000;  // (N + 1) t at the beginning
  int64_t probes = kPaperProbes;
  int64_t scale = 100;
  uint64_t seed = 1;
};
Table Figure13(const AdaptationSize& size);
// A load that was searched for: under it Algorithm 3 as printed takes the paper's steps at the paper's times.
// The load, and the run.
std::vector<Table> Figure13Searched(const AdaptationSize& size);

// The paper's errata (README.md), by number.
struct ErrataSize {
  int64_t probes = kPaperProbes;
  int repetitions = 10;
  uint64_t seed = 1;
};
Table Erratum1(const ErrataSize& size);  // Equation 1's middle form
Table Erratum2(const ErrataSize& size);  // Algorithm 2's pseudocode: what is found, by age in intervals
Table Erratum3(const ErrataSize& size);  // neighbours are not independent
Table Erratum4(const ErrataSize& size);  // empty filters behind the oldest hide what it holds alone
Table Erratum5(const ErrataSize& size);  // more filters of the same period, under a steady load
Table Erratum6(const ErrataSize& size);  // steps down, and the window
Table Erratum7(const ErrataSize& size);  // with N = 1 the present filter changes no verdict
// Rates of one Bloom filter that the slides and the Distributed Bloom Filter's paper state.
Table StatedRates(const ErrataSize& size);

// The slides' approaches on one run: no retries, no filter, an exact list, a plain Bloom filter, a recycled
// one, the FBF, and compact: memory, FPP, and what a counter says beside the truth.
struct SlidesSize {
  int64_t horizon_ms = 60'000;
  int64_t horizons = 10;
  int64_t ids_per_horizon = 60'000;
  int64_t bits_per_id = 32;     // of the filters of a fixed size
  double retried = 0.06;        // the acknowledgement was lost
  double requests_lost = 0.01;  // and are retried
  double target = 1e-3;
  int points_per_horizon = 8;
  int64_t probes = kPaperProbes;
  uint64_t seed = 1;
};
Table Slides(const SlidesSize& size);
// The recycled filter by its period, in horizons, beside the published one: the share of retries that it
// misses, and of updates that are lost.
Table RecycledPeriods(const SlidesSize& size, const std::vector<double>& periods);

// The opposite of a Bloom filter: misses and false positives by slots, load and threads.
struct OppositeSize {
  int64_t copies = 100'000;
  uint64_t seed = 1;
};
Table OppositeAlone(const OppositeSize& size);
// Copies that are sent at the distance of `load` times the slots, with several threads: not the same twice.
Table OppositeThreads(const OppositeSize& size);
// The article's other designs: verdicts with a lock for each index, and ids as intervals in sorted order.
Table OppositeVariants(const OppositeSize& size);
// The share of copies that are missed when `load` times as many new ids as there are slots come in between
// and a share of all ids is sent again: 1 - e^(-(1 + share) load). An id that took another's slot loses it to
// that one's copy, which comes before its own.
double OppositeModel(double load, double share);

// The Distributed Bloom Filter.
enum class Mapping {
  kShared,        // the same for all: a standard Bloom filter
  kPair,          // the paper's experiments
  kPairAndRound,  // with the paper's section 2.3, as lethe has it
};
struct NetworkSize {
  int nodes = 50;
  int neighbours = 10;
  int64_t elements = 1000;
  int64_t elements_per_node = 200;
  int iterations = 20;
  bool stop_when_converged = false;
  // What the paper leaves open: whether who is chosen as a neighbour has its chooser as one, too; and whether
  // a node sends one filter a round to all its neighbours, or what it has by then to one after the other.
  bool is_mutual = true;
  bool sends_at_once = false;
  // And k. The usual formulas, m = ceil(n / ln 2) and k = ceil(m / n ln 2), round twice and give 2, which
  // brings the paper's figures; the FPP is 56 % then.
  int hashes = 2;
  int runs = 10;
  uint64_t seed = 1;
};
// Nodes that have all elements, by iteration. Experiment 1: m is for all elements; 2: for the larger set of
// two.
Table Convergence(const std::string& name, const NetworkSize& size, const std::vector<int>& experiments,
                  const std::vector<Mapping>& mappings);
// The standard filter at the end, by what the paper leaves open.
Table NetworkReadings(const NetworkSize& size);
// Bytes to find the difference of two sets. (Peers draw nonces, so these vary a little from run to run.)
Table ReconcileCosts(int64_t keys, const std::vector<int64_t>& differences, uint64_t seed);

// FPP and misses over the whole window, for each engine: steady, Zipf, bursts, chosen ids, clocks that jump.
struct RobustnessSize {
  int64_t horizon_ms = 60'000;
  double horizons = 4;
  int64_t ids_per_horizon = 20'000;
  int64_t bits_per_id = 48;
  double target = 1e-3;
  int looks_per_horizon = 13;
  int64_t probes = 20'000;
  uint64_t seed = 1;
};
Table Robustness(const RobustnessSize& size);

}  // namespace lethe::lab

#endif  // LETHE_TESTS_LAB_EXPERIMENTS_H_
