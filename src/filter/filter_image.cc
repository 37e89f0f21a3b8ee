// What a filter says of snapshots unless it overrides it.
#include <cstring>

#include "absl/status/status.h"
#include "lethe/filter.h"

namespace lethe {
namespace {

absl::Status NotForThisEngine() {
  return absl::UnimplementedError(
      "this engine has no snapshots; `sliced` and `compact` have, and `published` of a fixed size. Let the "
      "filter be rebuilt from its log");
}

}  // namespace

absl::StatusOr<FilterImage> Filter::Image() const { return NotForThisEngine(); }

bool Filter::CopyMemory(const FilterImage& image, absl::Span<const char> part, char* to) const {
  if (ImageEpoch() != image.epoch) return false;
  std::memcpy(to, part.data(), part.size());
  return true;
}

absl::StatusOr<std::vector<absl::Span<char>>> Filter::Restore(absl::string_view, int64_t) {
  return NotForThisEngine();
}

}  // namespace lethe
