// Figure 13 of the Forgetful Bloom Filter's paper: adaptation under a load that rises and subsides.
#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <deque>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/lab/experiments.h"
#include "tests/lab/fbf.h"

namespace lethe::lab {
namespace {

constexpr int64_t kBits = 6250;
constexpr int kHashes = 5;
constexpr int64_t kSecondMs = 1000;
// Before the first second that is shown: the filters have been in use for three of the paper's periods.
constexpr int kQuietS = 33;

// A load in elements a second, linear between times in seconds from the beginning of the quiet time.
using Load = std::vector<std::pair<double, double>>;

double RateAt(const Load& load, double s) {
  for (size_t i = 1; i < load.size(); ++i) {
    const auto& [from_s, from] = load[i - 1];
    const auto& [to_s, to] = load[i];
    if (s < to_s) return from + (to - from) * (s - from_s) / (to_s - from_s);
  }
  return load.back().second;
}

// Two peaks as in the paper; then a load that stays.
const Load& TwoPeaks() {
  static const Load* const load = new Load{{0, 10},
                                           {kQuietS, 10},
                                           {kQuietS + 16, 125},
                                           {kQuietS + 17, 10},
                                           {kQuietS + 45, 10},
                                           {kQuietS + 56, 130},
                                           {kQuietS + 58, 10},
                                           {kQuietS + 85, 10},
                                           {kQuietS + 90, 100},
                                           {kQuietS + 115, 100},
                                           {kQuietS + 117, 10}};
  return *load;
}

std::vector<int64_t> Arrivals(const Load& load, double seconds, int64_t scale) {
  std::vector<int64_t> times;
  double due = 0;
  for (int64_t ms = 0; static_cast<double>(ms) < seconds * 1000; ++ms) {
    due += RateAt(load, static_cast<double>(ms) / 1000) * static_cast<double>(scale) / 1000;
    for (; due >= 1; --due) times.push_back(ms);
  }
  return times;
}

// What runs: one of the filters, told of arrivals and of each second.
class Runner {
 public:
  virtual ~Runner() = default;
  // Algorithm 1. False if the id is contained, truly or not.
  virtual bool InsertIfNew(IdHash id, int64_t now_ms) = 0;
  virtual void EndSecond(int64_t now_ms) = 0;
  virtual bool Contains(IdHash id) const = 0;
  virtual int64_t CountHits(int64_t probes, uint64_t seed) const = 0;
  struct Figures {
    double believed = 0;  // the FPP, by the filter itself
    int64_t filters = 0;
    double period_s = 0;
    int64_t bytes = 0;
  };
  virtual Figures Now() const = 0;
};

// Algorithm 3 as printed. One thing is read into it, from the paper's own plot, in which t stays at 11 s
// until the first step: with three filters there is no step down.
class PrintedRunner final : public Runner {
 public:
  // `phase_ms` before the beginning it has refreshed.
  PrintedRunner(double target, int64_t period_ms, LabFbf::Check check, int64_t phase_ms = 0)
      : fbf_(1, kBits, kHashes, check), target_(target), period_ms_(period_ms), last_refresh_ms_(-phase_ms) {}

  bool InsertIfNew(IdHash id, int64_t now_ms) override {
    RefreshUntil(now_ms);
    if (fbf_.ContainsId(id)) return false;
    fbf_.InsertId(id);
    return true;
  }
  void EndSecond(int64_t now_ms) override {
    RefreshUntil(now_ms);
    const double now = fbf_.EquationThree();
    if (now >= 0.9 * target_) {
      for (int i = std::min(fbf_.filters(), kMostFilters - fbf_.filters()); i > 0; --i) fbf_.Append();
      period_ms_ = std::max(kSecondMs, period_ms_ - kSecondMs);
    } else if (now <= 0.1 * target_ && fbf_.filters() > 3) {
      fbf_.DropOldest();
      period_ms_ += kSecondMs;
    }
  }
  bool Contains(IdHash id) const override { return fbf_.ContainsId(id); }
  int64_t CountHits(int64_t probes, uint64_t seed) const override {
    return CountStrangersIn(fbf_, probes, seed);
  }
  Figures Now() const override {
    return {.believed = fbf_.EquationThree(),
            .filters = fbf_.filters(),
            .period_s = static_cast<double>(period_ms_) / 1000,
            .bytes = fbf_.filters() * BitArray::BytesFor(kBits)};
  }

 private:
  void RefreshUntil(int64_t now_ms) {
    for (; last_refresh_ms_ + period_ms_ <= now_ms; last_refresh_ms_ += period_ms_) fbf_.Refresh();
  }

  static constexpr int kMostFilters = 384;

  LabFbf fbf_;
  const double target_;
  int64_t period_ms_;
  int64_t last_refresh_ms_;
};

class EngineRunner final : public Runner {
 public:
  EngineRunner(const AnyEngine& engine, const FilterOptions& options, int64_t limit_bytes)
      : owned_(MakeFilter(engine, options, limit_bytes)) {}

  bool InsertIfNew(IdHash id, int64_t now_ms) override {
    return TestAndInsertOne(*owned_, id, now_ms) == Verdict::kUnique;
  }
  void EndSecond(int64_t now_ms) override { owned_->AdvanceTo(now_ms); }
  bool Contains(IdHash id) const override { return IsContained(*owned_.filter, id); }
  int64_t CountHits(int64_t probes, uint64_t seed) const override {
    return CountStrangers(*owned_.filter, probes, seed);
  }
  Figures Now() const override {
    const FilterStatus status = owned_.filter->Status();
    return {.believed = status.fpp.estimated,
            .filters = status.shape.past_generations + 2,
            .period_s = absl::ToDoubleSeconds(status.shape.refresh_period),
            .bytes = status.memory_bytes};
  }

 private:
  const OwnedFilter owned_;
};

// Runs one and adds a row for each second.
void Run(const std::string& name, const AdaptationSize& size, const Load& load, int64_t scale, Runner& runner,
         Table* table) {
  struct Held {
    uint64_t number;
    int64_t time_ms;
  };
  const std::vector<int64_t> times = Arrivals(load, kQuietS + size.seconds, scale);
  std::deque<Held> held;
  size_t next = 0;
  for (int64_t second = 1; static_cast<double>(second) <= kQuietS + size.seconds; ++second) {
    const int64_t now_ms = second * kSecondMs;
    for (; next < times.size() && times[next] < now_ms; ++next) {
      if (runner.InsertIfNew(NumberedId(next, size.seed), times[next])) held.push_back({next, times[next]});
    }
    runner.EndSecond(now_ms);
    while (!held.empty() && now_ms - held.front().time_ms > 3 * size.horizon_ms) held.pop_front();
    // The window ends where the youngest id is that cannot be found.
    int64_t in_horizon = 0;
    int64_t missed = 0;
    int64_t window_ms = std::min(now_ms, 3 * size.horizon_ms);
    for (auto id = held.rbegin(); id != held.rend(); ++id) {
      const int64_t age_ms = now_ms - id->time_ms;
      const bool is_in_horizon = age_ms <= size.horizon_ms;
      const bool is_lost = !runner.Contains(NumberedId(id->number, size.seed));
      in_horizon += is_in_horizon ? 1 : 0;
      missed += is_in_horizon && is_lost ? 1 : 0;
      if (is_lost) window_ms = std::min(window_ms, age_ms);
    }
    if (second <= kQuietS) continue;
    CountedRate rate;
    rate.Add(runner.CountHits(size.probes, size.seed), size.probes);
    const Interval band = rate.Band();
    const Runner::Figures now = runner.Now();
    table->Add({name, second - kQuietS, RateAt(load, static_cast<double>(second)), rate.rate(), band.low,
                band.high, now.believed, now.filters, now.period_s, static_cast<double>(window_ms) / 1000,
                missed, in_horizon, now.bytes / scale});
  }
}

// The paper's figure: 3 filters, 6 at 16 s, 4 at 19 s, 8 at 28 s, and no further step to be seen. (How the 4
// are come to is not said; one step a second leads through 5.)
constexpr int kPaperSeconds = 40;
int PaperFilters(int second) {
  if (second < 16) return 3;
  if (second < 18) return 6;
  if (second < 19) return 5;
  return second < 28 ? 4 : 8;
}

// A load that stays, rises until 16 s, subsides until 19 s, rises until 28 s and subsides.
struct SearchedLoad {
  static constexpr double kCorners[] = {0, 16, 19, 28, kPaperSeconds};
  std::array<double, std::size(kCorners)> rates;  // there; before 0 the first one
  int64_t phase_s = 0;                            // since the last refresh when the quiet time begins

  Load ToLoad() const {
    Load load = {{0, rates[0]}};
    for (size_t i = 0; i < rates.size(); ++i) load.emplace_back(kQuietS + kCorners[i], rates[i]);
    return load;
  }
};

// For how many seconds Algorithm 3 as printed does what the paper's figure shows under that load;
// kPaperSeconds if it does to the end. By Equation 3 alone, which is all that it looks at.
int SecondsAsInThePaper(const SearchedLoad& searched, double target, int64_t period_s) {
  const Load load = searched.ToLoad();
  std::deque<double> interval_ids(3, 0.0);
  int64_t last_refresh_s = -searched.phase_s;
  for (int second = 1; second <= kQuietS + kPaperSeconds; ++second) {
    interval_ids[0] += RateAt(load, second - 0.5);
    for (; last_refresh_s + period_s <= second; last_refresh_s += period_s) {
      interval_ids.pop_back();
      interval_ids.push_front(0);
    }
    const double fpp =
        EquationThree({interval_ids.begin(), interval_ids.end()}, static_cast<double>(kBits), kHashes);
    if (fpp >= 0.9 * target) {
      interval_ids.resize(2 * interval_ids.size());
      --period_s;
    } else if (fpp <= 0.1 * target && interval_ids.size() > 3) {
      interval_ids.pop_back();
      ++period_s;
    }
    const int at = second - kQuietS;
    if (static_cast<int>(interval_ids.size()) != PaperFilters(at)) return at - 1;
  }
  return kPaperSeconds;
}

// From random loads, by changes of some of their rates that make it no worse. At most so many loads are
// tried.
SearchedLoad Search(const AdaptationSize& size, int* tried) {
  constexpr int kMostTried = 400'000;
  constexpr int kChanges = 2000;
  std::mt19937_64 random(size.seed);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  const int64_t period_s = size.horizon_ms / 2 / kSecondMs;
  const auto any_phase = [&] { return static_cast<int64_t>(random() % static_cast<uint64_t>(period_s)); };
  SearchedLoad best;
  int best_seconds = INT_MIN;
  *tried = 0;
  while (best_seconds < kPaperSeconds && *tried < kMostTried) {
    SearchedLoad load;
    for (double& rate : load.rates) rate = uniform(0, 150);
    load.phase_s = any_phase();
    int seconds = SecondsAsInThePaper(load, size.target, period_s);
    for (int i = 0; i < kChanges && seconds < kPaperSeconds; ++i, ++*tried) {
      SearchedLoad changed = load;
      for (double& rate : changed.rates) {
        if (uniform(0, 1) < 0.4) rate = std::max(0.0, rate * std::exp(uniform(-0.5, 0.5)) + uniform(-3, 3));
      }
      if (uniform(0, 1) < 0.1) changed.phase_s = any_phase();
      const int then = SecondsAsInThePaper(changed, size.target, period_s);
      if (then < seconds) continue;
      load = changed;
      seconds = then;
    }
    if (seconds > best_seconds) {
      best = load;
      best_seconds = seconds;
    }
  }
  return best;
}

}  // namespace

Table Figure13(const AdaptationSize& size) {
  Table table(
      "fig13",
      absl::StrCat(
          "target ", size.target, "; horizon ", size.horizon_ms / 1000,
          " s; printed: m = 6250 bits, k = 5, begins with N = 1, t = 11 s; corrected: m = 8192 bits, its "
          "smallest; compact: ",
          size.scale, " times the load; ", size.probes, " probes at each second; seed ", size.seed),
      {"filter", "second", "rate", "fpp", "low", "high", "believed", "filters", "period_s", "window_s",
       "missed", "in_horizon", "bytes"});
  // Algorithm 2's text, and its pseudocode.
  for (const auto& [name, check] :
       {std::pair("printed", LabFbf::Check::kText), {"printed, pseudocode", LabFbf::Check::kPrinted}}) {
    PrintedRunner printed(size.target, size.horizon_ms / 2, check);
    Run(name, size, TwoPeaks(), 1, printed, &table);
  }
  const auto engine = [&](const std::string& name, const AnyEngine& which, int64_t scale) {
    EngineRunner runner(which, {.horizon = absl::Milliseconds(size.horizon_ms), .target_fpp = size.target},
                        scale == 1 ? int64_t{1} << 20 : int64_t{64} << 20);
    Run(name, size, TwoPeaks(), scale, runner, &table);
  };
  engine("corrected", Engine::kPublished, 1);
  engine("compact", Engine::kCompact, size.scale);
  return table;
}

std::vector<Table> Figure13Searched(const AdaptationSize& size) {
  int tried = 0;
  const SearchedLoad found = Search(size, &tried);
  Table load("fig13_load", absl::StrCat(tried, " loads were tried; seed ", size.seed), {"second", "rate"});
  for (size_t i = 0; i < found.rates.size(); ++i) load.Add({SearchedLoad::kCorners[i], found.rates[i]});
  Table table("fig13_searched",
              absl::StrCat("target ", size.target,
                           "; m = 6250 bits, k = 5, begins with N = 1, t = ", size.horizon_ms / 2 / kSecondMs,
                           " s; the load was searched for; seed ", size.seed),
              {"filter", "second", "rate", "fpp", "low", "high", "believed", "filters", "period_s",
               "window_s", "missed", "in_horizon", "bytes"});
  AdaptationSize until = size;
  until.seconds = kPaperSeconds;
  PrintedRunner printed(size.target, size.horizon_ms / 2, LabFbf::Check::kText, found.phase_s * kSecondMs);
  Run("printed", until, found.ToLoad(), 1, printed, &table);
  return {load, table};
}

}  // namespace lethe::lab
