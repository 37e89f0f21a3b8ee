// An age-partitioned Bloom filter (Shtul, Baquero, Almeida: "Age-Partitioned Bloom Filters", 2020).
#ifndef LETHE_TESTS_BENCH_RIVALS_APBF_H_
#define LETHE_TESTS_BENCH_RIVALS_APBF_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/memory/line_memory.h"
#include "src/published/bit_positions.h"
#include "tests/bench/ring_status.h"

namespace lethe::bench {

// k + l slices, each a bit array with a hash function of its own. An id sets one bit in each of the k newest
// and is contained if k slices in a row have its bit. A shift, here with each l-th part of the horizon,
// makes the oldest slice the newest, empty: so an id stays for l shifts. A slice that left the k newest has
// taken k intervals of ids, and is half full.
//
// The look-up is the paper's: the k slices from l on are tested from the oldest; where one has no bit, the k
// slices before it are next, for no row can reach over it. What was found of a row is not tested again.
//
// Thread safety: as Filter.
class Apbf final : public EachIdFilter<Apbf> {
 public:
  // `slice_bits` is a multiple of 64; memory has k + l of them.
  Apbf(LineMemory memory, int k, int l, int64_t slice_bits, int64_t horizon_ms)
      : memory_(std::move(memory)),
        words_(static_cast<uint64_t*>(memory_.data())),
        k_(k),
        slices_(k + l),
        slice_bits_(static_cast<uint64_t>(slice_bits)),
        clock_((horizon_ms + l - 1) / l) {}

  void AdvanceTo(int64_t stream_time_ms) override {
    for (uint64_t due = clock_.AdvanceTo(stream_time_ms); due > 0; --due) {
      newest_ = (newest_ + slices_ - 1) % slices_;
      std::memset(words_ + static_cast<uint64_t>(newest_) * (slice_bits_ / 64), 0, slice_bits_ / 8);
      ++shifts_;
    }
  }

  FilterStatus Status() const override {
    FilterStatus status = RingStatus(clock_, slices_ - k_, shifts_, memory_.bytes());
    status.fpp.modelled = Rate();
    return status;
  }

 private:
  friend class EachIdFilter<Apbf>;

  // The paper's recursion: the chance that k slices in a row have the bit, at the end of an interval.
  double Rate() const {
    std::vector<double> in_row(static_cast<size_t>(k_));  // by how many of the last slices have it
    in_row[0] = 1;
    double rate = 0;
    for (int age = 0; age < slices_; ++age) {
      const double fill = age < k_ ? 1 - std::exp2(-(age + 1.0) / k_) : 0.5;
      rate += in_row.back() * fill;
      const double none = std::accumulate(in_row.begin(), in_row.end(), 0.0) * (1 - fill);
      std::rotate(in_row.begin(), in_row.end() - 1, in_row.end());
      for (double& chance : in_row) chance *= fill;
      in_row[0] = none;
    }
    return rate;
  }

  // The word and the bit of an id in the slice of that age, 0 being the newest.
  struct Place {
    uint64_t* word;
    uint64_t bit;
  };
  Place At(IdHash id, int age) const {
    int slot = newest_ + age;
    if (slot >= slices_) slot -= slices_;
    // Enhanced double hashing, as in BitPositions: slot i has the hash a + i b + i (i - 1) / 2 c.
    const auto i = static_cast<uint64_t>(slot);
    const uint64_t hash = id.a + i * (id.b | 1) + i * (i - 1) / 2 * (std::rotl(id.b, 32) | 1);
    const uint64_t position = ScaleDown(hash, slice_bits_);
    return {words_ + i * (slice_bits_ / 64) + position / 64, uint64_t{1} << (position % 64)};
  }
  bool IsSet(IdHash id, int age) const {
    const Place place = At(id, age);
    return (*place.word & place.bit) != 0;
  }

  void PrefetchId(IdHash id) const {
    // What every insertion writes, and one slice in k of the others, which most look-ups read.
    for (int age = 0; age < k_; ++age) __builtin_prefetch(At(id, age).word, 1);
    for (int age = slices_ - k_; age > k_; age -= k_) __builtin_prefetch(At(id, age).word);
  }

  bool ContainsId(IdHash id) const {
    int first = slices_ - k_;  // of the row that is looked for
    int known = 0;             // its last so many slices have the bit
    while (first >= 0) {
      int age = first;
      const int end = first + k_ - known;
      // From the row's newest slice on, up to those that are known.
      while (age < end && IsSet(id, age)) ++age;
      if (age == end) return true;
      // No row holds slice `age`. The slices before it that were found are the end of an earlier row.
      known = age - first;
      first = age - k_;
    }
    return false;
  }

  void InsertId(IdHash id) {
    for (int age = 0; age < k_; ++age) {
      const Place place = At(id, age);
      *place.word |= place.bit;
    }
  }

  LineMemory memory_;
  uint64_t* const words_;
  const int k_;
  const int slices_;
  const uint64_t slice_bits_;
  StreamClock clock_;
  int newest_ = 0;  // the slot of the newest slice; older ones follow
  int64_t shifts_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RIVALS_APBF_H_
