#include "src/reference/bloom/recycled.h"

namespace lethe {

absl::StatusOr<std::unique_ptr<Recycled>> Recycled::Create(const FilterOptions& options) {
  absl::StatusOr<std::unique_ptr<Bloom>> bloom = Bloom::Create(options);
  if (!bloom.ok()) return bloom.status();
  return std::unique_ptr<Recycled>(new Recycled(*std::move(bloom), WholeMilliseconds(options.horizon)));
}

void Recycled::AdvanceTo(int64_t stream_time_ms) {
  if (clock_.AdvanceTo(stream_time_ms) == 0) return;
  bloom_->Clear();
  ++refreshes_;
}

FilterStatus Recycled::Status() const {
  FilterStatus status = bloom_->Status();
  status.shape.refresh_period = absl::Milliseconds(clock_.interval_ms());
  status.window = clock_.Since(0);
  status.refreshes = refreshes_;
  return status;
}

}  // namespace lethe
