// What tests of filters share: ids, one-id calls, and bounds of chance.
#ifndef LETHE_TESTS_SUPPORT_FILTER_TESTING_H_
#define LETHE_TESTS_SUPPORT_FILTER_TESTING_H_

#include <cmath>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/filter.h"
#include "tests/support/seed.h"

namespace lethe {

// The hash of the number-th id: the same number and seed give the same id.
inline IdHash NumberedId(uint64_t number, uint64_t seed) {
  return HashId(absl::string_view(reinterpret_cast<const char*>(&number), sizeof(number)), {.low = seed});
}

inline bool IsContained(const Filter& filter, IdHash id) {
  Verdict verdict = Verdict::kUnique;
  filter.Contains({&id, 1}, {&verdict, 1});
  return verdict == Verdict::kDuplicate;
}

inline void InsertOne(Filter& filter, IdHash id, int64_t stream_time_ms) {
  const TimedId timed{.id = id, .stream_time_ms = stream_time_ms};
  filter.Insert({&timed, 1});
}

inline Verdict TestAndInsertOne(Filter& filter, IdHash id, int64_t stream_time_ms) {
  const TimedId timed{.id = id, .stream_time_ms = stream_time_ms};
  Verdict verdict = Verdict::kUnique;
  filter.TestAndInsert({&timed, 1}, {&verdict, 1});
  return verdict;
}

// The share of `probes` ids, numbered from `first` and taken for never inserted, that are contained.
inline double MeasuredFpp(const Filter& filter, uint64_t first, uint64_t probes, uint64_t seed) {
  uint64_t hits = 0;
  for (uint64_t i = 0; i < probes; ++i) hits += IsContained(filter, NumberedId(first + i, seed)) ? 1 : 0;
  return static_cast<double>(hits) / static_cast<double>(probes);
}

// Standard deviations that a normal variable leaves, on either side, less than once in four million.
inline constexpr double kSigmas = 5.2;

// What a share p, counted over n independent trials, may be off by (kSigmas), with one count more for
// where n p is so small that the normal approximation is not one.
inline double BinomialBound(double p, double n) { return kSigmas * std::sqrt(p * (1 - p) / n) + 1 / n; }

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_FILTER_TESTING_H_
