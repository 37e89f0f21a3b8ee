// Each experiment of the lab at a small scale: what the papers claim, or what was found to be otherwise, as
// an inequality. The seed is fixed, so that a bound is met or missed for a reason; LETHE_SEED tries another.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/lab/experiments.h"

namespace lethe::lab {
namespace {

uint64_t Seed() {
  const char* const given = std::getenv("LETHE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : 1;
}

FigureSize Small() { return {.probes = 20'000, .repetitions = 8, .scale = 30, .seed = Seed()}; }

TEST(Lab, Figures8And9) {
  const Table table = Figures8And9(Small(), {600, 1000});
  for (const double elements : {600.0, 1000.0}) {
    const auto at = [&](const char* column, const char* filter) {
      return table.Number(column, {{"filter", filter}, {"x", elements}});
    };
    // The paper: the optimized check's FPP is much lower, and Equation 3 is close to what is measured.
    EXPECT_LT(at("fpp", "published"), 0.5 * at("fpp", "simple check"));
    EXPECT_GT(at("equation_3", "published"), 0.7 * at("fpp", "published"));
    EXPECT_LT(at("equation_3", "published"), 1.3 * at("fpp", "published"));
    // In the memory of the paper's filter, the others keep their target.
    EXPECT_LE(at("low", "sliced"), 1e-4);
    EXPECT_LE(at("low", "compact"), 1e-4);
    EXPECT_LT(at("high", "compact"), at("low", "published"));
  }
}

// The paper's "90 % lower" is that of elements which come in two refresh periods. In one there is nothing to
// be gained, and in three or more half as much.
TEST(Lab, Figure8DependsOnThePeriods) {
  const Table table = Figure8Spread(Small(), 600);
  EXPECT_EQ(table.Number("lower_by", {{"periods", int64_t{1}}}), 0);
  EXPECT_GT(table.Number("lower_by", {{"periods", int64_t{2}}}), 0.8);
  EXPECT_LT(table.Number("lower_by", {{"periods", int64_t{3}}}), 0.75);
}

TEST(Lab, Figure10EquationThreeFollowsTheSize) {
  const Table table = Figure10(Small(), {3000, 6250});
  const auto fpp = [&](double bits) { return table.Number("fpp", {{"filter", "published"}, {"x", bits}}); };
  EXPECT_GT(fpp(3000), 5 * fpp(6250));
  const double equation = table.Number("equation_3", {{"filter", "published"}, {"x", 3000.0}});
  EXPECT_GT(equation, 0.7 * fpp(3000));
  EXPECT_LT(equation, 1.3 * fpp(3000));
}

TEST(Lab, Figure11AShorterPeriodLowersTheFpp) {
  const Table table = Figure11(Small());
  const auto at = [&](const char* column, const char* filter, double rate) {
    return table.Number(column, {{"filter", filter}, {"x", rate}});
  };
  EXPECT_LT(at("high", "published, t = 2 s", 250), at("low", "published, t = 5 s", 250));
  EXPECT_LT(at("high", "published, t = 1 s", 250), at("low", "published, t = 3 s", 250));
  // The paper's factor of 1000 at 100/s, by the model.
  const double factor =
      at("shared_model", "published, t = 5 s", 100) / at("shared_model", "published, t = 1 s", 100);
  EXPECT_GT(factor, 300);
  EXPECT_LT(factor, 3000);
  // It is bought with the window.
  EXPECT_EQ(at("window_s", "published, t = 1 s", 100), 2);
  EXPECT_LE(at("low", "compact", 250), 1e-4);
}

TEST(Lab, Figure12MoreFiltersLowerTheFppOfARisingLoadAlone) {
  const Table table = Figure12(Small());
  const auto at = [&](const char* column, const char* filter, double rate) {
    return table.Number(column, {{"filter", filter}, {"x", rate}});
  };
  // The paper's 5.5 is that of the moment after a refresh, when the oldest of three filters is at its
  // fullest.
  EXPECT_GT(at("fpp", "3 filters, after a refresh", 100), 3 * at("fpp", "24 filters, after a refresh", 100));
  EXPECT_LT(at("fpp", "3 filters, before a refresh", 100),
            2 * at("fpp", "24 filters, before a refresh", 100));
}

}  // namespace
}  // namespace lethe::lab
