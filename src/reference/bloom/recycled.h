// One large Bloom filter that is cleared each period.
#ifndef LETHE_SRC_REFERENCE_BLOOM_RECYCLED_H_
#define LETHE_SRC_REFERENCE_BLOOM_RECYCLED_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/reference/bloom/bloom.h"

namespace lethe {

// The recycled Bloom filter (RBF) of the FBF authors' slides, which the FBF is measured against in equal
// space. It breaks Filter's promise: on each multiple of the horizon in stream time it forgets all, so a
// copy that comes after that passes, however young the id. In return it needs the bits of one horizon's
// ids only, and those once. Its false-positive rate rises through each period; Status() says where it is.
//
// Size and k are those of Bloom. Thread safety: as Filter.
class Recycled final : public EachIdFilter<Recycled> {
 public:
  // ResourceExhausted if the memory is not there.
  static absl::StatusOr<std::unique_ptr<Recycled>> Create(const FilterOptions& options);

  void AdvanceTo(int64_t stream_time_ms) override;

  // The window is the time since the last clearing: under the horizon but for one moment in each period.
  FilterStatus Status() const override;

 private:
  friend class EachIdFilter<Recycled>;

  Recycled(std::unique_ptr<Bloom> bloom, int64_t period_ms) : bloom_(std::move(bloom)), clock_(period_ms) {}

  bool ContainsId(IdHash id) const { return bloom_->ContainsId(id); }
  bool ContainsIdAt(const TimedId& timed) const {
    return clock_.IntervalsUntil(timed.stream_time_ms) == 0 && ContainsId(timed.id);
  }
  void InsertId(IdHash id) { bloom_->InsertId(id); }

  const std::unique_ptr<Bloom> bloom_;
  StreamClock clock_;
  int64_t refreshes_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_BLOOM_RECYCLED_H_
