// How a lane works: its batches, its transactions, and how old records are when they are committed.
#ifndef LETHE_SRC_PIPELINE_REPORT_LANE_FIGURES_H_
#define LETHE_SRC_PIPELINE_REPORT_LANE_FIGURES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "src/pipeline/report/report.h"

namespace lethe {

// What is counted per batch and per commit; nothing here is paid for each record. Belongs to one lane.
class LaneFigures {
 public:
  LaneFigures();

  // A batch was polled.
  void BatchRead(size_t records);
  void TransactionBegun(absl::Time now) { begun_ = now; }
  // `records` of one partition that were polled together were judged, the oldest being of `oldest_ms`; a
  // negative one: they have no timestamps. All of them count as the oldest, so no age comes out too low.
  void RunJudged(int64_t oldest_ms, size_t records);
  void CommitBegins(absl::Time now) { commit_began_ = now; }
  // What was judged since the transaction began is out; or it will be judged again.
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
