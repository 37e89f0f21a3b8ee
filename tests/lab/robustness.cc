// False positives and misses over the whole window, of each engine, under loads that are meant to hurt.
#include <cmath>
#include <deque>
#include <functional>
#include <numeric>
#include <random>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "src/stage/stream_time.h"
#include "tests/lab/experiments.h"

namespace lethe::lab {
namespace {

struct Arrival {
  uint64_t number;
  int64_t time_ms;       // true
  int64_t timestamp_ms;  // the record's
};

struct Scenario {
  std::string name;
  std::vector<Arrival> arrivals;
  // What the filter is told: the stage's stream time, or the largest timestamp so far.
  bool has_stream_time = true;
  // Whose hash makes numbers an id.
  uint64_t seed = 0;
  std::vector<uint64_t> strangers;  // numbers that never arrive
};

constexpr int64_t kYearMs = int64_t{365} * 24 * 3'600'000;
// Of the attacker, who does not know the filter's.
constexpr uint64_t kGuessedSeed = 0;

using RateOf = std::function<double(double)>;  // ids in a horizon, at a time in horizons

std::vector<Arrival> FreshIds(const RobustnessSize& size, const RateOf& rate) {
  std::vector<Arrival> arrivals;
  double due = 0;
  uint64_t next = 0;
  const auto end_ms = static_cast<int64_t>(size.horizons * static_cast<double>(size.horizon_ms));
  for (int64_t ms = 0; ms < end_ms; ++ms) {
    due += rate(static_cast<double>(ms) / static_cast<double>(size.horizon_ms)) /
           static_cast<double>(size.horizon_ms);
    for (; due >= 1; --due) arrivals.push_back({next++, ms, ms});
  }
  return arrivals;
}

// Numbers by the rank that a Zipf law draws, by inversion of its continuous form.
void DrawByZipf(double exponent, double most, std::mt19937_64& random, std::vector<Arrival>* arrivals) {
  std::uniform_real_distribution<double> uniform(0, 1);
  const double power = 1 - exponent;
  const double reach = std::pow(most, power) - 1;
  for (Arrival& arrival : *arrivals) {
    arrival.number = static_cast<uint64_t>(std::pow(1 + uniform(random) * reach, 1 / power));
  }
}

// Ids that an attacker who has the code would send: under the guessed seed all hashes begin with the same
// eight bits, so that all ids would be in one 256th of the filter. The strangers are such ids too: whom it
// would hurt.
void Choose(Scenario* scenario) {
  uint64_t candidate = 0;
  const auto next = [&] {
    while (NumberedId(candidate, kGuessedSeed).a >> 56 != 0x5a) ++candidate;
    return candidate++;
  };
  for (Arrival& arrival : scenario->arrivals) arrival.number = next();
  for (uint64_t& stranger : scenario->strangers) stranger = next();
}

// After a horizon and a half, one record in a hundred is ten years off; at times thirty in a row come from
// the future; and for a tenth of a horizon a producer in three is at 1970.
void MistakeClocks(const RobustnessSize& size, std::mt19937_64& random, std::vector<Arrival>* arrivals) {
  int future = 0;
  for (Arrival& arrival : *arrivals) {
    arrival.timestamp_ms += 50 * kYearMs;
    if (arrival.time_ms < size.horizon_ms * 3 / 2) continue;
    if (random() % 2000 == 0) future = 30;
    const double phase =
        std::fmod(static_cast<double>(arrival.time_ms) / static_cast<double>(size.horizon_ms), 1.0);
    if (future > 0) {
      --future;
      arrival.timestamp_ms += 10 * kYearMs;
    } else if (random() % 100 == 0) {
      arrival.timestamp_ms += random() % 2 == 0 ? 10 * kYearMs : -10 * kYearMs;
    } else if (phase > 0.5 && phase < 0.6 && random() % 3 == 0) {
      arrival.timestamp_ms = 0;
    }
  }
}

std::deque<Scenario> Scenarios(const RobustnessSize& size) {
  std::mt19937_64 random(size.seed);
  const auto n = static_cast<double>(size.ids_per_horizon);
  std::deque<Scenario> scenarios;  // of which references stay valid
  const auto add = [&](const std::string& name, std::vector<Arrival> arrivals) -> Scenario& {
    std::vector<uint64_t> strangers(static_cast<size_t>(size.probes));
    std::iota(strangers.begin(), strangers.end(), kStrangers);
    scenarios.push_back({.name = name,
                         .arrivals = std::move(arrivals),
                         .seed = size.seed,
                         .strangers = std::move(strangers)});
    return scenarios.back();
  };
  const std::vector<Arrival> steady = FreshIds(size, [=](double) { return n; });
  add("steady", steady);
  Scenario& zipf = add("Zipf", FreshIds(size, [=](double) { return 4 * n; }));
  DrawByZipf(1.1, 50 * n, random, &zipf.arrivals);
  add("bursts", FreshIds(size, [=](double t) { return std::fmod(t, 0.7) < 0.01 ? 50 * n : n / 2; }));
  Choose(&add("chosen ids", steady));
  Scenario& known = add("chosen ids, seed known", steady);
  Choose(&known);
  known.seed = kGuessedSeed;
  MistakeClocks(size, random, &add("clocks", steady).arrivals);
  Scenario& raw = add("clocks, largest timestamp", steady);
  MistakeClocks(size, random, &raw.arrivals);
  raw.has_stream_time = false;
  return scenarios;
}

struct Contender {
  std::string name;
  AnyEngine engine;
  bool is_fixed = false;
};

const std::vector<Contender>& Contenders() {
  static const auto& contenders = *new std::vector<Contender>{
      {"compact", Engine::kCompact},           {"exact", Engine::kExact},
      {"published", Engine::kPublished, true}, {"published, paper", Engine::kPublished},
      {"recycled", Reference::kRecycled},      {"bloom", Reference::kBloom},
      {"opposite", Reference::kOpposite},
  };
  return contenders;
}

void Run(const RobustnessSize& size, const Scenario& scenario, const Contender& contender, Table* table) {
  const int64_t share = size.ids_per_horizon * size.bits_per_id / 8;
  const FilterOptions options = {.horizon = absl::Milliseconds(size.horizon_ms), .target_fpp = size.target};
  const OwnedFilter filter = contender.is_fixed ? MakeFixedPublished(options, 64 * share)
                                                : MakeFilter(contender.engine, options, 64 * share);
  StreamTime stream_time = StreamTime::For(absl::Milliseconds(size.horizon_ms));
  int64_t largest_ms = kNoStreamTime;
  // When an id was passed last. The promise is in stream time, which lags: a hundredth is left for that.
  absl::flat_hash_map<uint64_t, int64_t> passed_ms;
  std::deque<Arrival> order;
  const int64_t promised_ms = size.horizon_ms - size.horizon_ms / 100;
  const int64_t look_every_ms = size.horizon_ms / size.looks_per_horizon;
  int64_t next_look_ms = size.horizon_ms;
  int64_t asked = 0, missed = 0;
  double worst = 0;
  CountedRate rate;
  int64_t peak_bytes = 0;
  const auto look = [&](int64_t now_ms) {
    while (!order.empty() && now_ms - order.front().time_ms > promised_ms) {
      const auto found = passed_ms.find(order.front().number);
      if (found != passed_ms.end() && found->second == order.front().time_ms) passed_ms.erase(found);
      order.pop_front();
    }
    for (const auto& [number, time_ms] : passed_ms) {
      ++asked;
      missed += IsContained(*filter, NumberedId(number, scenario.seed)) ? 0 : 1;
    }
    int64_t hits = 0;
    for (const uint64_t stranger : scenario.strangers) {
      hits += IsContained(*filter, NumberedId(stranger, scenario.seed)) ? 1 : 0;
    }
    worst = std::max(worst, static_cast<double>(hits) / static_cast<double>(size.probes));
    rate.Add(hits, size.probes);
    peak_bytes = std::max(peak_bytes, filter->Figures().memory_bytes);
  };
  for (const Arrival& arrival : scenario.arrivals) {
    for (; arrival.time_ms >= next_look_ms; next_look_ms += look_every_ms) look(next_look_ms);
    largest_ms = std::max(largest_ms, arrival.timestamp_ms);
    const int64_t now_ms = scenario.has_stream_time ? stream_time.Observe(arrival.timestamp_ms) : largest_ms;
    if (TestAndInsertOne(*filter, NumberedId(arrival.number, scenario.seed), now_ms) != Verdict::kUnique)
      continue;
    passed_ms[arrival.number] = arrival.time_ms;
    order.push_back(arrival);
  }
  const Interval band =
      RateInterval(std::llround(rate.rate() * static_cast<double>(rate.probes())), rate.probes(), 0.99);
  table->Add({scenario.name, contender.name, rate.rate(), band.low, band.high, worst, asked, missed,
              asked > 0 ? static_cast<double>(missed) / static_cast<double>(asked) : 0.0, peak_bytes,
              filter->Figures().limit_hits});
}

}  // namespace

Table Robustness(const RobustnessSize& size) {
  Table table(
      "robustness",
      absl::StrCat("horizon ", size.horizon_ms / 1000, " s; target ", size.target, "; some ",
                   size.ids_per_horizon, " ids in a horizon, ", size.horizons, " horizons; fixed filters of ",
                   size.bits_per_id, " bits an id; all ids of the window and ", size.probes,
                   " strangers are asked for ", size.looks_per_horizon, " times a horizon; seed ", size.seed),
      {"scenario", "engine", "fpp", "low", "high", "worst_fpp", "asked", "missed", "missed_share",
       "peak_bytes", "limit_hits"});
  for (const Scenario& scenario : Scenarios(size)) {
    for (const Contender& contender : Contenders()) Run(size, scenario, contender, &table);
  }
  return table;
}

}  // namespace lethe::lab
