// Whether a lane moves on while there is something to read.
#ifndef LETHE_SRC_PIPELINE_REPORT_PROGRESS_WATCH_H_
#define LETHE_SRC_PIPELINE_REPORT_PROGRESS_WATCH_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace lethe {

// One per lane, looked at again and again. It asks for no reason: a partition that is behind and commits
// nothing stands still, whatever keeps it. Where no partition that is behind commits, all of them stand still
// once the patience is over. Where others commit, one may be waiting for its turn, and gets kTurns times the
// patience.
//
// Thread safety: none, it belongs to the lane's thread. The clock is one that nobody sets (SteadyNow).
class ProgressWatch {
 public:
  static constexpr int kTurns = 10;

  struct Sight {
    int32_t partition = 0;
    int64_t committed = 0;
    bool behind = false;  // there are records to read, or read and not committed
  };

  // `owned` are all partitions of the lane; others are forgotten.
  void Look(absl::Span<const Sight> owned, absl::Time now);

  // How long the partition has been behind without a commit; zero if it is not behind.
  absl::Duration StandsFor(int32_t partition, absl::Time now) const;
  // Partitions that stand still, in order.
  std::vector<int32_t> Stalled(absl::Duration patience, absl::Time now) const;

 private:
  struct Seen {
    int64_t committed = 0;
    bool behind = false;
    absl::Time since = absl::InfinitePast();  // of its last commit, or of being up to date
  };

  std::map<int32_t, Seen> seen_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_PROGRESS_WATCH_H_
