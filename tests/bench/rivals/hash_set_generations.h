// Hash sets of 64-bit fingerprints, one for each generation: exact, and what most people build first.
#ifndef LETHE_TESTS_BENCH_RIVALS_HASH_SET_GENERATIONS_H_
#define LETHE_TESTS_BENCH_RIVALS_HASH_SET_GENERATIONS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "tests/bench/ring_status.h"

namespace lethe::bench {

// An id is in the set of its interval, and is looked for in all of them. The horizon is as many intervals as
// there are sets, less one. Each set is made for the ids of its interval, so none grows, and the oldest is
// given up whole at a refresh. Batches are not prefetched: with the sets in pages of 4 KiB it made them
// slower.
//
// Thread safety: as Filter.
class HashSetGenerations final : public EachIdFilter<HashSetGenerations> {
 public:
  // Of five to eight sets, the number that needs the least memory for that window: a set's slots are a power
  // of two, so it depends on how well an interval fills them. More sets take more time.
  static int SmallestFor(double window_ids) {
    int smallest = 5;
    for (int generations = 6; generations <= 8; ++generations) {
      if (Slots(generations, window_ids) < Slots(smallest, window_ids)) smallest = generations;
    }
    return smallest;
  }

  HashSetGenerations(int generations, double window_ids, int64_t horizon_ms)
      : ids_(IdsOfInterval(generations, window_ids)),
        clock_((horizon_ms + generations - 2) / (generations - 1)),
        sets_(static_cast<size_t>(generations)) {
    for (Set& set : sets_) set.reserve(ids_);
  }

  void AdvanceTo(int64_t stream_time_ms) override {
    for (uint64_t due = clock_.AdvanceTo(stream_time_ms); due > 0; --due) {
      newest_ = (newest_ + 1) % sets_.size();
      sets_[newest_] = Set();
      sets_[newest_].reserve(ids_);
      ++refreshes_;
    }
  }

  FilterStatus Status() const override {
    // A slot is eight bytes, and a byte that tells whether it is taken.
    int64_t bytes = 0;
    for (const Set& set : sets_) bytes += static_cast<int64_t>(set.capacity()) * 9;
    return RingStatus(clock_, static_cast<int64_t>(sets_.size()) - 1, refreshes_, bytes);
  }

 private:
  friend class EachIdFilter<HashSetGenerations>;

  // The fingerprint is a hash already.
  struct Same {
    size_t operator()(uint64_t hash) const { return hash; }
  };
  using Set = absl::flat_hash_set<uint64_t, Same>;

  static size_t IdsOfInterval(int generations, double window_ids) {
    return static_cast<size_t>(window_ids / (generations - 1) * 1.001) + 64;
  }
  // Of all sets: each is filled to seven eighths at most.
  static size_t Slots(int generations, double window_ids) {
    const size_t ids = IdsOfInterval(generations, window_ids);
    return static_cast<size_t>(generations) * std::bit_ceil(ids + (ids - 1) / 7 + 1);
  }

  bool ContainsId(IdHash id) const {
    for (const Set& set : sets_) {
      if (set.contains(id.a)) return true;
    }
    return false;
  }
  void InsertId(IdHash id) { sets_[newest_].insert(id.a); }

  const size_t ids_;  // of an interval
  StreamClock clock_;
  std::vector<Set> sets_;
  size_t newest_ = 0;
  int64_t refreshes_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RIVALS_HASH_SET_GENERATIONS_H_
