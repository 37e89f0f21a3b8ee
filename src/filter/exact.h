// An exact set of ids with expiry: the honest baseline.
#ifndef LETHE_SRC_FILTER_EXACT_H_
#define LETHE_SRC_FILTER_EXACT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/filter/each_id.h"
#include "src/filter/epoch_ring.h"
#include "src/filter/id_tables.h"

namespace lethe {

// A hash table of the ids of the horizon: what an FBF saves memory against. Exact to 64 bits of the hash,
// so one new id in 2^64 / ids is called contained: with 10^8 ids one in 180 billion. 12 to 18 bytes an id
// while the load rises or stays, up to 36 after it fell.
//
// Keeps Filter's promise; ids are forgotten a 61st of the horizon late at most. What is forgotten is not
// found any more, and is taken out of the tables one table at a time, in the next slices of time: no call
// waits for a pass through all, but for a 64th of them at most, where time makes large steps. At the memory
// limit the oldest slices of time are forgotten before the horizon (limit_hits counts them). Thread safety:
// as Filter.
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

  bool ContainsId(IdHash id) const { return IsLive(tables_.Find(id.a)); }
  void InsertId(IdHash id);
  bool TestAndInsertId(IdHash id);
  void PrefetchId(IdHash id) const { tables_.Prefetch(id.a); }

  // A stamp is what the tables keep with an id: an epoch's tag, and in two bits more how often, modulo four,
  // the tag has been given. So it means no other epoch until the tag was given to three more, which is three
  // horizons; by then it has long been swept.
  uint8_t StampOf(int tag) const;
  static int TagOf(uint8_t stamp) { return stamp & (kTags - 1); }
  bool IsLive(const uint8_t* found) const { return found != nullptr && live_[*found]; }

  void Add(uint64_t key);
  void Renew(uint8_t* found);
  void BeginEpoch();
  void DropOldest();
  void NoteLive();
  void NoteNextSweep();

  static constexpr int kTags = 64;

  const double target_fpp_;
  EpochRing epochs_;
  std::array<uint8_t, kTags> given_{};  // how often each tag was, modulo four
  IdTable::TagSet live_;                // stamps of live epochs
  IdTables tables_;                     // all ids of live epochs, and some of others
  size_t swept_ = 0;                    // tables, in this epoch
  int64_t sweep_from_ms_ = kNoStreamTime;
  int64_t next_sweep_ms_ = INT64_MAX;
  int64_t short_epoch_ids_ = INT64_MAX;  // an epoch of so many ids ends; only at the memory limit
  int64_t limit_hits_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_EXACT_H_
