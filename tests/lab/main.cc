// The lab: runs the experiments of the papers that lethe implements, and writes their tables.
//
//   lab FOLDER [SEED [PART OF A TITLE]]
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "tests/lab/experiments.h"
#include "tests/lab/store/experiments.h"

namespace lethe::lab {
namespace {

struct Experiment {
  std::string title;
  std::function<std::vector<Table>()> run;
};

std::vector<Experiment> Experiments(uint64_t seed) {
  const FigureSize size = {.seed = seed};
  return {
      {"Figures 8 and 9: checks and Equation 3, against elements",
       [=] {
         return std::vector<Table>{
             Figures8And9(size, {50, 100, 150, 200, 300, 400, 500, 600, 800, 1000, 1500, 2000}),
             Figure8Spread(size, 300)};
       }},
      {"Figure 10: Equation 3 against m",
       [=] {
         return std::vector<Table>{Figure10(size, {5000, 7500, 10'000, 15'000, 20'000, 25'000, 30'000})};
       }},
      {"Figure 11: the refresh period", [=] { return std::vector<Table>{Figure11(size)}; }},
      {"Figure 12: the number of filters", [=] { return std::vector<Table>{Figure12(size)}; }},
      {"Figure 13: adaptation",
       [=] {
         std::vector<Table> tables = Figure13Searched({.seed = seed});
         tables.push_back(Figure13({.seed = seed}));
         return tables;
       }},
      {"The errata",
       [=] {
         const ErrataSize errata = {.seed = seed};
         return std::vector<Table>{Erratum1(errata), Erratum2(errata), Erratum3(errata), Erratum4(errata),
                                   Erratum5(errata), Erratum6(errata), Erratum7(errata), StatedRates(errata)};
       }},
      {"The slides: approaches on one run",
       [=] {
         return std::vector<Table>{Slides({.seed = seed}), RecycledPeriods({.horizons = 24, .seed = seed},
                                                                           {0.5, 1, 2, 3, 4, 6, 8, 12, 24})};
       }},
      {"The opposite of a Bloom filter",
       [=] {
         return std::vector<Table>{OppositeAlone({.seed = seed}), OppositeThreads({.seed = seed}),
                                   OppositeVariants({.seed = seed})};
       }},
      {"The Distributed Bloom Filter at the paper's scale",
       [=] {
         return std::vector<Table>{
             Convergence("dbf", {.seed = seed}, {1, 2},
                         {Mapping::kShared, Mapping::kPair, Mapping::kPairAndRound}),
             NetworkReadings({.runs = 40, .seed = seed}),
             ReconcileCosts(100'000, {2, 20, 200, 2000, 20'000, 100'000, 200'000}, seed)};
       }},
      {"The Distributed Bloom Filter with 500 nodes and 100,000 elements",
       [=] {
         const NetworkSize large = {.nodes = 500,
                                    .elements = 100'000,
                                    .elements_per_node = 20'000,
                                    .iterations = 10,
                                    .stop_when_converged = true,
                                    .hashes = 1,
                                    .runs = 1,
                                    .seed = seed};
         return std::vector<Table>{Convergence("dbf_large", large, {1},
                                               {Mapping::kShared, Mapping::kPair, Mapping::kPairAndRound})};
       }},
      {"The store: loss of messages, faults, granularity",
       [=] {
         const StoreSize store = {.seed = seed};
         return std::vector<Table>{StoreLoss(store, {0, 0.005, 0.01, 0.02, 0.05, 0.1}), StoreFaults(store),
                                   StoreGranularity(store, 20'000), StoreStories()};
       }},
      {"Robustness", [=] { return std::vector<Table>{Robustness({.seed = seed})}; }},
  };
}

int Run(const std::string& folder, uint64_t seed, const std::string& part) {
  std::filesystem::create_directories(folder);
  const std::vector<Experiment> experiments = Experiments(seed);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (size_t i = 0; i < experiments.size(); ++i) {
    if (!absl::StrContains(experiments[i].title, part)) continue;
    std::cout << absl::StrFormat("[%2d/%d] %4.0f s  %s", i + 1, experiments.size(), seconds(),
                                 experiments[i].title)
              << std::endl;
    for (const Table& table : experiments[i].run()) {
      if (const absl::Status status = table.WriteTo(folder); !status.ok()) {
        std::cerr << status.message() << std::endl;
        return 1;
      }
    }
  }
  std::cout << absl::StrFormat("%.0f s in all; the tables are in %s", seconds(), folder) << std::endl;
  return 0;
}

}  // namespace
}  // namespace lethe::lab

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    std::cerr << "usage: lab FOLDER [SEED [PART OF A TITLE]]" << std::endl;
    return 2;
  }
  return lethe::lab::Run(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1, argc > 3 ? argv[3] : "");
}
