// Which of a kept filter, a snapshot and the log a restart reads, and when a history is short.
#include "src/pipeline/restore/restore_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace lethe::kafka {
namespace {

constexpr absl::Duration kHorizon = absl::Hours(1);
const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'000);

absl::Time Ago(double hours) { return kNow - hours * absl::Hours(1); }

// A partition of which the group has judged up to offset 1000, two hours ago, and R is 400.
RestoreFacts Facts() {
  RestoreFacts facts;
  facts.metadata.origin.offset = 5;
  facts.metadata.restart.offset = 400;
  facts.metadata.restart.stream_time = Ago(3.5);
  facts.metadata.committed_time = Ago(2);
  facts.metadata.last.time = Ago(2);
  facts.metadata.horizon = kHorizon;
  facts.committed = 1000;
  facts.horizon = kHorizon;
  return facts;
}

TEST(RestorePlanTest, Rule24TheSourceThatReadsTheFewestOffsetsIsChosen) {
  constexpr int64_t kNone = -1;
  const struct {
    int64_t kept, snapshot, log_start;
    RestoreSource source;
    int64_t from;
  } cases[] = {
      {kNone, kNone, 0, RestoreSource::kLog, 400},
      {900, kNone, 0, RestoreSource::kKept, 900},
      {1000, 1000, 0, RestoreSource::kKept, 1000},
      {1001, kNone, 0, RestoreSource::kLog, 400},  // it is ahead of the group
      {399, kNone, 0, RestoreSource::kLog, 400},   // the partition was elsewhere for long
      {400, kNone, 0, RestoreSource::kKept, 400},
      {kNone, 700, 0, RestoreSource::kSnapshot, 700},
      {kNone, 1001, 0, RestoreSource::kLog, 400},
      {kNone, 300, 0, RestoreSource::kLog, 400},
      {600, 700, 0, RestoreSource::kSnapshot, 700},
      {800, 700, 0, RestoreSource::kKept, 800},
      {300, 200, 0, RestoreSource::kLog, 400},
      {kNone, 700, 699, RestoreSource::kSnapshot, 700},
      {kNone, 700, 700, RestoreSource::kLog, 700},  // the record before it is gone: the log cannot be known
      {kNone, kNone, 600, RestoreSource::kLog, 600},
      {kNone, kNone, 1000, RestoreSource::kLog, 1000},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(testing::Message() << "kept " << each.kept << ", snapshot " << each.snapshot << ", log from "
                                    << each.log_start);
    RestoreFacts facts = Facts();
    if (each.kept >= 0) facts.kept = each.kept;
    if (each.snapshot >= 0) facts.snapshot = each.snapshot;
    facts.log_start = each.log_start;
    const RestorePlan plan = PlanRestore(facts);
    EXPECT_EQ(plan.source, each.source);
    EXPECT_EQ(plan.from, each.from);
    EXPECT_EQ(plan.log_from.offset, std::max<int64_t>(400, each.log_start));
  }
}

TEST(RestorePlanTest, Rule13HistoryIsShortByTheTimeThatIsMissing) {
  const absl::Time unknown = absl::InfinitePast();
  const absl::Time none = absl::InfiniteFuture();
  const struct {
    const char* what;
    int64_t log_start;
    absl::Time last, first, next;  // the last record before C, the first that is there, the next to judge
    bool is_short;
  } cases[] = {
      {"all is there", 0, Ago(2), Ago(9), none, false},
      {"from R on", 400, Ago(2), Ago(3.4), none, false},
      {"a record every two hours, kept for a week", 916, Ago(1), Ago(168), none, false},
      {"with a lag of two hours", 916, Ago(3), Ago(168), Ago(1), false},
      {"the log begins within the horizon", 900, Ago(0), Ago(0.5), none, true},
      {"just on its edge", 900, Ago(0), Ago(1), none, true},
      {"just before it", 900, Ago(0), Ago(1.01), none, false},
      {"the lag counts", 900, Ago(2.1), Ago(2.5), Ago(2), true},
      {"an idle partition whose log has expired", 1000, Ago(170), none, none, false},
      {"and now there is something to judge", 1000, Ago(170), Ago(0), Ago(0), false},
      {"that is dated ahead", 1000, Ago(170), Ago(-100), Ago(-100), false},
      {"a log that was cut at C", 1000, Ago(0.2), none, none, true},
      {"a log that was cut at C, with something behind it", 1000, Ago(0.2), Ago(0.1), Ago(0.1), true},
      {"cut at C, by a commit that does not know the last record", 1000, unknown, none, none, false},
      {"no record has a time", 900, unknown, unknown, unknown, false},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.what);
    RestoreFacts facts = Facts();
    facts.log_start = each.log_start;
    facts.metadata.last.time = each.last;
    EXPECT_EQ(NeedsLogTimes(facts), each.log_start > 400);
    facts.times = LogTimesOf(each.first, each.next, kNow);
    const RestorePlan plan = PlanRestore(facts);
    EXPECT_EQ(!plan.missing.empty(), each.is_short) << plan.missing;
    EXPECT_EQ(plan.remedy.empty(), plan.missing.empty());
    EXPECT_EQ(plan.covered_since, each.is_short ? Ago(2) : absl::InfinitePast());
    facts.horizon = absl::ZeroDuration();
    EXPECT_EQ(PlanRestore(facts).missing, "") << "nothing is to be known";
  }
  RestoreFacts untold = Facts();
  untold.log_start = 900;
  EXPECT_NE(PlanRestore(untold).missing, "") << "what is not known is not taken for enough";
  untold.times = LogTimes{absl::InfinitePast(), kNow};
  untold.metadata.committed_time = untold.metadata.last.time = absl::InfinitePast();
  EXPECT_NE(PlanRestore(untold).missing, "");
}

TEST(RestorePlanTest, Rule13ARaisedHorizonIsShortUnlessRLiesBeforeIt) {
  RestoreFacts facts = Facts();
  facts.horizon = absl::Hours(2);
  const RestorePlan raised = PlanRestore(facts);
  EXPECT_NE(raised.missing, "");
  EXPECT_EQ(raised.covered_since, Ago(3.5));
  // In a sparse topic R is far before what is needed.
  facts.metadata.restart.stream_time = Ago(400);
  EXPECT_EQ(PlanRestore(facts).missing, "");
  facts.metadata.restart.stream_time = Ago(3.5);
  facts.metadata.restart.offset = facts.metadata.origin.offset;  // there is nothing before it
  EXPECT_EQ(PlanRestore(facts).missing, "");
}

// What an earlier restart did not know is not known after this one.
TEST(RestorePlanTest, Rule13AShortHistoryStaysShortUntilTheHorizonHasPassed) {
  RestoreFacts facts = Facts();
  facts.metadata.covered_since = Ago(2.5);
  EXPECT_NE(PlanRestore(facts).missing, "");
  facts.metadata.covered_since = Ago(3.2);
  EXPECT_EQ(PlanRestore(facts).missing, "");
}

}  // namespace
}  // namespace lethe::kafka
