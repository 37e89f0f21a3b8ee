// Whether the lane moves on, whatever keeps it.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/lane.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

// A transaction stays open for one interval, and its commit may take some.
constexpr int kIntervals = 3;

std::string InSeconds(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

}  // namespace

absl::Duration Lane::StallPatience() const {
  return options_.stall_patience + kIntervals * absl::FromChrono(commit_interval_.load());
}

std::string Lane::WhyItStands() {
  const absl::Time now = SteadyNow();
  const absl::Duration patience = StallPatience();
  std::vector<ProgressWatch::Sight> sights;
  for (const auto& [id, owned] : owned_) {
    if (owned->phase != Phase::kActive) continue;  // it says by itself what it waits for
    const int64_t end = std::max(ends_.Of(id), owned->log_end);
    const bool behind = owned->next > owned->committed || std::max(owned->next, owned->end_of_log) < end;
    sights.push_back({id, owned->committed, behind});
  }
  progress_.Look(sights, now);
  const std::vector<int32_t> stalled = progress_.Stalled(patience, now);
  std::string why;
  if (!stalled.empty()) {
    const OwnedPartition& first = *Find(stalled.front());
    const size_t more = stalled.size() - 1;
    why = absl::StrCat("no progress for ", InSeconds(progress_.StandsFor(first.id, now)), ": ", Name(first),
                       " stands at offset ", first.committed, " although there are records to process",
                       more == 0 ? "" : absl::StrCat(" (and ", more, " more partitions)"));
  }
  if (stalled.empty() != stalled_.empty()) {
    if (stalled.empty() && !sights.empty()) {
      spdlog::info("lane {}: progress again", number_);
    } else if (!stalled.empty()) {
      spdlog::warn("lane {}: {}", number_, why);
    }
  }
  stalled_ = why;
  return why;
}

}  // namespace lethe::kafka
