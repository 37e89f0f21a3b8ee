// Memory and rates of the engines under loads that change with time. README.md beside this file says how to
// run it.
//
//   scenario_bench [--ask-all] [IDS [TARGET [ENGINE...]]]
//
// With --ask-all a copy of each id within the horizon is looked for 128 times a horizon: some 1.5 billion
// copies with a million ids. Otherwise, of some hundred thousand. It ends with an error if one was missed.
// IDS is the number of ids per horizon, 1e6 by default; TARGET the false-positive target, 1e-6; the engine
// is compact by default. Prints a Markdown table.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "lethe/filter.h"
#include "src/reference/any_engine.h"
#include "tests/support/load_scenarios.h"

namespace lethe {
namespace {

constexpr int kProbes = 20'000;  // at each 128th of a horizon
constexpr uint64_t kSeed = 20'150'912;

struct Copies {
  int64_t asked = 0;
  int64_t missed = 0;
};

bool Run(const AnyEngine& engine, double ids, double target_fpp, bool asks_all, Copies* copies) {
  for (const LoadScenario& scenario : LoadScenarios(ids)) {
    MemoryBudget memory(int64_t{8} << 30);
    auto filter = NewFilter(
        engine,
        {.horizon = absl::Milliseconds(kScenarioHorizonMs), .target_fpp = target_fpp, .memory = &memory});
    if (!filter.ok()) {
      absl::FPrintF(stderr, "%s\n", filter.status().ToString());
      return false;
    }
    const ScenarioFigures figures = RunScenario(scenario, kProbes, kSeed, filter->get(), asks_all);
    copies->asked += figures.asked;
    copies->missed += figures.missed;
    absl::PrintF("| %s | %s | %d | %.1f | %.1f | %.2g | %.2g | %d of %d | %.2f |\n", EngineName(engine),
                 scenario.name, figures.peak_ids, figures.mean_bits, figures.worst_bits, figures.worst_fpp,
                 figures.measured_fpp, figures.missed, figures.asked,
                 static_cast<double>(figures.peak_bytes) / (1 << 20));
    std::fflush(stdout);
  }
  return true;
}

int Main(int argc, char** argv) {
  const bool asks_all = argc > 1 && absl::string_view(argv[1]) == "--ask-all";
  if (asks_all) --argc, ++argv;
  double ids = 1e6;
  double target_fpp = 1e-6;
  if ((argc > 1 && (!absl::SimpleAtod(argv[1], &ids) || !(ids >= 1e4))) ||
      (argc > 2 && !absl::SimpleAtod(argv[2], &target_fpp))) {
    absl::FPrintF(stderr,
                  "give scenario_bench [--ask-all] [IDS [TARGET [ENGINE...]]], with 1e4 ids and more\n");
    return 1;
  }
  std::vector<AnyEngine> engines;
  for (int i = 3; i < argc; ++i) {
    const absl::StatusOr<AnyEngine> engine = ParseEngine(argv[i]);
    if (!engine.ok()) {
      absl::FPrintF(stderr, "%s\n", engine.status().ToString());
      return 1;
    }
    engines.push_back(*engine);
  }
  if (engines.empty()) engines = {Engine::kCompact};
  absl::PrintF(
      "| engine | scenario | ids held at most | bits per id held: mean | worst | FPP estimated: worst | "
      "FPP measured: mean | missed | MiB at most |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- "
      "|\n");
  Copies copies;
  for (const AnyEngine& engine : engines) {
    if (!Run(engine, ids, target_fpp, asks_all, &copies)) return 1;
  }
  absl::PrintF("\nOf %d copies within the horizon %d were missed.\n", copies.asked, copies.missed);
  return copies.missed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lethe

int main(int argc, char** argv) { return lethe::Main(argc, argv); }
