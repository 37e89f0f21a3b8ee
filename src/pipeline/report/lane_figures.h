// The figures of a lane: its batches, its transactions, and the latency of records.
#ifndef LETHE_SRC_PIPELINE_REPORT_LANE_FIGURES_H_
#define LETHE_SRC_PIPELINE_REPORT_LANE_FIGURES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "src/pipeline/report/report.h"

namespace lethe {

// Works once per batch and per commit, not per record. Belongs to one lane.
class LaneFigures {
 public:
  LaneFigures();

  void BatchRead(size_t records);
  void TransactionBegun(absl::Time now) { begun_ = now; }
  // `records` of one partition were judged; the oldest is of `oldest_ms` (negative: no timestamp). All count
  // as the oldest, so no latency is too low.
  void RunJudged(int64_t oldest_ms, size_t records);
  void CommitBegins(absl::Time now) { commit_began_ = now; }
  void Committed(absl::Time now);
  void RolledBack();

  const LaneHistograms& histograms() const { return histograms_; }

 private:
  struct JudgedRun {
    int64_t oldest_ms;
    int64_t records;
  };

  LaneHistograms histograms_;
  absl::Time begun_ = absl::InfiniteFuture();
  absl::Time commit_began_ = absl::InfiniteFuture();
  std::vector<JudgedRun> runs_;  // of the open transaction
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_LANE_FIGURES_H_
