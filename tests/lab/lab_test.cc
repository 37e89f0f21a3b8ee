// Each experiment of the lab at a small scale: what the papers claim, or what was found to be otherwise, as
// an inequality. The seed is fixed, so that a bound is met or missed for a reason; LETHE_SEED tries another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/lab/experiments.h"
#include "tests/lab/store/experiments.h"

namespace lethe::lab {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

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
    // In the memory of the paper's filter, compact keeps its target.
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
  // Importance sampling finds the same where plain sampling can, and goes on where it cannot.
  const Table wide = Figure10(Small(), {15'000});
  const auto rare = [](const Table& from, const char* column, double bits) {
    return from.Number(column, {{"filter", "published, by importance"}, {"x", bits}});
  };
  EXPECT_LT(rare(table, "low", 3000), table.Number("high", {{"filter", "published"}, {"x", 3000.0}}));
  EXPECT_GT(rare(table, "high", 3000), table.Number("low", {{"filter", "published"}, {"x", 3000.0}}));
  EXPECT_LT(rare(wide, "low", 15'000), rare(wide, "equation_3", 15'000));
  EXPECT_GT(rare(wide, "high", 15'000), rare(wide, "equation_3", 15'000));
  EXPECT_GT(rare(wide, "low", 15'000), 0);
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

// In the paper's memory compact keeps its target by shortening its window; with enough memory it keeps both.
TEST(Lab, Figures11And12CompactKeepsTargetAndWindowWithEnoughMemory) {
  for (const Table& table : {Figure11(Small()), Figure12(Small())}) {
    for (const double hits : table.Numbers("limit_hits", {{"filter", "compact, enough memory"}})) {
      EXPECT_EQ(hits, 0);
    }
    for (const double low : table.Numbers("low", {{"filter", "compact, enough memory"}}))
      EXPECT_LE(low, 1e-4);
    const std::vector<double> windows = table.Numbers("window_s", {{"filter", "compact, enough memory"}});
    EXPECT_GE(windows.back(), 10);
  }
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

AdaptationSize SmallAdaptation() { return {.seconds = 120, .probes = 2000, .scale = 10, .seed = Seed()}; }

// As printed, Algorithm 3 lets duplicates pass within the horizon, exceeds its target several times over, and
// does not see it.
TEST(Lab, Figure13AlgorithmThreeAsPrinted) {
  const Table table = Figure13(SmallAdaptation());
  const auto most = [&](const char* column, const char* filter) {
    const std::vector<double> numbers = table.Numbers(column, {{"filter", filter}});
    return *std::max_element(numbers.begin(), numbers.end());
  };
  EXPECT_GT(most("missed", "printed"), 0);
  EXPECT_GT(most("low", "printed"), 3 * 0.01);
  EXPECT_LT(most("believed", "printed"), 2 * 0.01);
  EXPECT_GT(most("filters", "printed"), 100);
  for (const char* filter : {"corrected", "compact"}) {
    EXPECT_EQ(most("missed", filter), 0) << filter;
    // At no second is the rate over the target, as far as can be told from so few probes.
    EXPECT_LT(most("low", filter), 0.01) << filter;
  }
}

// There is a load under which it takes the paper's steps: 6 filters at 16 s, 4 at 19 s, 8 at 28 s. But from
// 10 s two steps down lead to 12 s, not to the paper's 13 s.
TEST(Lab, Figure13ALoadBringsThePapersTimes) {
  const Table table = Figure13Searched(SmallAdaptation()).at(1);
  const auto at = [&](const char* column, int64_t second) {
    return table.Number(column, {{"second", second}});
  };
  EXPECT_EQ(at("filters", 15), 3);
  EXPECT_EQ(at("filters", 16), 6);
  EXPECT_EQ(at("period_s", 16), 10);
  EXPECT_EQ(at("filters", 19), 4);
  EXPECT_EQ(at("period_s", 19), 12);
  EXPECT_EQ(at("filters", 27), 4);
  EXPECT_EQ(at("filters", 28), 8);
  EXPECT_EQ(at("filters", 40), 8);
}

ErrataSize SmallErrata() { return {.probes = 20'000, .repetitions = 5, .seed = Seed()}; }

TEST(Lab, Erratum1EquationOne) {
  const Table table = Erratum1(SmallErrata());
  for (const int64_t ids : {1000, 2000, 4000}) {
    const double fpp = table.Number("fpp", {{"ids", ids}});
    EXPECT_NEAR(table.Number("meant", {{"ids", ids}}) / fpp, 1, 0.1) << ids;
    EXPECT_NEAR(table.Number("approximation", {{"ids", ids}}) / fpp, 1, 0.1) << ids;
    EXPECT_GT(table.Number("printed", {{"ids", ids}}), 0.99) << ids;
  }
}

TEST(Lab, Erratum2ThePseudocodeForgetsAnIntervalEarly) {
  const Table table = Erratum2(SmallErrata());
  for (int64_t age = 0; age <= 4; ++age) {
    EXPECT_EQ(table.Number("printed", {{"age", age}}), 1) << age;
    EXPECT_EQ(table.Number("text", {{"age", age}}), 1) << age;
  }
  // N + 1, which is the paper's own promise.
  EXPECT_LT(table.Number("printed", {{"age", int64_t{5}}}), 0.05);
  EXPECT_EQ(table.Number("text", {{"age", int64_t{5}}}), 1);
}

TEST(Lab, Erratum3NeighboursAreNotIndependent) {
  const Table table = Erratum3(SmallErrata());
  const auto at = [&](const char* column, int64_t past) { return table.Number(column, {{"past", past}}); };
  EXPECT_GT(at("fpp", 8), 1.4 * at("equation_3", 8));
  EXPECT_GT(at("fpp", 14), 1.8 * at("equation_3", 14));
  EXPECT_NEAR(at("fpp", 8) / at("shared_model", 8), 1, 0.1);
  EXPECT_NEAR(at("alternating", 8) / at("equation_3", 8), 1, 0.15);
}

TEST(Lab, Erratum4EmptyFiltersHideWhatTheOldestHolds) {
  const Table table = Erratum4(SmallErrata());
  EXPECT_EQ(table.Number("before", {{"age", int64_t{2}}}), 1);
  EXPECT_LT(table.Number("appended", {{"age", int64_t{2}}}), 0.05);
  EXPECT_EQ(table.Number("kept", {{"age", int64_t{2}}}), 1);
}

TEST(Lab, Erratum5MoreFiltersOfTheSamePeriodRaiseTheFpp) {
  const Table table = Erratum5(SmallErrata());
  EXPECT_GT(table.Number("same_period", {{"past", int64_t{22}}}),
            2 * table.Number("same_period", {{"past", int64_t{1}}}));
  EXPECT_LT(table.Number("window_held", {{"past", int64_t{10}}}),
            0.01 * table.Number("window_held", {{"past", int64_t{1}}}));
}

TEST(Lab, Erratum6StepsDownTakeTheWindowUnderTheHorizon) {
  const Table table = Erratum6(SmallErrata());
  const std::vector<double> windows = table.Numbers("window_s");
  EXPECT_LE(*std::min_element(windows.begin(), windows.end()), 15);
  const std::vector<double> promised = table.Numbers("promised_s");
  EXPECT_GE(*std::min_element(promised.begin(), promised.end()), 20);
}

// So Equations 2 and 3 count the last pair, and the oldest alone, twice.
TEST(Lab, Erratum7WithOnePastFilterThePresentOneChangesNoVerdict) {
  const Table table = Erratum7(SmallErrata());
  for (const double changed : table.Numbers("verdicts_changed")) EXPECT_EQ(changed, 0);
  const auto at = [&](const char* column) { return table.Number(column, {{"elements", int64_t{2000}}}); };
  EXPECT_GT(at("equation_3"), 1.1 * at("fpp"));
  EXPECT_NEAR(at("without_last_pair") / at("fpp"), 1, 0.05);
}

// Slide 5's 0.02 %. The Distributed Bloom Filter's half is that of k = 1; with k = 2 and its m it is more.
TEST(Lab, RatesOfOneFilterThatAreStated) {
  const Table table = StatedRates(SmallErrata());
  const auto at = [&](const char* column, const char* where) {
    return table.Number(column, {{"where", std::string(where)}});
  };
  EXPECT_NEAR(at("formula", "slide 5"), 0.00019, 0.000005);
  EXPECT_LT(at("low", "slide 5"), 0.0002);
  EXPECT_GT(at("high", "slide 5"), 0.0002);
  EXPECT_NEAR(at("fpp", "DBF, k = 1"), 0.5, 0.02);
  EXPECT_NEAR(at("fpp", "DBF, k = 2"), 0.5625, 0.02);
}

TEST(Lab, Slides) {
  const Table table = Slides(
      {.horizons = 6, .ids_per_horizon = 6000, .points_per_horizon = 1, .probes = 20'000, .seed = Seed()});
  const auto at = [&](const char* column, const char* filter) {
    return table.Number(column, {{"filter", filter}, {"second", 360.0}});
  };
  EXPECT_NEAR(at("counter", "no retries") / at("truth", "no retries"), 0.99, 0.005);
  EXPECT_NEAR(at("counter", "no filter") / at("truth", "no filter"), 1.06, 0.01);
  EXPECT_EQ(at("counter", "exact list"), at("truth", "exact list"));
  // A plain filter fills up; a recycled one lets retries pass; lists grow.
  EXPECT_GT(at("lost", "bloom"), 0.02 * at("truth", "bloom"));
  EXPECT_GT(at("passed_retries", "recycled"), 0.01 * at("truth", "recycled"));
  EXPECT_GT(at("bytes", "exact list"), 10 * at("bytes", "compact"));
  for (const char* filter : {"published", "compact"}) {
    EXPECT_LT(at("lost", filter), 0.003 * at("truth", filter)) << filter;
    // At no moment is the rate over the target.
    for (const double low : table.Numbers("low", {{"filter", filter}})) EXPECT_LE(low, 1e-3) << filter;
    // Copies of what was lost, which was not passed before.
    EXPECT_LE(at("passed_retries", filter), at("lost", filter)) << filter;
  }
}

// A recycled filter misses half a horizon's retries in each period; the longer the period, the more updates
// it loses in the same memory.
TEST(Lab, ARecycledFilterPaysForEachMissThatItSpares) {
  const Table table =
      RecycledPeriods({.horizons = 12, .ids_per_horizon = 6000, .seed = Seed()}, {1, 2, 4, 12});
  const auto at = [&](const char* column, double periods) {
    return table.Number(column, {{"filter", "recycled"}, {"periods", periods}});
  };
  for (const double periods : {1.0, 2.0, 4.0}) {
    EXPECT_NEAR(at("missed_share", periods), 0.5 / periods * (12 - periods) / 12, 0.06) << periods;
  }
  EXPECT_EQ(at("missed_share", 12), 0);
  EXPECT_LT(10 * at("lost_share", 1), at("lost_share", 4));
  EXPECT_GT(at("lost_share", 4), table.Number("lost_share", {{"filter", "published"}}));
  EXPECT_EQ(table.Number("missed_share", {{"filter", "published"}}), 0);
}

TEST(Lab, TheOppositesOtherDesigns) {
  const Table variants = OppositeVariants({.copies = 100'000, .seed = Seed()});
  for (const double other : variants.Numbers("other_verdicts_with_locks")) EXPECT_EQ(other, 0);
  EXPECT_NEAR(variants.Number("bits_per_id_as_intervals", {{"ids", std::string("random")}}),
              64 - 14 + std::log2(std::exp(1.0)), 0.2);
  EXPECT_LT(variants.Number("bits_per_id_as_intervals", {{"ids", std::string("one in ten of a sequence")}}),
            6);
}

TEST(Lab, TheOppositeOfABloomFilter) {
  const OppositeSize size = {.copies = 20'000, .seed = Seed()};
  const Table alone = OppositeAlone(size);
  for (const Table& table : {alone, OppositeThreads(size)}) {
    for (const double false_positives : table.Numbers("false_positives")) EXPECT_EQ(false_positives, 0);
  }
  for (const double load : {0.02, 0.25, 1.0}) {
    for (const double copied : {1.0, 0.05}) {
      EXPECT_NEAR(
          alone.Number(
              "missed_share",
              {{"copied", copied}, {"slots", int64_t{16'384}}, {"threads", int64_t{1}}, {"load", load}}),
          OppositeModel(load, copied), 0.02);
    }
  }
}

// 50 of 50 nodes, against 0 and some.
TEST(Lab, TheDistributedBloomFilterConverges) {
  const NetworkSize size = {.runs = 3, .seed = Seed()};
  const Table table =
      Convergence("dbf", size, {1, 2}, {Mapping::kShared, Mapping::kPair, Mapping::kPairAndRound});
  for (int64_t run = 0; run < size.runs; ++run) {
    const auto converged = [&](int64_t experiment, const char* mapping) {
      return table.Number("converged", {{"experiment", experiment},
                                        {"mapping", mapping},
                                        {"run", run},
                                        {"iteration", int64_t{size.iterations}}});
    };
    EXPECT_EQ(converged(1, "shared"), 0);
    EXPECT_LT(converged(2, "shared"), 30);
    EXPECT_GE(converged(1, "pair"), 47);
    EXPECT_GE(converged(2, "pair"), 47);
    EXPECT_EQ(converged(1, "pair and round"), 50);
    EXPECT_EQ(converged(2, "pair and round"), 50);
  }
}

// Two hash functions, and what a node has by then to one neighbour after the other, bring the paper's median
// of 793 in the first experiment; no other reading does. With mutual neighbours they bring the second one's
// 18 of 50, with a median of 999 at the others, in some networks. Without, the distributed filter does not
// complete the first experiment.
TEST(Lab, OneReadingBringsTheStandardFiltersFigures) {
  const Table table = NetworkReadings({.runs = 5, .seed = Seed()});
  for (const int64_t mutual : {0, 1}) {
    for (const int64_t at_once : {0, 1}) {
      for (const int64_t hashes : {1, 2}) {
        const Table::Where first = {
            {"experiment", int64_t{1}}, {"mutual", mutual}, {"at_once", at_once}, {"hashes", hashes}};
        const bool brings =
            table.Number("least_median", first) <= 793 && table.Number("most_median", first) >= 793;
        EXPECT_EQ(brings, at_once == 0 && hashes == 2)
            << "mutual " << mutual << ", at once " << at_once << ", hashes " << hashes;
      }
    }
  }
  const NetworkSize many = {.runs = 40, .seed = Seed()};
  const Table second = Convergence("", many, {2}, {Mapping::kShared});
  const Table::Where at_end = {{"iteration", int64_t{many.iterations}}};
  const std::vector<double> complete = second.Numbers("converged", at_end);
  EXPECT_LT(*std::min_element(complete.begin(), complete.end()), 18);
  EXPECT_GE(*std::max_element(complete.begin(), complete.end()), 18);
  for (const double rest : second.Numbers("median_rest", at_end)) EXPECT_NEAR(rest, 999, 1);
  const NetworkSize ten = {.is_mutual = false, .runs = 3, .seed = Seed()};
  for (const double nodes : Convergence("", ten, {1}, {Mapping::kPair}).Numbers("converged", at_end)) {
    EXPECT_LT(nodes, 45);
  }
}

TEST(Lab, AnExchangeCostsLessThanAllIds) {
  const Table table = ReconcileCosts(20'000, {200, 20'000}, Seed());
  for (const int64_t difference : {200, 20'000}) {
    const auto bytes = [&](const char* method) {
      return table.Number("bytes", {{"difference", difference}, {"method", method}});
    };
    EXPECT_LT(bytes("both, as they cost"),
              table.Number("all_ids_bytes", {{"difference", difference}, {"method", "both, as they cost"}}));
    for (const double found : table.Numbers("found", {{"difference", difference}}))
      EXPECT_EQ(found, difference);
  }
  const auto ratio = [&](int64_t difference) {
    return table.Number("bytes", {{"difference", difference}, {"method", "invertible Bloom lookup tables"}}) /
           table.Number("bytes", {{"difference", difference}, {"method", "Distributed Bloom Filters"}});
  };
  EXPECT_LT(ratio(200), 1);
  EXPECT_GT(ratio(20'000), 2);
}

// What keeps the promise misses nothing of the window and, where it can adapt, keeps its target, whatever
// comes.
TEST(Lab, Robustness) {
  const RobustnessSize size = {
      .horizons = 3, .ids_per_horizon = 4000, .looks_per_horizon = 5, .probes = 4000, .seed = Seed()};
  const Table table = Robustness(size);
  for (const char* scenario : {"steady", "Zipf", "bursts", "chosen ids", "clocks"}) {
    const auto at = [&](const char* column, const char* engine) {
      return table.Number(column, {{"scenario", scenario}, {"engine", engine}});
    };
    for (const char* engine : {"compact", "exact", "published", "published, paper"}) {
      EXPECT_EQ(at("missed", engine), 0) << scenario << ", " << engine;
      EXPECT_GT(at("asked", engine), 0);
    }
    for (const char* engine : {"compact", "exact", "published, paper"}) {
      EXPECT_LE(at("low", engine), size.target) << scenario << ", " << engine;
    }
    EXPECT_GT(at("missed_share", "recycled"), 0.1) << scenario;
    EXPECT_EQ(at("fpp", "opposite"), 0) << scenario;
  }
  // A fixed size fails under bursts, and the largest timestamp under wrong clocks.
  EXPECT_GT(table.Number("low", {{"scenario", "bursts"}, {"engine", "published"}}), 10 * size.target);
  EXPECT_GT(table.Number("missed_share", {{"scenario", "clocks, largest timestamp"}, {"engine", "compact"}}),
            0.05);
}

TEST(Lab, TablesAreWrittenAsTheyAre) {
  Table table("name", "seed 1", {"filter", "x", "count"});
  table.Add({"a, b", 0.5, int64_t{3}});
  EXPECT_EQ(table.ToCsv(), "# seed 1\nfilter,x,count\n\"a, b\",0.5,3\n");
  EXPECT_EQ(table.Number("x", {{"filter", "a, b"}, {"count", int64_t{3}}}), 0.5);
}

// Section V: the stories of Figures 6 and 7 end with the paper's values.
TEST(Lab, StoreTellsThePapersStories) {
  EXPECT_THAT(Figure5(), EndsWith("its value is 1\n"));
  const std::string without = Figure6();
  EXPECT_THAT(without, EndsWith("its value is 9\n"));
  EXPECT_THAT(without, Not(HasSubstr("dismissed")));
  const std::string with = Figure7();
  EXPECT_THAT(with, EndsWith("its value is 6\n"));
  EXPECT_THAT(with, HasSubstr("dismissed as a retry"));
}

StoreSize SmallStore() { return {.batches = 3000, .counters = 10, .runs = 2, .seed = Seed()}; }

// The paper's claim holds for retries at the replica that had the update; at another one some are counted
// twice, because its filter has not heard of them.
TEST(Lab, StoreIsExactWhenRetriesReachTheSameReplica) {
  const Table table = StoreLoss(SmallStore(), {0, 0.05});
  for (const int64_t acks : {1, 2, 3}) {
    const auto over = [&](const char* filter, const char* at, double loss) {
      return table.Number("over",
                          {{"filter", filter}, {"retries_at", at}, {"write_acks", acks}, {"loss", loss}});
    };
    EXPECT_EQ(over("none", "the same replica", 0), 0);
    EXPECT_GT(over("none", "the same replica", 0.05), 0.05);
    EXPECT_EQ(over("FBF", "the same replica", 0.05), 0);
    EXPECT_GT(over("FBF", "another replica", 0.05), 0);
    EXPECT_LT(over("FBF", "another replica", 0.05), 0.2 * over("none", "another replica", 0.05));
  }
  for (const double under : table.Numbers("under")) EXPECT_EQ(under, 0);
  for (const double unanswered : table.Numbers("unanswered")) EXPECT_EQ(unanswered, 0);
}

TEST(Lab, StoreUnderFaults) {
  const Table table = StoreFaults(SmallStore());
  const auto over = [&](const char* fault, const char* variant, const char* filter = "FBF") {
    return table.Number("over", {{"fault", fault}, {"variant", variant}, {"filter", filter}});
  };
  EXPECT_GT(over("coordinator fails after the write", "", "none"), 0.5);
  EXPECT_EQ(over("coordinator fails after the write", ""), 0);
  // What its leader applied and could not send before it fell is counted there and at the next leader.
  EXPECT_LT(over("node crashes and returns", "filter rebuilt from the log's ids"), 0.01);
  // A log that is replayed over what was flushed: dismissed by a filter that was saved and reaches back so
  // far.
  EXPECT_GT(over("crash in a flush, log replayed", "filter saved with the flush", "none"), 0.2);
  EXPECT_GT(over("crash in a flush, log replayed", "filter not saved"), 0.2);
  EXPECT_LT(over("crash in a flush, log replayed", "saved, and a window longer than the log"), 0.01);
  // Both sides of a split ring count: no filter hears of the other side's ids in time.
  EXPECT_GT(over("ring in two parts", "answer after 2 replicas"), 0.01);
}

// The same memory: one filter a node has the fewest false positives, one a counter the most.
TEST(Lab, StoreGranularity) {
  StoreSize size = SmallStore();
  size.counters = 20;
  const Table table = StoreGranularity(size, 20'000);
  const auto under = [&](const char* granularity) {
    return table.Number("under", {{"granularity", granularity}});
  };
  EXPECT_LE(under("node"), under("column family"));
  EXPECT_GT(under("counter"), 1.5 * under("column family"));
}

}  // namespace
}  // namespace lethe::lab
