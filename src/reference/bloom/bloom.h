// One plain Bloom filter that never forgets: what the forgetful one is compared with.
#ifndef LETHE_SRC_REFERENCE_BLOOM_BLOOM_H_
#define LETHE_SRC_REFERENCE_BLOOM_BLOOM_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/memory/reservation.h"
#include "src/published/bit_array.h"

namespace lethe {

// The third approach that the FBF paper (Subramanyam, Gupta, Leslie, Wang) starts from: a Bloom filter of
// fixed size. It breaks Filter's promise in one way: it forgets nothing, so its false-positive rate rises
// with every id, past the target and up to 1. Status() says where it is.
//
// The size is FixedShareBytes; k is what reaches the target when half of the bits are set, which is after
// some 0.7 m / k ids. Thread safety: as Filter.
class Bloom final : public EachIdFilter<Bloom> {
 public:
  // ResourceExhausted if the memory is not there.
  static absl::StatusOr<std::unique_ptr<Bloom>> Create(const FilterOptions& options);

  void AdvanceTo(int64_t stream_time_ms) override { clock_.AdvanceTo(stream_time_ms); }

  // There is no refresh: N and t are 0, and the window is all time since the start. fpp_modelled is
  // Equation 1; fpp_estimated comes from the share of bits that are set.
  FilterStatus Status() const override;

  // Forgets everything; time stays.
  void Clear();

 private:
  friend class EachIdFilter<Bloom>;
  friend class Recycled;

  Bloom(double target_fpp, Reservation memory, BitArray bits);

  bool ContainsId(IdHash id) const { return bits_.Contains(id); }
  void InsertId(IdHash id);

  const double target_fpp_;
  Reservation memory_;
  BitArray bits_;
  int64_t bits_set_ = 0;
  int64_t ids_ = 0;
  StreamClock clock_;
};

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_BLOOM_BLOOM_H_
