// Hash sets of 64-bit fingerprints, one for each generation: exact, and what most people build first.
#ifndef LETHE_TESTS_BENCH_RIVALS_HASH_SET_GENERATIONS_H_
#define LETHE_TESTS_BENCH_RIVALS_HASH_SET_GENERATIONS_H_

#include <array>
#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"

namespace lethe::bench {

// An id is in the set of its interval, and is looked for in all of them. The horizon is four intervals, so
// there are five sets: more would take less memory and more time. Each is made for the ids of its interval,
// so none grows, and the oldest is given up whole at a refresh. Batches are not prefetched: with the sets in
// pages of 4 KiB it made them slower.
//
// Thread safety: as Filter.
class HashSetGenerations final : public EachIdFilter<HashSetGenerations> {
 public:
  static constexpr size_t kGenerations = 5;

  HashSetGenerations(double window_ids, int64_t horizon_ms)
      : ids_(static_cast<size_t>(window_ids / (kGenerations - 1) * 1.001) + 64),
        clock_((horizon_ms + kGenerations - 2) / static_cast<int64_t>(kGenerations - 1)) {
    for (Set& set : sets_) set.reserve(ids_);
  }

  void AdvanceTo(int64_t stream_time_ms) override {
    for (uint64_t due = clock_.AdvanceTo(stream_time_ms); due > 0; --due) {
      newest_ = (newest_ + 1) % kGenerations;
      sets_[newest_] = Set();
      sets_[newest_].reserve(ids_);
      ++refreshes_;
    }
  }

  FilterStatus Status() const override {
    FilterStatus status;
    status.past_generations = kGenerations - 2;
    status.refresh_period = absl::Milliseconds(clock_.interval_ms());
    status.window = clock_.Since(kGenerations - 1);
    status.refreshes = refreshes_;
    // A slot is eight bytes, and a byte that tells whether it is taken.
    for (const Set& set : sets_) status.memory_bytes += static_cast<int64_t>(set.capacity()) * 9;
    return status;
  }

 private:
  friend class EachIdFilter<HashSetGenerations>;

  // The fingerprint is a hash already.
  struct Same {
    size_t operator()(uint64_t hash) const { return hash; }
  };
  using Set = absl::flat_hash_set<uint64_t, Same>;

  bool ContainsId(IdHash id) const {
    for (const Set& set : sets_) {
      if (set.contains(id.a)) return true;
    }
    return false;
  }
  void InsertId(IdHash id) { sets_[newest_].insert(id.a); }

  const size_t ids_;  // of an interval
  StreamClock clock_;
  std::array<Set, kGenerations> sets_;
  size_t newest_ = 0;
  int64_t refreshes_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RIVALS_HASH_SET_GENERATIONS_H_
