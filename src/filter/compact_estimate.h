// The false-positive probability of a compact filter, from the entries that its lines hold.
#ifndef LETHE_SRC_FILTER_COMPACT_ESTIMATE_H_
#define LETHE_SRC_FILTER_COMPACT_ESTIMATE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/filter/compact_lines.h"

namespace lethe {

struct CompactEstimate {
  double fpp = 0;
  double deviation = 0;  // standard, from sampling; 0 if all lines were looked at
};

// An id that was never inserted meets the live entries of two lines, and equals an entry whose tag has t bits
// and of which v address bits above the line's level are known with the probability 2^-(t + v). So the rate
// is twice the mean over addresses of the sum over the address's line. Up to `most_lines` addresses the sum
// is exact; beyond, it samples so many of them, spread evenly.
//
// It takes steps, between which the table may change; after a change of level it starts again. Thread safety:
// none.
class CompactSample {
 public:
  explicit CompactSample(int64_t most_lines) : most_lines_(most_lines) {}

  // Takes some microseconds. True at the end.
  bool Look(const CompactLines& table, const CompactSpan& span) {
    if (table.level() != level_) {
      *this = CompactSample(most_lines_);
      level_ = table.level();
      addresses_ = int64_t{2} << level_;
      wanted_ = std::min(addresses_, most_lines_);
    }
    const int64_t end = std::min(wanted_, looked_at_ + kLinesPerLook);
    for (int64_t i = looked_at_; i < std::min(end, looked_at_ + kAhead); ++i) table.PrefetchLine(Address(i));
    for (; looked_at_ < end; ++looked_at_) {
      if (looked_at_ + kAhead < end) table.PrefetchLine(Address(looked_at_ + kAhead));
      const double of_line = table.SumOfRates(Address(looked_at_), span);
      sum_ += of_line;
      sum_of_squares_ += of_line * of_line;
    }
    return looked_at_ == wanted_;
  }

  CompactEstimate Estimate() const {
    const auto n = static_cast<double>(looked_at_);
    const double mean = sum_ / n;
    CompactEstimate estimate = {.fpp = 2 * mean};
    if (looked_at_ < addresses_) {
      estimate.deviation = 2 * std::sqrt(std::max(0.0, sum_of_squares_ / n - mean * mean) / n);
    }
    return estimate;
  }

 private:
  static constexpr int64_t kLinesPerLook = 128;
  static constexpr int64_t kAhead = 16;

  // The golden ratio's multiples are spread evenly, in the low bits of a level as well.
  uint64_t Address(int64_t i) const {
    if (addresses_ <= most_lines_) return static_cast<uint64_t>(i);
    return (static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15ULL) >> 20;
  }

  int64_t most_lines_;
  int level_ = -1;
  int64_t addresses_ = 0;
  int64_t wanted_ = 0;
  int64_t looked_at_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_ESTIMATE_H_
