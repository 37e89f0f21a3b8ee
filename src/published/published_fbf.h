// The Forgetful Bloom Filter as published: the reference that the others are measured against.
#ifndef LETHE_SRC_PUBLISHED_PUBLISHED_FBF_H_
#define LETHE_SRC_PUBLISHED_PUBLISHED_FBF_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lethe/filter.h"
#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/memory/reservation.h"
#include "src/published/bit_array.h"
#include "src/published/published_model.h"

namespace lethe {

struct PublishedFbfOptions {
  int past_generations = 1;         // N, from 1
  int64_t bits_per_generation = 0;  // m, from 1
  int hashes = 0;                   // k, from 1 to 64
  absl::Duration refresh_period;    // t, from 1 ms; parts of a millisecond are rounded up
  MemoryBudget* memory = nullptr;   // outlives the filter
  double target_fpp = 0;            // for Status(); this filter does nothing about it
};

// The N-FBF of Subramanyam, Gupta, Leslie and Wang ("Idempotent Distributed Counters Using a Forgetful
// Bloom Filter"): N + 2 Bloom filters of m bits, each an array of its own. An id is inserted into future
// and present; every t each generation becomes the next older one.
//
// The check is Algorithm 2 in its text's order: the future alone; the pairs (present, past 1), (past 1,
// past 2), ...; and the oldest alone, always, last. (The pseudocode reaches it only for N = 1: it hangs
// it on the `else` of the loop. Without it ids would be forgotten an interval early.)
//
// A refresh falls on each multiple of t in stream time. An id is contained for more than (N + 1) t and is
// gone after (N + 2) t at the latest, false positives apart.
//
// Invariant: the ids of interval i are in generation i, its future, and in generation i - 1, its present;
// generations[future_ + j] is the j-th newest, in a ring. Thread safety: as Filter.
class PublishedFbf final : public EachIdFilter<PublishedFbf> {
 public:
  // InvalidArgument if a value is out of its range, ResourceExhausted if the memory is not there.
  static absl::StatusOr<std::unique_ptr<PublishedFbf>> Create(const PublishedFbfOptions& options);

  void AdvanceTo(int64_t stream_time_ms) override;
  void Replay(absl::Span<const TimedId> ids) override { ReplayEach(ids); }

  // The window begins with the oldest interval of which all ids are still contained. fpp_modelled is the
  // model with the ids that neighbours share (FppWithSharedIntervals), of the ids inserted in each interval;
  // Equation 3 would be up to a half too low. fpp_estimated is what the set bits of neighbouring generations
  // imply, from some 260,000 positions of each; its deviation is what another choice of these would change.
  FilterStatus Status() const override;

 private:
  friend class EachIdFilter<PublishedFbf>;

  void DescribeGenerations(FilterStatus* status) const;
  PublishedFbf(const PublishedFbfOptions& options, int64_t refresh_period_ms, Reservation memory,
               std::vector<BitArray> generations);

  size_t Slot(size_t age) const { return (future_ + age) % generations_.size(); }
  bool ContainsId(IdHash id) const;
  bool ContainsIdAt(const TimedId& timed) const;
  void InsertId(IdHash id);
  void ReplayId(IdHash id);
  void Refresh();
  double ModelledFpp() const;

  const PublishedFbfOptions options_;
  Reservation memory_;
  std::vector<BitArray> generations_;
  std::vector<int64_t> interval_ids_;  // by slot: inserted while that generation was the future
  size_t future_ = 0;                  // the slot of the newest; ages count upwards from it
  StreamClock clock_;
  int64_t refreshes_ = 0;
};

// A shape of fixed size for these options, of which AdaptiveFbf takes m and k. N = 14, so that the window is
// at most a fifteenth longer than the horizon, and t = horizon / (N + 1). The size is fixed
// (FixedShareBytes), since the published filter has no way to grow that keeps its promise. k is what makes
// the two checks of one generation alone reach the target when arrays are half full. Status() tells if more
// ids come than that carries.
PublishedFbfOptions PublishedShape(const FilterOptions& options);

}  // namespace lethe

#endif  // LETHE_SRC_PUBLISHED_PUBLISHED_FBF_H_
