#include "src/pipeline/report/lane_figures.h"

#include <gtest/gtest.h>

namespace lethe::kafka {
namespace {

int64_t Total(const Histogram& histogram) {
  int64_t total = 0;
  for (const int64_t count : histogram.counts()) total += count;
  return total;
}

// How many are above `low` and not above `high`, which are bounds next to each other.
int64_t Between(const Histogram& histogram, double low, double high) {
  for (size_t i = 1; i < histogram.bounds().size(); ++i) {
    if (histogram.bounds()[i - 1] == low && histogram.bounds()[i] == high) return histogram.counts()[i];
  }
  ADD_FAILURE() << "no bucket from " << low << " to " << high;
  return 0;
}

TEST(Histogram, ABoundIsInTheBucketBelow) {
  constexpr double kBounds[] = {1, 2};
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 1.5, 2.0, 2.5}) histogram.Add(value);
  EXPECT_EQ(histogram.counts()[0], 2);
  EXPECT_EQ(histogram.counts()[1], 2);
  EXPECT_EQ(histogram.counts()[2], 1);
  EXPECT_EQ(histogram.sum(), 7.5);
}

TEST(LaneFigures, CountWhatIsCommitted) {
  const absl::Time start = absl::FromUnixMillis(1'700'000'000'000);
  LaneFigures figures;
  figures.BatchRead(0);
  figures.BatchRead(3);
  figures.TransactionBegun(start);
  figures.RunJudged(absl::ToUnixMillis(start - absl::Milliseconds(200)), 2);
  figures.RunJudged(absl::ToUnixMillis(start + absl::Hours(1)), 1);  // a clock that is ahead
  figures.RunJudged(-1, 1);                                          // no timestamp
  figures.CommitBegins(start + absl::Milliseconds(100));
  figures.Committed(start + absl::Milliseconds(120));
  const LaneHistograms& histograms = figures.histograms();
  EXPECT_EQ(Between(histograms.batch_records, 2, 4), 1);
  EXPECT_EQ(Between(histograms.transaction_seconds, .1, .15), 1);
  EXPECT_EQ(Between(histograms.commit_seconds, .01, .025), 1);
  EXPECT_EQ(Between(histograms.latency_seconds, .25, .5), 2);
  EXPECT_EQ(histograms.latency_seconds.counts()[0], 1);
  EXPECT_EQ(Total(histograms.batch_records), 1);
  EXPECT_EQ(Total(histograms.latency_seconds), 3);
}

TEST(LaneFigures, ForgetWhatIsRolledBack) {
  LaneFigures figures;
  figures.TransactionBegun(absl::UnixEpoch());
  figures.RunJudged(0, 5);
  figures.RolledBack();
  figures.Committed(absl::UnixEpoch() + absl::Seconds(1));
  EXPECT_EQ(Total(figures.histograms().latency_seconds), 0);
  EXPECT_EQ(Total(figures.histograms().transaction_seconds), 0);
}

}  // namespace
}  // namespace lethe::kafka
