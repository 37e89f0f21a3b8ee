#include "src/pipeline/report/progress_watch.h"

#include <algorithm>
#include <utility>

namespace lethe {

void ProgressWatch::Look(absl::Span<const Sight> owned, absl::Time now) {
  std::map<int32_t, Seen> seen;
  for (const Sight& sight : owned) {
    Seen next{sight.committed, sight.behind, now};
    const auto before = seen_.find(sight.partition);
    const bool stands = before != seen_.end() && before->second.behind && sight.behind &&
                        before->second.committed == sight.committed;
    if (stands) next.since = before->second.since;
    seen.emplace(sight.partition, next);
  }
  seen_ = std::move(seen);
}

absl::Duration ProgressWatch::StandsFor(int32_t partition, absl::Time now) const {
  const auto seen = seen_.find(partition);
  return seen == seen_.end() || !seen->second.behind ? absl::ZeroDuration() : now - seen->second.since;
}

std::vector<int32_t> ProgressWatch::Stalled(absl::Duration patience, absl::Time now) const {
  absl::Time last_step = absl::InfinitePast();
  for (const auto& [partition, seen] : seen_) {
    if (seen.behind) last_step = std::max(last_step, seen.since);
  }
  const absl::Duration allowed = now - last_step > patience ? patience : kTurns * patience;
  std::vector<int32_t> stalled;
  for (const auto& [partition, seen] : seen_) {
    if (seen.behind && now - seen.since > allowed) stalled.push_back(partition);
  }
  return stalled;
}

}  // namespace lethe
