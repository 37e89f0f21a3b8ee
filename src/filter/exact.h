// An exact set of ids with expiry: the honest baseline.
#ifndef LETHE_SRC_FILTER_EXACT_H_
#define LETHE_SRC_FILTER_EXACT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/filter/each_id.h"
#include "src/filter/epoch_ring.h"
#include "src/filter/id_table.h"

namespace lethe {

// A hash table of the ids of the horizon: what an FBF saves memory against. Exact to 64 bits of the hash,
// so one new id in 2^64 / ids is called contained. 12 to 18 bytes an id while the load rises or stays, up to
// 36 after it fell; 30 for the moment in which it grows, which it does all at once.
//
// Keeps Filter's promise; ids are forgotten a 61st of the horizon late at most. At the memory limit the
// oldest slices of time are forgotten before the horizon (limit_hits counts them). Thread safety: as
// Filter.
class Exact final : public EachIdFilter<Exact> {
 public:
  // ResourceExhausted if the memory for the first ids is not there.
  static absl::StatusOr<std::unique_ptr<Exact>> Create(const FilterOptions& options);

  void AdvanceTo(int64_t stream_time_ms) override;

  // N is the slices in the horizon, t a slice's length; m and k are 0.
  FilterStatus Status() const override;

 private:
  friend class EachIdFilter<Exact>;

  explicit Exact(const FilterOptions& options);

  bool ContainsId(IdHash id) const { return table_.Find(id.a) != nullptr; }
  void InsertId(IdHash id);
  bool TestAndInsertId(IdHash id);
  void PrefetchId(IdHash id) const { table_.Prefetch(id.a); }

  void Add(uint64_t key);
  void BeginEpoch();
  uint8_t tag() const { return static_cast<uint8_t>(epochs_.current()); }

  const double target_fpp_;
  EpochRing epochs_;
  IdTable table_;                        // holds live ids only
  int64_t short_epoch_ids_ = INT64_MAX;  // an epoch of so many ids ends; only at the memory limit
  int64_t limit_hits_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_EXACT_H_
