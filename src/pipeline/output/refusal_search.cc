#include "src/pipeline/output/refusal_search.h"

#include <algorithm>

namespace lethe {
namespace {

// A batch header has 61 bytes, and another record would take at least 20.
constexpr int64_t kLeastRest = 80;

}  // namespace

bool RefusalSearch::NeedsRules(absl::Span<const RefusedRecord> refused, absl::Time steady_now) const {
  return std::any_of(refused.begin(), refused.end(), [&](const RefusedRecord& record) {
    return !(record.is_invalid ? trusted(steady_now) : sizes_trusted(steady_now));
  });
}

std::vector<size_t> RefusalSearch::ToBlame(absl::Span<const RefusedRecord> refused, int64_t batch_bytes,
                                           bool named, absl::Time now, absl::Time steady_now) {
  std::vector<size_t> to_blame;
  for (size_t i = 0; i < refused.size(); ++i) {
    const RefusedRecord& record = refused[i];
    const bool forbidden = record.is_invalid && !record.diverted &&
                           !rules_.WhyRefused(record.timestamp_ms, record.has_key, now).empty();
    if (forbidden) trusted_until_ = steady_now + kTrust;
    const bool was_alone = refused.size() == 1 || record.bytes + kLeastRest > batch_bytes;
    if (forbidden || was_alone || (named && record.is_invalid)) {
      to_blame.push_back(i);
      if (!record.is_invalid && !record.diverted) sizes_trusted_until_ = steady_now + kTrust;
    }
  }
  return to_blame;
}

}  // namespace lethe
