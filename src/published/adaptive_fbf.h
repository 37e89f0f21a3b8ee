// The published Forgetful Bloom Filter with its paper's adaptation.
#ifndef LETHE_SRC_PUBLISHED_ADAPTIVE_FBF_H_
#define LETHE_SRC_PUBLISHED_ADAPTIVE_FBF_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lethe/filter.h"
#include "src/adapt/step_log.h"
#include "src/filter/each_id.h"
#include "src/memory/reservation.h"
#include "src/published/bit_array.h"
#include "src/published/paper.h"

namespace lethe {

// The N-FBF of Subramanyam, Gupta, Leslie and Wang ("Idempotent Distributed Counters Using a Forgetful Bloom
// Filter") on separate arrays of m bits, as PublishedFbf, but N and t follow the load (PaperPolicy). m and k
// stay: they are those of PublishedFbf under the same memory limit. It begins with N = 1.
//
// It grows by not dropping: the oldest generation goes when all ids of its own interval are older than the
// horizon, and not before, whatever N is; the filters become N + 2 as intervals of length t pass. (The paper
// appends the new filters, empty, behind the oldest. That hides the ids that are in the oldest alone, and
// their copies pass.) An interval that has as many ids as the policy allows ends with the very id that is the
// last of them. So the target holds at each moment; PaperPolicy says how far.
//
// At the memory limit, where there is none for one more filter, and where the system has no memory, the
// oldest generation goes before its time, when a generation would take more than the target allows or its
// period is over. That is counted, and is a step.
//
// Invariant: generations_[0] is the future, [1] the present; the ids of an interval are in its own
// generation, which was the future then, and in the next older one, unless that is gone. There are at least
// two. Thread safety: as Filter.
class AdaptiveFbf final : public EachIdFilter<AdaptiveFbf> {
 public:
  // ResourceExhausted if the memory is not there.
  static absl::StatusOr<std::unique_ptr<AdaptiveFbf>> Create(const FilterOptions& options);

  void AdvanceTo(int64_t stream_time_ms) override;
  void Replay(absl::Span<const TimedId> ids) override { ReplayEach(ids); }

  // N and t are what the policy has chosen; the filters that are there are memory_bytes / m. The figures of
  // the false positives are as PublishedFbf's.
  FilterStatus Status() const override;

  // Future and present, in which ids are inserted meanwhile, are copied at once, and the others in place. So
  // an image holds the ids of its moment and no others.
  absl::StatusOr<FilterImage> BeginCopy() const override;
  bool CopyMemory(const FilterImage& image, absl::Span<const char> part, char* to) const override;
  int64_t ImageEpoch() const override { return refreshes_; }
  absl::StatusOr<std::vector<absl::Span<char>>> Restore(absl::string_view state, int64_t bytes) override;

 private:
  friend class EachIdFilter<AdaptiveFbf>;

  struct Interval {
    int64_t ids = 0;
    int64_t first_ms = kNoStreamTime;  // when the first of them came, and the last
    int64_t last_ms = kNoStreamTime;
    int64_t kept_ms = kNoStreamTime;  // when the last copy of one of them was replayed
    bool is_full = false;             // they ended their interval
  };
  struct Generation : Interval {
    BitArray bits;
  };

  AdaptiveFbf(const FilterOptions& options, int64_t bits_per_generation, int hashes);

  bool ContainsId(IdHash id) const;
  bool ContainsIdAt(const TimedId& timed) const;
  void InsertId(IdHash id);
  void ReplayId(IdHash id);

  template <typename Self, typename Intervals, typename Fields>
  static void Transfer(Self& self, Intervals& intervals, Fields& fields);
  bool IsSound(const std::vector<Interval>& intervals) const;
  void Begin(int64_t now_ms);
  void DescribeGenerations(FilterStatus* status) const;
  bool IsFull() const { return generations_[0].ids >= policy_.most_ids(); }
  // Whether all of its ids are older than the horizon, and then whether all of their copies are.
  bool IsOutdated(const Generation& generation, int64_t now_ms) const;
  bool IsKept(const Generation& generation, int64_t now_ms) const;
  void Adapt();
  void GoUp();
  void EndInterval();
  void MakeRoom();
  bool AddGeneration();
  bool HasPlaceForOne();
  void RecycleOldest();
  void DropOldest();
  void ForgetAll();
  double ModelledFpp() const;
  void RecordRefusal(absl::string_view reason);  // once an interval
  void Record(AdaptationStep::Kind kind, absl::string_view reason);

  const FilterOptions options_;
  const int64_t horizon_ms_;
  int64_t bits_per_generation_;
  const int hashes_;
  Reservation memory_;
  std::vector<Generation> generations_;
  PaperPolicy policy_;
  int64_t now_ms_ = kNoStreamTime;
  int64_t first_ms_ = kNoStreamTime;            // the first time that was seen
  int64_t begin_ms_ = kNoStreamTime;            // of the current interval
  int64_t last_insert_ms_ = kNoStreamTime;      // of all intervals
  int64_t forgotten_until_ms_ = kNoStreamTime;  // the last time of an id that is forgotten
  int64_t refreshes_ = 0;
  int64_t limit_hits_ = 0;
  bool refused_in_interval_ = false;
  double fpp_at_interval_end_ = 0;
  StepLog steps_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PUBLISHED_ADAPTIVE_FBF_H_
