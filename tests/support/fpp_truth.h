// Holding a rate of false positives that is stated against what is counted.
#ifndef LETHE_TESTS_SUPPORT_FPP_TRUTH_H_
#define LETHE_TESTS_SUPPORT_FPP_TRUTH_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "lethe/filter.h"
#include "src/fpp/confidence.h"

namespace lethe {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// False positives to be expected of as many probes as a test makes. Under a sanitizer, where a probe takes
// some ten times as long, there are an eighth of them, and the same formula says what that proves.
inline double WantedHits(double hits) { return kSanitized ? hits / 8 : hits; }

// Ids whose hash is a bijection of a number: as good as seeded, and cheap enough for 10^9 of them.
inline IdHash MixedId(uint64_t number) {
  const auto mix = [](uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  const uint64_t a = mix(number);
  return {a, mix(a ^ 0x1234567)};
}

// Of so many ids from number *next on, those that the filter takes for duplicates. Moves *next behind them.
inline int64_t CountHits(const Filter& filter, int64_t probes, uint64_t* next) {
  std::vector<IdHash> ids(8000);
  std::vector<Verdict> verdicts(ids.size());
  int64_t hits = 0;
  while (probes > 0) {
    const auto count = static_cast<size_t>(std::min<int64_t>(probes, 8000));
    for (size_t i = 0; i < count; ++i) ids[i] = MixedId((*next)++);
    const auto judged = absl::MakeSpan(verdicts).first(count);
    filter.Contains(absl::MakeSpan(ids).first(count), judged);
    hits += std::count(judged.begin(), judged.end(), Verdict::kDuplicate);
    probes -= static_cast<int64_t>(count);
  }
  return hits;
}

// What was counted in one or more looks at filters, and what they had said of it.
struct Truth {
  int64_t hits = 0;
  double expected = 0;  // the sum over looks of the estimate times the probes
  // The same of the estimates' deviations; looks at one filter err alike, so they are simply added.
  double deviation = 0;

  void Add(int64_t hits_now, double probes, double estimate, double estimate_deviation) {
    hits += hits_now;
    expected += estimate * probes;
    deviation += estimate_deviation * probes;
  }
};

// Each tail of a count and of an estimate's deviation. A hundred comparisons, two tails each, are all passed
// but for less than once in a million times.
inline constexpr double kTruthTail = 2e-9;
inline constexpr double kTruthSigmas = 5.9;  // a normal variable's

// A count of false positives, given their rate, is a Poisson variable: what was counted must not lie in a
// tail of the one that was stated. Exact, with no normal approximation. A stated rate that is an estimate by
// sample may be off by its own deviation.
inline void ExpectTruth(const Truth& truth, const std::string& what) {
  const Interval rate = RateInterval(truth.hits, int64_t{1} << 60, 1 - 2 * kTruthTail);
  const double low = rate.low * std::exp2(60);
  const double high = rate.high * std::exp2(60);
  const auto measured = static_cast<double>(truth.hits);
  const std::string says = absl::StrCat(what, ": counted ", truth.hits, ", expected ", truth.expected, " +- ",
                                        truth.deviation, "; measured / estimate ", measured / truth.expected,
                                        " in [", low / truth.expected, ", ", high / truth.expected, "]");
  std::cout << says << std::endl;
  EXPECT_LE(low, truth.expected + kTruthSigmas * truth.deviation) << says;
  EXPECT_GE(high, truth.expected - kTruthSigmas * truth.deviation) << says;
}

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_FPP_TRUTH_H_
