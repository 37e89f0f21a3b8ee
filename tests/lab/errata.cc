// What had to be corrected in the Forgetful Bloom Filter's paper, each by a small experiment.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/published/published_model.h"
#include "tests/lab/experiments.h"
#include "tests/lab/fbf.h"

namespace lethe::lab {
namespace {

uint64_t SeedOf(const ErrataSize& size, int repetition) {
  return size.seed * 1000 + static_cast<uint64_t>(repetition);
}

// An FBF with so many ids in each of the last intervals, and a share of them in the one that is open.
LabFbf Steady(int past, int64_t bits, int hashes, LabFbf::Mapping mapping, int64_t ids, double open_share,
              uint64_t seed) {
  LabFbf fbf(past, bits, hashes, LabFbf::Check::kText, mapping);
  uint64_t next = 0;
  const auto insert = [&](double count) {
    for (int64_t i = 0; i < std::llround(count); ++i) fbf.InsertId(NumberedId(next++, seed));
  };
  for (int i = 0; i < past + 3; ++i) {
    insert(static_cast<double>(ids));
    fbf.Refresh();
  }
  insert(static_cast<double>(ids) * open_share);
  return fbf;
}

struct SteadyFpp {
  CountedRate shared, alternating;
  double equation_3 = 0;
  double shared_model = 0;
};

// The mean over the phases of an interval.
SteadyFpp MeasureSteady(const ErrataSize& size, int past, int64_t bits, int hashes, int64_t ids) {
  SteadyFpp measured;
  for (int i = 0; i < size.repetitions; ++i) {
    const double open = (i + 0.5) / size.repetitions;
    const uint64_t seed = SeedOf(size, i);
    const LabFbf shared = Steady(past, bits, hashes, LabFbf::Mapping::kShared, ids, open, seed);
    measured.shared.Add(CountStrangersIn(shared, size.probes, seed), size.probes);
    measured.equation_3 += shared.EquationThree() / size.repetitions;
    measured.shared_model += shared.SharedModel() / size.repetitions;
    const LabFbf other = Steady(past, bits, hashes, LabFbf::Mapping::kAlternating, ids, open, seed);
    measured.alternating.Add(CountStrangersIn(other, size.probes, seed), size.probes);
  }
  return measured;
}

// Of the ids of each interval, newest first, the share that is contained. `each` ids an interval.
std::vector<double> FoundByAge(const LabFbf& fbf, LabFbf::Check check, uint64_t intervals, uint64_t each,
                               uint64_t seed) {
  std::vector<double> found;
  for (uint64_t age = 0; age < intervals; ++age) {
    double count = 0;
    for (uint64_t i = 0; i < each; ++i) {
      count += fbf.ContainsId(NumberedId((intervals - 1 - age) * each + i, seed), check) ? 1 : 0;
    }
    found.push_back(count / static_cast<double>(each));
  }
  return found;
}

// How many strangers one Bloom filter with so many ids contains.
int64_t HitsOfOneFilter(int64_t m, int hashes, int64_t ids, int64_t probes, uint64_t seed) {
  std::optional<BitArray> bits = BitArray::Create(m, hashes);
  if (!bits.has_value()) std::abort();
  for (int64_t id = 0; id < ids; ++id) bits->Insert(NumberedId(static_cast<uint64_t>(id), seed));
  int64_t hits = 0;
  for (int64_t probe = 0; probe < probes; ++probe) {
    hits += bits->Contains(NumberedId(kStrangers + static_cast<uint64_t>(probe), seed)) ? 1 : 0;
  }
  return hits;
}

}  // namespace

Table Erratum1(const ErrataSize& size) {
  Table table("erratum1",
              absl::StrCat("one Bloom filter of m = 6250 bits; k = 5; ", size.repetitions, " filters of ",
                           size.probes, " probes each; seed ", size.seed),
              {"ids", "printed", "meant", "approximation", "fpp", "low", "high"});
  constexpr double kBits = 6250;
  constexpr int kHashes = 5;
  for (const int64_t ids : {500, 1000, 2000, 4000}) {
    CountedRate rate;
    for (int i = 0; i < size.repetitions; ++i) {
      const uint64_t seed = SeedOf(size, i);
      rate.Add(HitsOfOneFilter(static_cast<int64_t>(kBits), kHashes, ids, size.probes, seed), size.probes);
    }
    const auto l = static_cast<double>(ids);
    const Interval band = rate.Band();
    table.Add({ids, 1 - std::pow(1 - 1 / l, kBits * kHashes),
               std::pow(1 - std::pow(1 - 1 / kBits, kHashes * l), kHashes), BloomFpp(l, kBits, kHashes),
               rate.rate(), band.low, band.high});
  }
  return table;
}

Table Erratum2(const ErrataSize& size) {
  constexpr uint64_t kEach = 200;
  constexpr int kPast = 4;
  Table table(
      "erratum2",
      absl::StrCat("N = 4; m = 100000 bits; k = 10; ", kEach, " ids in each interval; seed ", size.seed),
      {"age", "printed", "text"});
  LabFbf fbf(kPast, 100'000, 10, LabFbf::Check::kText);
  constexpr uint64_t kIntervals = kPast + 4;
  for (uint64_t i = 0; i < kIntervals * kEach; ++i) {
    if (i > 0 && i % kEach == 0) fbf.Refresh();
    fbf.InsertId(NumberedId(i, size.seed));
  }
  const std::vector<double> printed = FoundByAge(fbf, LabFbf::Check::kPrinted, kIntervals, kEach, size.seed);
  const std::vector<double> text = FoundByAge(fbf, LabFbf::Check::kText, kIntervals, kEach, size.seed);
  for (size_t age = 0; age < kIntervals; ++age) {
    table.Add({static_cast<int64_t>(age), printed[age], text[age]});
  }
  return table;
}

Table Erratum3(const ErrataSize& size) {
  Table table("erratum3",
              absl::StrCat("m = 100000 bits; k = 5; 4000 ids in each interval; mean over the phases; ",
                           size.repetitions, " filters of ", size.probes, " probes each; seed ", size.seed),
              {"past", "fpp", "low", "high", "equation_3", "shared_model", "alternating"});
  for (const int past : {1, 2, 4, 8, 14}) {
    const SteadyFpp measured = MeasureSteady(size, past, 100'000, 5, 4000);
    const Interval band = measured.shared.Band();
    table.Add({int64_t{past}, measured.shared.rate(), band.low, band.high, measured.equation_3,
               measured.shared_model, measured.alternating.rate()});
  }
  return table;
}

Table Erratum4(const ErrataSize& size) {
  constexpr uint64_t kEach = 200;
  constexpr int kPast = 1;
  Table table("erratum4",
              absl::StrCat("N = 1, then 4; m = 100000 bits; k = 10; ", kEach, " ids in each interval; seed ",
                           size.seed),
              {"age", "before", "appended", "kept"});
  constexpr uint64_t kIntervals = 5;
  const auto fill = [&](LabFbf* fbf, uint64_t from, uint64_t to) {
    for (uint64_t i = from * kEach; i < to * kEach; ++i) {
      if (i > 0 && i % kEach == 0) fbf->Refresh();
      fbf->InsertId(NumberedId(i, size.seed));
    }
  };
  LabFbf fbf(kPast, 100'000, 10, LabFbf::Check::kText);
  fill(&fbf, 0, kIntervals);
  const std::vector<double> before = FoundByAge(fbf, LabFbf::Check::kText, kIntervals, kEach, size.seed);
  for (int i = 0; i < kPast + 2; ++i) fbf.Append();
  const std::vector<double> appended = FoundByAge(fbf, LabFbf::Check::kText, kIntervals, kEach, size.seed);
  // Grown by not dropping: a refresh adds a generation in front, and the oldest stays.
  LabFbf kept(2 * kPast + 2, 100'000, 10, LabFbf::Check::kText);
  fill(&kept, 0, kIntervals);
  const std::vector<double> not_dropped =
      FoundByAge(kept, LabFbf::Check::kText, kIntervals, kEach, size.seed);
  for (size_t age = 0; age < kIntervals; ++age) {
    table.Add({static_cast<int64_t>(age), before[age], appended[age], not_dropped[age]});
  }
  return table;
}

Table Erratum5(const ErrataSize& size) {
  Table table("erratum5",
              absl::StrCat("m = 25000 bits; k = 5; steady 200 ids/s; same t: 5 s; window held: (N + 1) t = "
                           "10 s; mean over the "
                           "phases; ",
                           size.repetitions, " filters of ", size.probes, " probes each; seed ", size.seed),
              {"past", "same_period", "same_period_window_s", "window_held", "window_held_period_s"});
  constexpr double kRate = 200;
  for (const int past : {1, 4, 10, 22}) {
    const SteadyFpp same = MeasureSteady(size, past, 25'000, 5, static_cast<int64_t>(5 * kRate));
    const double period = 10.0 / (past + 1);
    const SteadyFpp held = MeasureSteady(size, past, 25'000, 5, std::llround(period * kRate));
    table.Add({int64_t{past}, same.shared.rate(), 5.0 * (past + 1), held.shared.rate(), period});
  }
  return table;
}

Table Erratum6(const ErrataSize& size) {
  constexpr int64_t kSecondMs = 1000;
  constexpr int64_t kIdsPerSecond = 20;
  constexpr int kPast = 9;
  constexpr int64_t kPeriodMs = 2000;
  Table table("erratum6",
              absl::StrCat(
                  "begins with N = 9, t = 2 s, (N + 1) t = 20 s; a step down at each second: N - 1, t + 1 s; "
                  "m = 100000 bits; k = 10; ",
                  kIdsPerSecond, " ids/s; seed ", size.seed),
              {"second", "past", "period_s", "promised_s", "window_s"});
  LabFbf fbf(kPast, 100'000, 10, LabFbf::Check::kText);
  int64_t period_ms = kPeriodMs;
  int64_t last_refresh_ms = 0;
  uint64_t next = 0;
  constexpr int64_t kStepsFromS = 60;
  for (int64_t second = 1; second <= kStepsFromS + 40; ++second) {
    for (int64_t i = 0; i < kIdsPerSecond; ++i) {
      const int64_t now_ms = (second - 1) * kSecondMs + i * kSecondMs / kIdsPerSecond;
      for (; last_refresh_ms + period_ms <= now_ms; last_refresh_ms += period_ms) fbf.Refresh();
      fbf.InsertId(NumberedId(next++, size.seed));
    }
    const int64_t now_ms = second * kSecondMs;
    for (; last_refresh_ms + period_ms <= now_ms; last_refresh_ms += period_ms) fbf.Refresh();
    if (second > kStepsFromS && fbf.filters() > 3) {
      fbf.DropOldest();
      period_ms += kSecondMs;
    }
    if (second < kStepsFromS - 5) continue;
    uint64_t found = 0;
    while (found < next && fbf.ContainsId(NumberedId(next - 1 - found, size.seed))) ++found;
    table.Add({second - kStepsFromS, int64_t{fbf.filters() - 2}, static_cast<double>(period_ms) / 1000,
               static_cast<double>((fbf.filters() - 1) * period_ms) / 1000,
               static_cast<double>(found) / kIdsPerSecond});
  }
  return table;
}

Table Erratum7(const ErrataSize& size) {
  constexpr int64_t kBits = 6250;
  constexpr int kHashes = 5;
  Table table("erratum7",
              absl::StrCat("N = 1; m = 6250 bits; k = 5; elements come evenly in two refresh periods; ",
                           size.repetitions, " filters of ", size.probes,
                           " probes each, and of all their elements; seed ", size.seed),
              {"elements", "asked", "verdicts_changed", "fpp", "equation_3", "without_last_pair"});
  for (const int64_t elements : {300, 1000, 2000}) {
    int64_t asked = 0, changed = 0;
    CountedRate rate;
    double equation_3 = 0, without_last_pair = 0;
    for (int i = 0; i < size.repetitions; ++i) {
      const uint64_t seed = SeedOf(size, i);
      LabFbf fbf(1, kBits, kHashes, LabFbf::Check::kText);
      for (int64_t id = 0; id < elements; ++id) {
        if (id == elements / 2) fbf.Refresh();
        fbf.InsertId(NumberedId(static_cast<uint64_t>(id), seed));
      }
      const auto ask = [&](uint64_t number) {
        const IdHash id = NumberedId(number, seed);
        const bool is_contained = fbf.ContainsId(id);
        ++asked;
        changed += is_contained != (fbf.GenerationContains(0, id) || fbf.GenerationContains(2, id)) ? 1 : 0;
        return is_contained;
      };
      for (int64_t id = 0; id < elements; ++id) ask(static_cast<uint64_t>(id));
      int64_t hits = 0;
      for (int64_t probe = 0; probe < size.probes; ++probe) {
        hits += ask(kStrangers + static_cast<uint64_t>(probe)) ? 1 : 0;
      }
      rate.Add(hits, size.probes);
      equation_3 = fbf.EquationThree();
      const std::vector<double> ids = fbf.IntervalIds();
      const double future = BloomFpp(ids[0], kBits, kHashes);
      const double past = BloomFpp(ids[1] + ids[2], kBits, kHashes);
      without_last_pair = 1 - (1 - future) * (1 - past);
    }
    table.Add({elements, asked, changed, rate.rate(), equation_3, without_last_pair});
  }
  return table;
}

Table StatedRates(const ErrataSize& size) {
  Table table("stated_rates",
              absl::StrCat("one Bloom filter; ", size.repetitions, " filters of ", size.probes,
                           " probes each; seed ", size.seed),
              {"where", "bits", "hashes", "ids", "formula", "fpp", "low", "high"});
  struct Stated {
    std::string where;
    int64_t bits;
    int hashes;
    int64_t ids;
  };
  // The m of the Distributed Bloom Filter's experiments is the one for a rate of a half, whose best k is 1.
  constexpr int64_t kElements = 1000;
  const auto half_bits = static_cast<int64_t>(std::ceil(kElements / std::log(2.0)));
  for (const Stated& stated : {Stated{"slide 5", 3200, 4, 100},
                               {"DBF, k = 1", half_bits, 1, kElements},
                               {"DBF, k = 2", half_bits, 2, kElements}}) {
    CountedRate rate;
    for (int i = 0; i < size.repetitions; ++i) {
      rate.Add(HitsOfOneFilter(stated.bits, stated.hashes, stated.ids, size.probes, SeedOf(size, i)),
               size.probes);
    }
    const Interval band = rate.Band();
    table.Add({stated.where, stated.bits, int64_t{stated.hashes}, stated.ids,
               BloomFpp(static_cast<double>(stated.ids), static_cast<double>(stated.bits), stated.hashes),
               rate.rate(), band.low, band.high});
  }
  return table;
}

}  // namespace lethe::lab
