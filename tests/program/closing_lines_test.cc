#include "src/cli/service/closing_lines.h"

#include <gtest/gtest.h>

namespace lethe {
namespace {

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
  EXPECT_EQ(Farewell(report, {}).find("all committed"), std::string::npos);
  report.lanes.emplace_back();
  EXPECT_NE(Farewell(report, {}).find("all committed"), std::string::npos);
  EXPECT_EQ(Farewell(report, {.unfinished = true}).find("all committed"), std::string::npos);
}

TEST(ClosingLines, AStaticMemberLeavesNoGroup) {
  DaemonReport report;
  report.lanes.emplace_back();
  for (const bool unfinished : {false, true}) {
    EXPECT_EQ(Farewell(report, {.unfinished = unfinished, .stays = true}).find("left the group"),
              std::string::npos);
  }
}

TEST(ClosingLines, AGroupThatDoesNotAnswerIsNotLeft) {
  DaemonReport report;
  report.lanes.emplace_back();
  EXPECT_EQ(Farewell(report, {}), "all committed, left the group");
  for (const bool unfinished : {false, true}) {
    const std::string farewell = Farewell(report, {unfinished, /*unanswered=*/true});
    EXPECT_EQ(farewell.find("all committed") == std::string::npos, unfinished);
    EXPECT_EQ(farewell.find("left the group"), std::string::npos);
    EXPECT_NE(farewell.find("session.timeout.ms"), std::string::npos);
  }
}

}  // namespace
}  // namespace lethe
