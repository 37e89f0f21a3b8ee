#include "src/pipeline/task/unreadable_batch.h"

#include <gtest/gtest.h>

namespace lethe::kafka {
namespace {

// Searches the end of the batch [base, end) in a log in which [end, next_end) is not readable either.
int ProbesUntilFound(int64_t base, int64_t needed, int64_t end, int64_t next_end, int64_t log_end) {
  UnreadableBatch batch(base, needed);
  int probes = 0;
  while (!batch.end()) {
    const int64_t probe = batch.Probe(log_end);
    EXPECT_GT(probe, needed);
    EXPECT_LE(probe, log_end);
    if (++probes > 100) break;
    if (probe < end) {
      batch.Unreadable(base);
    } else if (probe < next_end) {
      batch.Unreadable(end);
    } else {
      batch.Readable();
    }
  }
  EXPECT_EQ(batch.end(), end);
  return probes;
}

TEST(UnreadableBatchTest, TheEndIsFoundInFewProbes) {
  EXPECT_EQ(ProbesUntilFound(17, 17, 18, 18, 18), 1);
  for (const int64_t size : {1, 2, 3, 7, 64, 1000, 12345}) {
    for (const int64_t behind : {0, 1, 5, 100000}) {
      const int64_t end = 100 + size;
      EXPECT_LE(ProbesUntilFound(100, 100, end, end, end + behind), 30) << size << " " << behind;
    }
  }
}

TEST(UnreadableBatchTest, ASearchMayBeginWithinABatch) {
  EXPECT_LE(ProbesUntilFound(100, 150, 200, 200, 1000), 15);
  EXPECT_EQ(ProbesUntilFound(100, 199, 200, 200, 1000), 1);
}

TEST(UnreadableBatchTest, OfTwoUnreadableBatchesTheFirstEndsWhereTheSecondBegins) {
  EXPECT_LE(ProbesUntilFound(100, 100, 110, 500, 1000), 15);
  EXPECT_LE(ProbesUntilFound(100, 100, 101, 102, 102), 5);
}

// Records may have come behind what was the end of the log.
TEST(UnreadableBatchTest, TheEndOfTheLogMayMove) {
  UnreadableBatch batch(10, 10);
  EXPECT_EQ(batch.Probe(11), 11);
  batch.Unreadable(10);
  EXPECT_EQ(batch.Probe(11), 12);  // beyond what was said to be the end, since the batch goes on there
  batch.Readable();
  EXPECT_EQ(batch.end(), 12);
}

}  // namespace
}  // namespace lethe::kafka
