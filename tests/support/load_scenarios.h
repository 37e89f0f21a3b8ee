// Loads that change with time, run through a filter beside an exact memory of what it must contain.
#ifndef LETHE_TESTS_SUPPORT_LOAD_SCENARIOS_H_
#define LETHE_TESTS_SUPPORT_LOAD_SCENARIOS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "lethe/filter.h"
#include "tests/support/filter_testing.h"

namespace lethe {

struct LoadScenario {
  std::string name;
  double horizons = 3;
  std::function<double(double)> ids_per_horizon;  // at a time in horizons
  double steps_per_horizon = 4096;                // time moves at each
};

// With `n` ids per horizon in most of them.
inline std::vector<LoadScenario> LoadScenarios(double n) {
  const double growth = std::log(n / 1000);
  return {
      {.name = "steady", .horizons = 3, .ids_per_horizon = [=](double) { return n; }},
      {.name = "step", .horizons = 4, .ids_per_horizon = [=](double t) { return t < 1 ? 1000 : n; }},
      {.name = "ramp",
       .horizons = 3.5,
       .ids_per_horizon =
           [=](double t) {
             if (t < 1) return 1000.0;
             return t < 2 ? 1000 * growth * std::exp(growth * (t - 1)) : n;
           }},
      {.name = "burst",
       .horizons = 4,
       .ids_per_horizon = [=](double t) { return t >= 1.5 && t < 1.55 ? 100 * n : n / 10; }},
      {.name = "diurnal",
       .horizons = 12,
       .ids_per_horizon = [=](double t) { return n * std::pow(10, std::sin(t * std::numbers::pi / 2) / 2); }},
      {.name = "fall", .horizons = 4, .ids_per_horizon = [=](double t) { return t < 1.5 ? n : n / 1000; }},
      {.name = "silence",
       .horizons = 15,
       .ids_per_horizon = [=](double t) { return t < 1.5  ? n
                                                 : t < 12 ? 0
                                                          : n / 10; }},
      {.name = "hourly",
       .horizons = 200,
       .ids_per_horizon = [](double) { return 24.0; },
       .steps_per_horizon = 24},
  };
}

struct ScenarioFigures {
  double mean_bits = 0;   // of memory per id held, over the moments with 20,000 ids and more
  double worst_bits = 0;  // per id held at some time in the last eighth of a horizon; likewise
  double worst_fpp = 0;   // estimated
  double least_model =
      1;                  // modelled, as a part of what is estimated, less five deviations; as for worst_bits
  double most_model = 1;  // likewise, and five deviations more
  double measured_fpp = 0;
  double probes = 0;
  int64_t asked = 0;
  int64_t missed = 0;
  int64_t kept = 0;  // contained though older than 1.1 horizons
  int64_t kept_asked = 0;
  int64_t peak_ids = 0;
  int64_t peak_bytes = 0;
  int64_t end_bytes = 0;
  int64_t limit_hits = 0;
  int64_t lost_ids = 0;
};

inline constexpr int64_t kScenarioHorizonMs = 24 * 3'600'000;

// Runs a filter with a horizon of kScenarioHorizonMs. At each 128th of a horizon, ids of all ages are looked
// for, the oldest among them, and `probes` ids that were never inserted; at the end all ids, and each time if
// `asks_all`.
inline ScenarioFigures RunScenario(const LoadScenario& scenario, int probes, uint64_t seed, Filter* filter,
                                   bool asks_all = false) {
  constexpr size_t kPointsInEighth = 16;
  constexpr int64_t kFewIds = 20'000;
  struct Seen {
    uint64_t number;
    int64_t time_ms;
  };
  ScenarioFigures figures;
  std::mt19937_64 random(seed);
  std::deque<Seen> held;
  std::deque<Seen> gone;  // older than 1.1 horizons
  std::deque<int64_t> recent;
  double sum_of_bits = 0;
  int64_t points = 0;
  double hits = 0;
  uint64_t next = 0;
  uint64_t stranger = uint64_t{1} << 60;
  const auto ask = [&](const Seen& seen) {
    ++figures.asked;
    figures.missed += IsContained(*filter, NumberedId(seen.number, seed)) ? 0 : 1;
  };
  const auto check = [&](int64_t now_ms, bool all) {
    while (!held.empty() && now_ms - held.front().time_ms > kScenarioHorizonMs) {
      gone.push_back(held.front());
      held.pop_front();
    }
    const FilterStatus status = filter->Status();
    const auto count = static_cast<int64_t>(held.size());
    recent.push_back(count);
    if (recent.size() > kPointsInEighth) recent.pop_front();
    const auto bits = [&](int64_t ids) {
      return 8.0 * static_cast<double>(status.memory_bytes) / static_cast<double>(ids);
    };
    const int64_t most = *std::max_element(recent.begin(), recent.end());
    if (most >= kFewIds) figures.worst_bits = std::max(figures.worst_bits, bits(most));
    if (count >= kFewIds) {
      sum_of_bits += bits(count);
      ++points;
    }
    figures.worst_fpp = std::max(figures.worst_fpp, status.fpp.estimated);
    const double apart = 5 * status.fpp.deviation;
    if (count >= kFewIds && status.fpp.estimated > apart) {
      const double least = status.fpp.modelled / (status.fpp.estimated - apart);
      figures.least_model = std::min(figures.least_model, least);
      figures.most_model = std::max(figures.most_model, status.fpp.modelled / (status.fpp.estimated + apart));
    }
    figures.peak_bytes = std::max(figures.peak_bytes, status.memory_bytes);
    figures.peak_ids = std::max(figures.peak_ids, count);
    figures.end_bytes = status.memory_bytes;
    figures.limit_hits = status.limit_hits;
    figures.lost_ids = status.lost_ids;
    for (size_t i = 0; i < (all ? held.size() : std::min<size_t>(8, held.size())); ++i) ask(held[i]);
    for (int i = 0; i < 300 && !all && !held.empty(); ++i) ask(held[random() % held.size()]);
    for (int i = 0; i < 30 && !gone.empty(); ++i) {
      const Seen& seen = gone[random() % gone.size()];
      if (10 * (now_ms - seen.time_ms) <= 11 * kScenarioHorizonMs) continue;
      ++figures.kept_asked;
      figures.kept += IsContained(*filter, NumberedId(seen.number, seed)) ? 1 : 0;
    }
    while (gone.size() > 1'000'000) gone.pop_front();
    for (int i = 0; i < probes; ++i) hits += IsContained(*filter, NumberedId(stranger++, seed)) ? 1 : 0;
    figures.probes += probes;
  };
  const auto steps = static_cast<int64_t>(scenario.horizons * scenario.steps_per_horizon);
  const auto steps_per_check = std::max<int64_t>(1, static_cast<int64_t>(scenario.steps_per_horizon / 128));
  double due = 0;
  std::vector<TimedId> ids;
  std::vector<Verdict> verdicts;
  for (int64_t step = 0; step < steps; ++step) {
    const double time = static_cast<double>(step) / scenario.steps_per_horizon;
    const auto now_ms = static_cast<int64_t>(time * static_cast<double>(kScenarioHorizonMs));
    due += scenario.ids_per_horizon(time) / scenario.steps_per_horizon;
    ids.clear();
    for (; due >= 1; due -= 1) {
      ids.push_back({.id = NumberedId(next++, seed), .stream_time_ms = now_ms});
    }
    verdicts.assign(ids.size(), Verdict::kUnique);
    filter->TestAndInsert(ids, absl::MakeSpan(verdicts));
    for (size_t i = 0; i < ids.size(); ++i) {
      if (verdicts[i] == Verdict::kUnique) held.push_back({next - ids.size() + i, now_ms});
    }
    filter->AdvanceTo(now_ms);
    if (step % steps_per_check == 0) check(now_ms, asks_all || step + steps_per_check >= steps);
  }
  figures.mean_bits = points > 0 ? sum_of_bits / static_cast<double>(points) : 0;
  figures.measured_fpp = figures.probes > 0 ? hits / figures.probes : 0;
  return figures;
}

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_LOAD_SCENARIOS_H_
