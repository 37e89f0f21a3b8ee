#include "src/published/published_check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "src/published/published_model.h"

namespace lethe {
namespace {

// Of each generation; the estimate then errs by some 0.3 % for each bit that an id sets.
constexpr size_t kSampledWords = 4096;
constexpr size_t kParts = 32;

// By parts of the sample: word i of it is in part i mod kParts.
using Counts = std::array<int64_t, kParts>;

int64_t Sum(const Counts& counts) {
  int64_t sum = 0;
  for (const int64_t count : counts) sum += count;
  return sum;
}

// How many positions of a sample are set in all generations of each run of neighbours.
class RunCounts {
 public:
  explicit RunCounts(absl::Span<const BitArray* const> generations)
      : hashes_(generations[0]->hashes()), runs_(generations.size()) {
    const BitArray& any = *generations[0];
    words_ = any.words().size();
    const size_t sampled = std::min(words_, kSampledWords);
    sample_.resize(sampled);
    for (size_t i = 0; i < sampled; ++i) {
      sample_[i] = i * words_ / sampled;
      // The last word may have fewer bits; they are counted as they are.
      positions_[i % kParts] += std::min<int64_t>(64, any.bits() - static_cast<int64_t>(sample_[i]) * 64);
    }
    for (size_t first = 0; first < generations.size(); ++first) CountRuns(generations, first);
  }

  bool IsOfAll() const { return sample_.size() == words_; }
  double SampledShare() const { return static_cast<double>(sample_.size()) / static_cast<double>(words_); }

  double Fpp() const {
    return Fpp(Counts{}, [](const Counts&) { return 0; });
  }
  double FppWithout(size_t part) const {
    Counts left_out{};
    left_out[part] = positions_[part];
    return Fpp(left_out, [part](const Counts& set) { return set[part]; });
  }
  double Fill(size_t generation) const {
    if (runs_[generation].empty()) return 0;
    return static_cast<double>(Sum(runs_[generation].front())) / static_cast<double>(Sum(positions_));
  }

 private:
  void CountRuns(absl::Span<const BitArray* const> generations, size_t first) {
    const auto positions = static_cast<double>(Sum(positions_));
    std::vector<uint64_t> in_all(sample_.size(), ~uint64_t{0});
    for (size_t last = first; last < generations.size(); ++last) {
      const absl::Span<const uint64_t> generation = generations[last]->words();
      Counts set{};
      for (size_t i = 0; i < sample_.size(); ++i) {
        in_all[i] &= generation[sample_[i]];
        set[i % kParts] += std::popcount(in_all[i]);
      }
      if (IsNegligibleRun(static_cast<double>(Sum(set)) / positions, hashes_)) break;
      runs_[first].push_back(set);
    }
  }

  template <typename LeftOut>
  double Fpp(const Counts& positions_left_out, const LeftOut& left_out) const {
    const auto positions = static_cast<double>(Sum(positions_) - Sum(positions_left_out));
    RunFills fills(runs_.size());
    for (size_t first = 0; first < runs_.size(); ++first) {
      for (const Counts& set : runs_[first]) {
        fills[first].push_back(static_cast<double>(Sum(set) - left_out(set)) / positions);
      }
    }
    return FppFromRunFills(fills, hashes_);
  }

  const int hashes_;
  size_t words_ = 0;
  std::vector<size_t> sample_;
  Counts positions_{};
  std::vector<std::vector<Counts>> runs_;  // by the first generation, then by length
};

double Deviation(const RunCounts& counts) {
  if (counts.IsOfAll()) return 0;
  std::array<double, kParts> without{};
  double mean = 0;
  for (size_t part = 0; part < kParts; ++part) {
    without[part] = counts.FppWithout(part);
    mean += without[part] / kParts;
  }
  double squares = 0;
  for (const double value : without) squares += (value - mean) * (value - mean);
  return std::sqrt(squares * (kParts - 1) / kParts * (1 - counts.SampledShare()));
}

}  // namespace

PublishedEstimate EstimatePublished(absl::Span<const BitArray* const> generations) {
  const RunCounts counts(generations);
  return {.fpp = counts.Fpp(), .deviation = Deviation(counts), .present_fill = counts.Fill(1)};
}

}  // namespace lethe
