#include "src/filter/published_check.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace lethe {
namespace {

// Of each generation; the estimate then errs by some 0.3 % for each bit that an id sets.
constexpr size_t kSampledWords = 4096;

}  // namespace

RunFills SampleRunFills(absl::Span<const BitArray* const> generations) {
  const BitArray& any = *generations[0];
  const size_t words = any.words().size();
  const size_t sampled = std::min(words, kSampledWords);
  // The last word may have fewer bits; they are counted as they are.
  int64_t positions = 0;
  std::vector<size_t> sample(sampled);
  for (size_t i = 0; i < sampled; ++i) {
    sample[i] = i * words / sampled;
    positions += std::min<int64_t>(64, any.bits() - static_cast<int64_t>(sample[i]) * 64);
  }
  RunFills fills(generations.size());
  std::vector<uint64_t> in_all(sampled);
  for (size_t first = 0; first < generations.size(); ++first) {
    std::fill(in_all.begin(), in_all.end(), ~uint64_t{0});
    for (size_t last = first; last < generations.size(); ++last) {
      const absl::Span<const uint64_t> generation = generations[last]->words();
      int64_t set = 0;
      for (size_t i = 0; i < sampled; ++i) {
        in_all[i] &= generation[sample[i]];
        set += std::popcount(in_all[i]);
      }
      if (set == 0) break;
      fills[first].push_back(static_cast<double>(set) / static_cast<double>(positions));
    }
  }
  return fills;
}

}  // namespace lethe
