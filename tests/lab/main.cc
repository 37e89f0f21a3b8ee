// The lab: runs the experiments of the papers that lethe implements, and writes their tables.
//
//   lab FOLDER [SEED]
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/lab/experiments.h"

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
  };
}

int Run(const std::string& folder, uint64_t seed) {
  std::filesystem::create_directories(folder);
  const std::vector<Experiment> experiments = Experiments(seed);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (size_t i = 0; i < experiments.size(); ++i) {
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
  std::cout << absl::StrFormat("All %d experiments took %.0f s; their tables are in %s", experiments.size(),
                               seconds(), folder)
            << std::endl;
  return 0;
}

}  // namespace
}  // namespace lethe::lab

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: lab FOLDER [SEED]" << std::endl;
    return 2;
  }
  return lethe::lab::Run(argv[1], argc == 3 ? std::strtoull(argv[2], nullptr, 0) : 1);
}
