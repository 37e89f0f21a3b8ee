#include "src/filter/engine_filter.h"

#include <cstring>

#include "absl/status/status.h"

namespace lethe {

absl::Status NoSnapshotsOfThisEngine() {
  return absl::UnimplementedError(
      "this engine has no snapshots; the engines of the library have. Rebuild the filter from its log");
}

FilterStatus EngineFilter::Status() const {
  FilterStatus status = Figures();
  const std::unique_ptr<Sample> sample = BeginSample(kSampledLines);
  while (!sample->Look()) {
  }
  sample->Describe(&status);
  return status;
}

absl::StatusOr<FilterImage> EngineFilter::BeginCopy() const { return NoSnapshotsOfThisEngine(); }

bool EngineFilter::CopyMemory(const FilterImage& image, absl::Span<const char> part, char* to) const {
  if (ImageEpoch() != image.epoch) return false;
  std::memcpy(to, part.data(), part.size());
  return true;
}

absl::StatusOr<std::vector<absl::Span<char>>> EngineFilter::Restore(absl::string_view, int64_t) {
  return NoSnapshotsOfThisEngine();
}

}  // namespace lethe
