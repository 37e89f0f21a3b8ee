// Figures 8 to 12 of "Idempotent Distributed Counters Using a Forgetful Bloom Filter".
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/lab/experiments.h"
#include "tests/lab/fbf.h"

namespace lethe::lab {
namespace {

constexpr int kHashes = 5;
constexpr int64_t kBits = 6250;
constexpr int64_t kPeriodMs = 5000;
constexpr double kTarget = 1e-4;  // of the filters that take one
// Compact runs twice: in the memory of the paper's filter, and with more than it needs.
constexpr int64_t kEnough = 16;
constexpr std::pair<const char*, int64_t> kCompactRuns[] = {{"compact", 1},
                                                            {"compact, enough memory", kEnough}};

uint64_t SeedOf(const FigureSize& size, int repetition) {
  return size.seed * 1000 + static_cast<uint64_t>(repetition);
}

// Times of arrival, ascending, in milliseconds from 0.
using Times = std::vector<int64_t>;

Times Evenly(int64_t count, int64_t duration_ms) {
  Times times;
  for (int64_t i = 0; i < count; ++i) times.push_back(i * duration_ms / count);
  return times;
}

// Takes the first elements in until a time, refreshing on the way.
class LabRun {
 public:
  LabRun(int past, int64_t bits, int64_t period_ms, LabFbf::Check check, LabFbf::Mapping mapping,
         uint64_t seed, int64_t phase_ms = 0)
      : fbf_(past, bits, kHashes, check, mapping),
        period_ms_(period_ms),
        seed_(seed),
        next_refresh_(period_ms - phase_ms) {}

  void RunUntil(int64_t now_ms, const Times& times) {
    for (; next_ < times.size() && times[next_] <= now_ms; ++next_) {
      RefreshUntil(times[next_]);
      fbf_.InsertId(NumberedId(next_, seed_));
    }
    RefreshUntil(now_ms);
  }
  const LabFbf& fbf() const { return fbf_; }

 private:
  void RefreshUntil(int64_t now_ms) {
    for (; next_refresh_ <= now_ms; next_refresh_ += period_ms_) fbf_.Refresh();
  }

  LabFbf fbf_;
  const int64_t period_ms_;
  const uint64_t seed_;
  int64_t next_refresh_;
  size_t next_ = 0;
};

// The same for a filter that knows the time; the phase moves its clock.
class FilterRun {
 public:
  FilterRun(Filter* filter, uint64_t seed, int64_t phase_ms = 0)
      : filter_(filter), seed_(seed), phase_ms_(phase_ms) {}

  void RunUntil(int64_t now_ms, const Times& times) {
    for (; next_ < times.size() && times[next_] <= now_ms; ++next_) {
      InsertOne(*filter_, NumberedId(next_, seed_), times[next_] + phase_ms_);
    }
    filter_->AdvanceTo(now_ms + phase_ms_);
  }

 private:
  Filter* const filter_;
  const uint64_t seed_;
  const int64_t phase_ms_;
  size_t next_ = 0;
};

const std::vector<std::string> kFppColumns = {
    "filter", "x", "fpp", "low", "high", "equation_3", "shared_model", "bytes", "window_s", "limit_hits"};

struct Point {
  CountedRate rate;
  double equation_3 = 0;
  double shared_model = 0;
  int64_t bytes = 0;
  double window_s = 0;
  int64_t limit_hits = 0;

  void AddTo(Table* table, const std::string& filter, double x) const {
    const Interval band = rate.Band();
    table->Add(
        {filter, x, rate.rate(), band.low, band.high, equation_3, shared_model, bytes, window_s, limit_hits});
  }
};

// An FBF that is asked by one of the checks.
struct Checked {
  bool ContainsId(IdHash id) const { return fbf.ContainsId(id, check); }
  const LabFbf& fbf;
  LabFbf::Check check;
};

// The paper's basic FBF (N = 1) by its simple and its optimized check, with its Equation 3; the corrected
// one, whose neighbours differ in their mapping; and compact. `elements` come evenly in the last `periods`
// refresh periods.
void AddFilters(const FigureSize& size, int64_t elements, int64_t bits, int periods, double x, Table* table) {
  const int64_t duration = periods * kPeriodMs;
  const Times times = Evenly(elements, duration);
  Point simple, published, corrected;
  for (int i = 0; i < size.repetitions; ++i) {
    const uint64_t seed = SeedOf(size, i);
    const auto filled = [&](LabFbf::Mapping mapping) {
      LabRun run(1, bits, kPeriodMs, LabFbf::Check::kText, mapping, seed);
      run.RunUntil(duration - 1, times);
      return run;
    };
    const LabRun run = filled(LabFbf::Mapping::kShared);
    const LabFbf& fbf = run.fbf();
    simple.rate.Add(CountStrangersIn(Checked{fbf, LabFbf::Check::kSimple}, size.probes, seed), size.probes);
    published.rate.Add(CountStrangersIn(Checked{fbf, LabFbf::Check::kText}, size.probes, seed), size.probes);
    published.shared_model = fbf.SharedModel();
    corrected.rate.Add(CountStrangersIn(filled(LabFbf::Mapping::kAlternating).fbf(), size.probes, seed),
                       size.probes);
    published.equation_3 = corrected.equation_3 = fbf.EquationThree();
  }
  for (const auto& [name, point] :
       {std::pair("simple check", &simple), {"published", &published}, {"corrected", &corrected}}) {
    point->bytes = 3 * BitArray::BytesFor(bits);
    point->window_s = 2.0 * kPeriodMs / 1000;
    point->AddTo(table, name, x);
  }
  for (const auto& [name, times_memory] : kCompactRuns) {
    Point compact;
    for (int i = 0; i < size.repetitions; ++i) {
      const uint64_t seed = SeedOf(size, i);
      OwnedFilter owned =
          MakeFilter(Engine::kCompact, {.horizon = absl::Milliseconds(2 * kPeriodMs), .target_fpp = kTarget},
                     times_memory * 3 * bits * size.scale / 8);
      FilterRun(owned.filter.get(), seed).RunUntil(duration - 1, Evenly(elements * size.scale, duration));
      compact.rate.Add(CountStrangers(*owned.filter, size.probes, seed), size.probes);
      const FilterStatus status = owned->Status();
      compact.bytes = status.memory_bytes / size.scale;
      compact.window_s = absl::ToDoubleSeconds(status.window);
      compact.limit_hits = status.limit_hits;
    }
    compact.AddTo(table, name, x);
  }
}

std::string Chance(const FigureSize& size) {
  return absl::StrCat(size.repetitions, " filters of ", size.probes, " probes each; seed ", size.seed);
}

std::string OfOthers(const FigureSize& size) {
  return absl::StrCat("compact: target 1e-4; horizon 10 s; ", size.scale, " times elements and memory");
}

}  // namespace

Table Figures8And9(const FigureSize& size, const std::vector<int64_t>& elements) {
  Table table("fig08_09",
              absl::StrCat("N = 1; m = 6250 bits; k = 5; t = 5 s; elements come evenly in 10 s; ",
                           Chance(size), "; ", OfOthers(size)),
              kFppColumns);
  for (const int64_t count : elements) AddFilters(size, count, kBits, 2, static_cast<double>(count), &table);
  return table;
}

Table Figure8Spread(const FigureSize& size, int64_t elements) {
  Table table("fig08_spread",
              absl::StrCat("N = 1; m = 6250 bits; k = 5; t = 5 s; ", elements, " elements; ", Chance(size)),
              {"periods", "fpp_simple", "fpp_optimized", "lower_by"});
  for (int periods = 1; periods <= 4; ++periods) {
    CountedRate simple, optimized;
    for (int i = 0; i < size.repetitions; ++i) {
      const uint64_t seed = SeedOf(size, i);
      LabRun run(1, kBits, kPeriodMs, LabFbf::Check::kText, LabFbf::Mapping::kShared, seed);
      run.RunUntil(periods * kPeriodMs - 1, Evenly(elements, periods * kPeriodMs));
      simple.Add(CountStrangersIn(Checked{run.fbf(), LabFbf::Check::kSimple}, size.probes, seed),
                 size.probes);
      optimized.Add(CountStrangersIn(run.fbf(), size.probes, seed), size.probes);
    }
    const double lower = simple.rate() > 0 ? 1 - optimized.rate() / simple.rate() : 0;
    table.Add({int64_t{periods}, simple.rate(), optimized.rate(), lower});
  }
  return table;
}

namespace {

// Importance sampling for the basic FBF (N = 1): whatever it takes for contained is set in the newest or in
// the oldest generation, in all positions. So only strangers are asked for whose first two are; `probes` of
// them stand for as many times more as such a stranger is rare.
void AddRareStrangers(const LabFbf& fbf, int64_t probes, uint64_t seed, CountedRate* rate) {
  const std::vector<uint64_t> set = fbf.NewestOrOldest();
  const auto bits = static_cast<uint64_t>(fbf.bits());
  std::mt19937_64 random(seed);
  // A hash that BitPositions takes to a position that is set: ScaleDown() of it.
  const auto word = [&] {
    const absl::uint128 low = std::max(random(), bits);
    return static_cast<uint64_t>(((absl::uint128(set[random() % set.size()]) << 64) + low) / bits);
  };
  int64_t hits = 0;
  for (int64_t i = 0; i < probes; ++i) {
    const uint64_t first = word();
    hits += fbf.ContainsId({first, word() - first}) ? 1 : 0;
  }
  const double share = static_cast<double>(set.size()) / static_cast<double>(bits);
  rate->Add(hits, std::llround(static_cast<double>(probes) / (share * share)));
}

}  // namespace

Table Figure10(const FigureSize& size, const std::vector<int64_t>& bits) {
  Table table("fig10",
              absl::StrCat("N = 1; k = 5; t = 5 s; 300 elements come evenly in 10 s; ", Chance(size), "; ",
                           OfOthers(size)),
              kFppColumns);
  for (const int64_t m : bits) {
    AddFilters(size, 300, m, 2, static_cast<double>(m), &table);
    Point rare;
    for (int i = 0; i < size.repetitions; ++i) {
      LabRun lab(1, m, kPeriodMs, LabFbf::Check::kText, LabFbf::Mapping::kShared, SeedOf(size, i));
      lab.RunUntil(2 * kPeriodMs - 1, Evenly(300, 2 * kPeriodMs));
      AddRareStrangers(lab.fbf(), 10 * size.probes, SeedOf(size, i), &rare.rate);
      rare.equation_3 = lab.fbf().EquationThree();
      rare.shared_model = lab.fbf().SharedModel();
    }
    rare.AddTo(&table, "published, by importance", static_cast<double>(m));
  }
  return table;
}

namespace {

// A load that rises, by the moments at which its rate is looked at.
struct RisingLoad {
  std::function<double(double)> time_of;  // in seconds, of the i-th element
  std::function<double(double)> time_at;  // in seconds, of a rate
  std::vector<double> rates;              // that are looked at
  int64_t elements = 0;

  Times Arrivals(int64_t scale) const {
    Times times;
    for (int64_t i = 0; i < elements * scale; ++i) {
      times.push_back(
          std::llround(time_of((static_cast<double>(i) + 0.5) / static_cast<double>(scale)) * 1000));
    }
    return times;
  }
};

struct Shape {
  int past;
  int64_t period_ms;
  std::string series;
};

// Runs filters under a rising load and adds a row for each of the rates.
class RisingRun {
 public:
  RisingRun(const FigureSize& size, RisingLoad load, int64_t bits, Table* table)
      : size_(size), load_(std::move(load)), bits_(bits), times_(load_.Arrivals(1)), table_(table) {}

  // `phase` of the refresh at the moment that is looked at: the share of t that has passed since, or any if
  // it is negative, each as often.
  void Published(const Shape& shape, double phase, LabFbf::Mapping mapping) {
    for (const double rate : load_.rates) {
      Point point;
      point.bytes = (shape.past + 2) * BitArray::BytesFor(bits_);
      point.window_s = static_cast<double>((shape.past + 1) * shape.period_ms) / 1000;
      const int64_t now = std::llround(load_.time_at(rate) * 1000);
      for (int i = 0; i < size_.repetitions; ++i) {
        const double passed = phase >= 0 ? phase : (i + 0.5) / size_.repetitions;
        // The clock's phase at time 0 that brings it to `passed` now.
        const int64_t shift =
            std::llround(passed * static_cast<double>(shape.period_ms)) - now % shape.period_ms;
        const int64_t at_start = (shift + shape.period_ms) % shape.period_ms;
        const uint64_t seed = SeedOf(size_, i);
        LabRun lab(shape.past, bits_, shape.period_ms, LabFbf::Check::kText, mapping, seed, at_start);
        lab.RunUntil(now, times_);
        point.rate.Add(CountStrangersIn(lab.fbf(), size_.probes, seed), size_.probes);
        point.equation_3 += lab.fbf().EquationThree() / size_.repetitions;
        point.shared_model += lab.fbf().SharedModel() / size_.repetitions;
      }
      point.AddTo(table_, shape.series, rate);
    }
  }

  // In the memory of the paper's filters, and with enough.
  void Compact(int64_t horizon_ms, int64_t limit_bytes) {
    for (const auto& [name, times_memory] : kCompactRuns)
      Compact(name, horizon_ms, times_memory * limit_bytes);
  }

 private:
  void Compact(const std::string& name, int64_t horizon_ms, int64_t limit_bytes) {
    const Times times = load_.Arrivals(size_.scale);
    std::vector<Point> points(load_.rates.size());
    for (int i = 0; i < size_.repetitions; ++i) {
      const uint64_t seed = SeedOf(size_, i);
      OwnedFilter owned = MakeFilter(
          Engine::kCompact, {.horizon = absl::Milliseconds(horizon_ms), .target_fpp = kTarget}, limit_bytes);
      FilterRun run(owned.filter.get(), seed);
      for (size_t at = 0; at < points.size(); ++at) {
        run.RunUntil(std::llround(load_.time_at(load_.rates[at]) * 1000), times);
        points[at].rate.Add(CountStrangers(*owned.filter, size_.probes, seed), size_.probes);
        const FilterStatus status = owned->Status();
        points[at].bytes = status.memory_bytes / size_.scale;
        points[at].window_s = absl::ToDoubleSeconds(status.window);
        points[at].limit_hits = status.limit_hits;
      }
    }
    for (size_t at = 0; at < points.size(); ++at) {
      points[at].AddTo(table_, name, load_.rates[at]);
    }
  }

  const FigureSize size_;
  const RisingLoad load_;
  const int64_t bits_;
  const Times times_;
  Table* const table_;
};

}  // namespace

Table Figure11(const FigureSize& size) {
  // 5,000 elements while the rate rises from 5 to 250 a second, as e^(g s).
  constexpr double kFirst = 5;
  constexpr double kGrowth = (250 - kFirst) / 5000;
  constexpr int64_t kWideBits = 25'000;
  const RisingLoad load = {
      .time_of = [](double i) { return std::log1p(kGrowth * i / kFirst) / kGrowth; },
      .time_at = [](double rate) { return std::log(rate / kFirst) / kGrowth; },
      .rates = {25, 50, 75, 100, 125, 150, 175, 200, 225, 250},
      .elements = 5000,
  };
  Table table(
      "fig11",
      absl::StrCat(
          "m = 25000 bits; k = 5; 5000 elements while the rate rises from 5 to 250/s in 80 s; mean over "
          "the phases of a period; ",
          Chance(size), "; ", OfOthers(size)),
      kFppColumns);
  RisingRun run(size, load, kWideBits, &table);
  for (const int64_t period : {5, 3, 2, 1}) {
    run.Published({1, period * 1000, absl::StrCat("published, t = ", period, " s")}, -1,
                  LabFbf::Mapping::kShared);
  }
  // What the same knob does where the window is held: t = 10 s / (N + 1).
  for (const int past : {4, 9}) {
    const std::string shape = absl::StrCat(", N = ", past, ", t = ", 10 / (past + 1), " s");
    run.Published({past, 10'000 / (past + 1), absl::StrCat("published", shape)}, -1,
                  LabFbf::Mapping::kShared);
    run.Published({past, 10'000 / (past + 1), absl::StrCat("corrected", shape)}, -1,
                  LabFbf::Mapping::kAlternating);
  }
  run.Compact(10'000, 3 * kWideBits / 8 * size.scale);
  return table;
}

Table Figure12(const FigureSize& size) {
  // 3,000 elements while the rate rises from 0 to 200 a second: 200 s / 30 at time s.
  constexpr double kSeconds = 30;
  constexpr double kGrowth = 2 * 3000 / (kSeconds * kSeconds);
  const RisingLoad load = {
      .time_of = [](double i) { return std::sqrt(2 * i / kGrowth); },
      .time_at = [](double rate) { return rate / kGrowth; },
      .rates = {40, 60, 80, 100, 120, 140, 160, 180, 200},
      .elements = 3000,
  };
  Table table(
      "fig12",
      absl::StrCat(
          "m = 6250 bits; k = 5; t = 5 s; 3000 elements while the rate rises from 0 to 200/s in 30 s; ",
          Chance(size), "; ", OfOthers(size)),
      kFppColumns);
  RisingRun run(size, load, kBits, &table);
  for (const int filters : {24, 12, 6, 3}) {
    const std::string name = absl::StrCat(filters, " filters");
    run.Published({filters - 2, kPeriodMs, name}, -1, LabFbf::Mapping::kShared);
    run.Published({filters - 2, kPeriodMs, name + ", after a refresh"}, 0.02, LabFbf::Mapping::kShared);
    run.Published({filters - 2, kPeriodMs, name + ", before a refresh"}, 0.98, LabFbf::Mapping::kShared);
    run.Published({filters - 2, kPeriodMs, name + ", corrected"}, -1, LabFbf::Mapping::kAlternating);
  }
  run.Compact(2 * kPeriodMs, 3 * kBits / 8 * size.scale);
  return table;
}

}  // namespace lethe::lab
