#include "src/pipeline/report/lane_figures.h"

#include <algorithm>

namespace lethe {
namespace {

// A lane polls at most 512 records at once.
constexpr double kBatchRecords[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
// Around the default interval of 100 ms, and up to what the broker allows: 30 s.
constexpr double kTransactionSeconds[] = {.005, .01, .025, .05, .1, .15, .25, .5, 1, 2.5, 5, 10, 30};
constexpr double kCommitSeconds[] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30};
// Up to a lag of a week.
constexpr double kLatencySeconds[] = {.005, .01, .025, .05, .1,  .25,  .5,    1,     2.5,   5,
                                      10,   30,  60,   300, 900, 3600, 21600, 86400, 604800};

}  // namespace

LaneFigures::LaneFigures()
    : histograms_{.batch_records = Histogram(kBatchRecords),
                  .transaction_seconds = Histogram(kTransactionSeconds),
                  .commit_seconds = Histogram(kCommitSeconds),
                  .latency_seconds = Histogram(kLatencySeconds)} {}

void LaneFigures::BatchRead(size_t records) {
  if (records > 0) histograms_.batch_records.Add(static_cast<double>(records));
}

void LaneFigures::RunJudged(int64_t oldest_ms, size_t records) {
  if (oldest_ms >= 0) runs_.push_back({oldest_ms, static_cast<int64_t>(records)});
}

void LaneFigures::Committed(absl::Time now) {
  if (begun_ <= now) histograms_.transaction_seconds.Add(absl::ToDoubleSeconds(now - begun_));
  if (commit_began_ <= now) histograms_.commit_seconds.Add(absl::ToDoubleSeconds(now - commit_began_));
  for (const JudgedRun& run : runs_) {
    const double age = absl::ToDoubleSeconds(now - absl::FromUnixMillis(run.oldest_ms));
    // The sender's clock may be ahead.
    histograms_.latency_seconds.Add(std::max(age, 0.0), run.records);
  }
  RolledBack();
}

void LaneFigures::RolledBack() {
  begun_ = commit_began_ = absl::InfiniteFuture();
  runs_.clear();
}

}  // namespace lethe
