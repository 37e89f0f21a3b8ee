// Figure 13 of the Forgetful Bloom Filter's paper: adaptation under a load that rises and subsides.
#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <utility>

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

// In elements a second. Two peaks as in the paper, the first of which brings Equation 3 to 0.9 times the
// target at some 16 s; then a load that stays.
double RateAt(double s) {
  constexpr std::pair<double, double> kCorners[] = {{0, 10},
                                                    {kQuietS, 10},
                                                    {kQuietS + 16, 125},
                                                    {kQuietS + 17, 10},
                                                    {kQuietS + 45, 10},
                                                    {kQuietS + 56, 130},
                                                    {kQuietS + 58, 10},
                                                    {kQuietS + 85, 10},
                                                    {kQuietS + 90, 100},
                                                    {kQuietS + 115, 100},
                                                    {kQuietS + 117, 10},
                                                    {1000, 10}};
  for (size_t i = 1; i < std::size(kCorners); ++i) {
    const auto& [from_s, from] = kCorners[i - 1];
    const auto& [to_s, to] = kCorners[i];
    if (s < to_s) return from + (to - from) * (s - from_s) / (to_s - from_s);
  }
  return kCorners[0].second;
}

std::vector<int64_t> Arrivals(double seconds, int64_t scale) {
  std::vector<int64_t> times;
  double due = 0;
  for (int64_t ms = 0; static_cast<double>(ms) < seconds * 1000; ++ms) {
    due += RateAt(static_cast<double>(ms) / 1000) * static_cast<double>(scale) / 1000;
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
  explicit PrintedRunner(double target, int64_t period_ms)
      : fbf_(1, kBits, kHashes, LabFbf::Check::kText), target_(target), period_ms_(period_ms) {}

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
  int64_t last_refresh_ms_ = 0;
};

class EngineRunner final : public Runner {
 public:
  EngineRunner(const FilterOptions& options, int64_t limit_bytes)
      : owned_(MakeFilter(options, limit_bytes)) {}

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
    return {.believed = status.fpp_estimated,
            .filters = status.past_generations + 2,
            .period_s = absl::ToDoubleSeconds(status.refresh_period),
            .bytes = status.memory_bytes};
  }

 private:
  const OwnedFilter owned_;
};

// Runs one and adds a row for each second.
void Run(const std::string& name, const AdaptationSize& size, int64_t scale, Runner& runner, Table* table) {
  struct Held {
    uint64_t number;
    int64_t time_ms;
  };
  const std::vector<int64_t> times = Arrivals(kQuietS + size.seconds, scale);
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
    table->Add({name, second - kQuietS, RateAt(static_cast<double>(second)), rate.rate(), band.low, band.high,
                now.believed, now.filters, now.period_s, static_cast<double>(window_ms) / 1000, missed,
                in_horizon, now.bytes / scale});
  }
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
  PrintedRunner printed(size.target, size.horizon_ms / 2);
  Run("printed", size, 1, printed, &table);
  const auto engine = [&](const std::string& name, Engine which, int64_t scale) {
    EngineRunner runner(
        {.horizon = absl::Milliseconds(size.horizon_ms), .target_fpp = size.target, .engine = which},
        scale == 1 ? int64_t{1} << 20 : int64_t{64} << 20);
    Run(name, size, scale, runner, &table);
  };
  engine("corrected", Engine::kPublished, 1);
  engine("compact", Engine::kCompact, size.scale);
  return table;
}

}  // namespace lethe::lab
