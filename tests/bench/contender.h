// One layout at one size and target, measured.
#ifndef LETHE_TESTS_BENCH_CONTENDER_H_
#define LETHE_TESTS_BENCH_CONTENDER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/layouts.h"
#include "tests/bench/steady.h"
#include "tests/bench/tables.h"

namespace lethe::bench {

// A layout by name, made when its turn comes.
struct Contender {
  std::string name;
  std::function<absl::StatusOr<Layout>()> make;
};

// What is run for a table of layouts.
Plan PlanFor(const Extent& extent, const std::string& name, double window, double target_fpp);

// A step of the progress; while that plans, no figures. Where the window or the copies that passed are not
// what they must be, the figures have a fault.
absl::StatusOr<Figures> Measure(const Extent& extent, const Contender& contender, double window,
                                double target_fpp, const Plan& plan);

// The fault, if there is one, goes into the table.
void NoteFault(const Figures& figures, Table* table);

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_CONTENDER_H_
