// What the experiments share: ids, false positives that are counted, and filters to count them of.
#ifndef LETHE_TESTS_LAB_PROBING_H_
#define LETHE_TESTS_LAB_PROBING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lethe/filter.h"
#include "src/fpp/confidence.h"
#include "src/published/published_fbf.h"
#include "src/reference/any_engine.h"
#include "tests/support/filter_testing.h"

namespace lethe::lab {

// Numbers of ids that no experiment inserts.
inline constexpr uint64_t kStrangers = uint64_t{1} << 60;

// The paper's own number of "invalid elements" for one figure of an FPP.
inline constexpr int64_t kPaperProbes = 200'000;

// How many of `probes` ids that were never inserted are contained.
inline int64_t CountStrangers(const Filter& filter, int64_t probes, uint64_t seed) {
  std::vector<IdHash> ids(1000);
  std::vector<Verdict> verdicts(ids.size());
  int64_t hits = 0;
  for (int64_t done = 0; done < probes;) {
    const auto count = static_cast<size_t>(std::min<int64_t>(probes - done, 1000));
    for (size_t i = 0; i < count; ++i) {
      ids[i] = NumberedId(kStrangers + static_cast<uint64_t>(done) + i, seed);
    }
    const auto judged = absl::MakeSpan(verdicts).first(count);
    filter.Contains(absl::MakeSpan(ids).first(count), judged);
    hits += std::count(judged.begin(), judged.end(), Verdict::kDuplicate);
    done += static_cast<int64_t>(count);
  }
  return hits;
}

// The same of anything that has ContainsId.
template <typename Set>
int64_t CountStrangersIn(const Set& set, int64_t probes, uint64_t seed) {
  int64_t hits = 0;
  for (int64_t i = 0; i < probes; ++i) {
    hits += set.ContainsId(NumberedId(kStrangers + static_cast<uint64_t>(i), seed)) ? 1 : 0;
  }
  return hits;
}

// A rate that was counted on several filters which differ in the seed alone.
class CountedRate {
 public:
  void Add(int64_t hits, int64_t probes) {
    hits_ += hits;
    probes_ += probes;
    rates_.push_back(static_cast<double>(hits) / static_cast<double>(probes));
  }
  double rate() const {
    return static_cast<double>(hits_) / static_cast<double>(std::max<int64_t>(1, probes_));
  }

  int64_t probes() const { return probes_; }

  // Holds the rate with 99 %. Two things are left to chance, which strangers are asked for and how full the
  // filters became; the band is the wider of the two intervals, Garwood's of the count and Student's of the
  // filters' means.
  Interval Band() const {
    Interval band = RateInterval(hits_, probes_, 0.99);
    const auto count = static_cast<double>(rates_.size());
    if (rates_.size() < 2) return band;
    double squares = 0;
    for (const double rate : rates_) squares += (rate - this->rate()) * (rate - this->rate());
    // Student's 99.5 % quantile, within a fortieth from four filters on.
    const double freedom = count - 1;
    const double quantile = 2.576 + 4.9 / freedom + 14.6 / (freedom * freedom);
    const double half = quantile * std::sqrt(squares / freedom / count);
    band.low = std::max(0.0, std::min(band.low, rate() - half));
    band.high = std::min(1.0, std::max(band.high, rate() + half));
    return band;
  }

 private:
  int64_t hits_ = 0;
  int64_t probes_ = 0;
  std::vector<double> rates_;
};

// A filter with a memory limit of its own.
struct OwnedFilter {
  std::unique_ptr<MemoryBudget> memory;
  std::unique_ptr<Filter> filter;
  Filter* operator->() const { return filter.get(); }
  Filter& operator*() const { return *filter; }
};

// Ends the program if it cannot be made: a parameter of an experiment is wrong then.
inline OwnedFilter MakeFilter(const AnyEngine& engine, FilterOptions options, int64_t limit_bytes) {
  OwnedFilter made{.memory = std::make_unique<MemoryBudget>(limit_bytes), .filter = nullptr};
  options.memory = made.memory.get();
  auto filter = NewFilter(engine, options);
  if (!filter.ok()) {
    std::cerr << EngineName(engine) << ": " << filter.status() << std::endl;
    std::abort();
  }
  made.filter = *std::move(filter);
  return made;
}

// The published filter of a fixed size, without its paper's adaptation.
inline OwnedFilter MakeFixedPublished(FilterOptions options, int64_t limit_bytes) {
  OwnedFilter made{.memory = std::make_unique<MemoryBudget>(limit_bytes), .filter = nullptr};
  options.memory = made.memory.get();
  auto filter = PublishedFbf::Create(PublishedShape(options));
  if (!filter.ok()) {
    std::cerr << filter.status() << std::endl;
    std::abort();
  }
  made.filter = *std::move(filter);
  return made;
}

}  // namespace lethe::lab

#endif  // LETHE_TESTS_LAB_PROBING_H_
