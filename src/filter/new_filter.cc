#include "src/filter/new_filter.h"

#include "absl/strings/str_cat.h"
#include "lethe/filter.h"
#include "src/filter/fixed_share.h"
#include "src/filter/published_fbf.h"

namespace lethe {

int64_t SmallestFilterBytes(Engine engine) {
  switch (engine) {
    case Engine::kPublished:
      return kSmallestShareBytes;
    case Engine::kSliced:
      break;
  }
  return int64_t{64} << 10;
}

absl::StatusOr<std::unique_ptr<Filter>> NewFilter(const FilterOptions& options) {
  if (absl::Status status = ValidateHorizon(options.horizon); !status.ok()) return status;
  if (absl::Status status = ValidateTargetFpp(options.target_fpp); !status.ok()) return status;
  if (options.memory == nullptr) return absl::InvalidArgumentError("memory: no budget is given");
  switch (options.engine) {
    case Engine::kPublished:
      return PublishedFbf::Create(PublishedShape(options));
    case Engine::kSliced:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("engine: no engine has the number ", static_cast<int>(options.engine)));
}

}  // namespace lethe
