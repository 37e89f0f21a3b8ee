#include "src/cli/service/closing_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lethe {
namespace {

using testing::HasSubstr;
using testing::Not;

LaneReport Lane(const RecordCounts& totals, int64_t commits, int64_t aborts) {
  LaneReport lane;
  lane.totals = totals;
  lane.transactions.committed = commits;
  lane.transactions.aborted = aborts;
  return lane;
}

TEST(ClosingLines, TotalsAreThoseOfAllLanes) {
  DaemonReport report;
  EXPECT_EQ(Totals(report), "");
  report.lanes = {Lane({.unique = 900, .duplicate = 100}, 12, 0)};
  EXPECT_EQ(Totals(report),
            "1,000 records: 900 unique, 100 duplicates; 12 transactions committed, none aborted");
  report.lanes.push_back(Lane({.unique = 1, .missing_id = 3, .malformed = 4, .undeliverable = 5}, 1, 2));
  EXPECT_EQ(Totals(report),
            "1,013 records: 901 unique, 100 duplicates, 3 without an id, 4 malformed, 5 "
            "undeliverable; 13 transactions committed, 2 aborted");
}

TEST(ClosingLines, WhoNeverBeganHasCommittedNothing) {
  DaemonReport report;
  EXPECT_THAT(Farewell(report, {}), Not(HasSubstr("all committed")));
  report.lanes.emplace_back();
  EXPECT_THAT(Farewell(report, {}), HasSubstr("all committed"));
  EXPECT_THAT(Farewell(report, {.unfinished = true}), Not(HasSubstr("all committed")));
}

TEST(ClosingLines, AStaticMemberLeavesNoGroup) {
  DaemonReport report;
  report.lanes.emplace_back();
  for (const bool unfinished : {false, true}) {
    EXPECT_THAT(Farewell(report, {.unfinished = unfinished, .stays = true}),
                Not(HasSubstr("left the group")));
  }
}

TEST(ClosingLines, AGroupThatDoesNotAnswerIsNotLeft) {
  DaemonReport report;
  report.lanes.emplace_back();
  EXPECT_EQ(Farewell(report, {}), "all committed, left the group");
  for (const bool unfinished : {false, true}) {
    const std::string farewell = Farewell(report, {unfinished, /*unanswered=*/true});
    EXPECT_EQ(farewell.find("all committed") == std::string::npos, unfinished);
    EXPECT_THAT(farewell, Not(HasSubstr("left the group")));
    EXPECT_THAT(farewell, HasSubstr("session.timeout.ms"));
  }
}

}  // namespace
}  // namespace lethe
