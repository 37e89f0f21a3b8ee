// What is played before a change is taken is to have all that matters in it, and seeds that people write down
// are to last.
#include "tests/faults/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace lethe::test {
namespace {

// Those of `make test-long`.
constexpr uint64_t kFirst = 12;
constexpr uint64_t kCount = 12;

TEST(ScheduleTest, ADozenHasEachThemeAndEveryDamageToSnapshots) {
  std::set<std::string> themes;
  std::set<FaultKind> kinds;
  std::set<SnapshotPlace> places;
  int with_a_backlog = 0;
  int with_static_members = 0, with_a_second_life = 0, with_bulk_retries = 0, with_rejected_records = 0;
  for (uint64_t seed = kFirst; seed < kFirst + kCount; ++seed) {
    const Schedule schedule = MakeSchedule(seed);
    with_a_backlog += schedule.backlog_horizons > 0 ? 1 : 0;
    with_static_members += schedule.static_members ? 1 : 0;
    with_a_second_life += schedule.deletes_input ? 1 : 0;
    with_bulk_retries += schedule.most_copies > 3 ? 1 : 0;
    with_rejected_records += schedule.oversized_per_mille > 0 ? 1 : 0;
    themes.insert(schedule.theme);
    places.insert(schedule.snapshots);
    for (const Fault& fault : schedule.faults) kinds.insert(fault.kind);
  }
  EXPECT_EQ(themes.size(), static_cast<size_t>(ThemeCount()));
  EXPECT_EQ(places.size(), 4u);
  EXPECT_GE(with_a_backlog, 1);
  EXPECT_GE(with_static_members, 2);
  EXPECT_GE(with_a_second_life, 2);
  EXPECT_GE(with_bulk_retries, 2);
  EXPECT_GE(with_rejected_records, 2);
  EXPECT_TRUE(kinds.contains(FaultKind::kBadClock));
  EXPECT_TRUE(kinds.contains(FaultKind::kSlow));
  EXPECT_EQ(std::count_if(kinds.begin(), kinds.end(), OfSnapshots), 5);
}

TEST(ScheduleTest, TheSameSeedGivesTheSameSchedule) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    EXPECT_EQ(MakeSchedule(seed).Outline(), MakeSchedule(seed).Outline());
  }
}

TEST(ScheduleTest, SnapshotsMeetFaultsOnlyWhereTheyAreTaken) {
  int with = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Schedule schedule = MakeSchedule(seed);
    const bool saves = schedule.snapshots != SnapshotPlace::kNowhere;
    const bool met = std::any_of(schedule.faults.begin(), schedule.faults.end(),
                                 [](const Fault& fault) { return OfSnapshots(fault.kind); });
    EXPECT_EQ(saves, met) << seed;
    if (!saves) continue;
    ++with;
    EXPECT_FALSE(schedule.countable()) << seed;
  }
  EXPECT_GT(with, 250);
}

}  // namespace
}  // namespace lethe::test
