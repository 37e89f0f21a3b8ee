// The false-positive probability of a compact filter, from the entries that its lines hold.
#ifndef LETHE_SRC_FILTER_COMPACT_ESTIMATE_H_
#define LETHE_SRC_FILTER_COMPACT_ESTIMATE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/filter/compact_table.h"

namespace lethe {

struct CompactEstimate {
  double fpp = 0;
  double deviation = 0;  // standard, from sampling; 0 if all lines were looked at
};

// An id that was never inserted meets the live entries of two lines, and equals an entry whose tag has t bits
// and of which v address bits above the line's level are known with the probability 2^-(t + v). So the rate
// is twice the mean over addresses of the sum over the address's line. Up to 1,024 addresses the sum is
// exact, above it is over so many, spread evenly.
template <typename Tag>
CompactEstimate EstimateCompact(const CompactTable<Tag>& table, const CompactSpan& span) {
  constexpr int64_t kMostLines = 1024;
  const int64_t addresses = int64_t{2} << table.level();
  const int64_t looked_at = std::min(addresses, kMostLines);
  double sum = 0;
  double sum_of_squares = 0;
  for (int64_t i = 0; i < looked_at; ++i) {
    // The golden ratio's multiples are spread evenly, in the low bits of a level as well.
    const uint64_t address = addresses <= kMostLines
                                 ? static_cast<uint64_t>(i)
                                 : (static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15ULL) >> 20;
    double of_line = 0;
    table.VisitLine(address, span, [&](const CompactEntry& entry, int level) {
      of_line += std::ldexp(1.0, level - entry.known - CompactLine<Tag>::kTagBits);
    });
    sum += of_line;
    sum_of_squares += of_line * of_line;
  }
  const auto n = static_cast<double>(looked_at);
  const double mean = sum / n;
  CompactEstimate estimate = {.fpp = 2 * mean};
  if (looked_at < addresses) {
    estimate.deviation = 2 * std::sqrt(std::max(0.0, sum_of_squares / n - mean * mean) / n);
  }
  return estimate;
}

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_ESTIMATE_H_
