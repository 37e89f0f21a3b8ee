// Who may write into the input, and sees which of his records pass, learns nothing of the hash of a partition
// by that, and can choose no ids that take others away.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lethe/stage.h"
#include "tests/support/chosen_pairs.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

int64_t Passed(Partition& partition, const std::vector<std::string>& ids) {
  std::vector<Event> events;
  for (const std::string& id : ids) events.push_back({.id = partition.Hash(id), .time = kStart});
  std::vector<Verdict> verdicts(events.size());
  EXPECT_OK(partition.Judge(events, absl::MakeSpan(verdicts)));
  return std::count(verdicts.begin(), verdicts.end(), Verdict::kUnique);
}

// A pair of which the second is dropped would tell bits of the key. At 1e-15 none is by chance.
TEST(ForgedIdsTest, ProbesOfBothKindsAllPass) {
  for (int run = 0; run < 5; ++run) {
    const auto stage = *DedupStage::Create({.target_fpp = 1e-15});
    const auto partition = *stage->Open("p");
    LongPairs long_pairs(1000, TestSeed());
    ShortPairs short_pairs(TestSeed());
    std::vector<std::string> ids(40'000);
    for (size_t i = 0; i < ids.size(); i += 2) {
      i % 4 == 0 ? long_pairs.Next(&ids[i], &ids[i + 1]) : short_pairs.Next(&ids[i], &ids[i + 1]);
      for (size_t at = i; at < i + 2; ++at) {
        if (ids[at].size() < 100) absl::StrAppend(&ids[at], "#", at / 2);
      }
    }
    EXPECT_EQ(Passed(*partition, ids), static_cast<int64_t>(ids.size()));
  }
}

std::vector<std::string> Numbered(int count) {
  std::vector<std::string> ids;
  for (int i = 0; i < count; ++i) ids.push_back(absl::StrCat("honest", i));
  return ids;
}

constexpr int kHonest = 700;

// What is forged in one partition, whose hash the attacker can ask, is as any id in the next. More by
// LETHE_FORGED=400000.
TEST(ForgedIdsTest, ForgedInAnotherPartitionTheyGrowTheFilterByWhatTheyInsert) {
  const char* const given = std::getenv("LETHE_FORGED");
  size_t most = 4000;
  ASSERT_TRUE(given == nullptr || absl::SimpleAtoi(given, &most));
  const auto stage = *DedupStage::Create({});
  const auto own = *stage->Open("own");
  EXPECT_NE(own->Hash("id").a, (*stage->Open("other"))->Hash("id").a);
  const std::vector<std::string> all_forged = ForgedFor(*own, most);
  for (const size_t count : {size_t{40}, most}) {
    const std::vector<std::string> forged(all_forged.begin(),
                                          all_forged.begin() + static_cast<int64_t>(count));
    const auto partition = *stage->Open("p");
    EXPECT_EQ(Passed(*partition, Numbered(kHonest)), kHonest);
    const int64_t passed = Passed(*partition, forged);
    EXPECT_GE(passed, static_cast<int64_t>(count) - 5);
    const FilterStatus status = partition->Status().filter;
    EXPECT_EQ(status.ids, kHonest + passed);
    EXPECT_EQ(status.lost_ids, 0);
    EXPECT_EQ(status.limit_hits, 0);
    EXPECT_EQ(Passed(*partition, Numbered(kHonest)), 0);
  }
}

// With the key they fill two lines and the stash, and are lost beyond that, alone.
TEST(ForgedIdsTest, WithTheKeyTheyLoseOnlyThemselves) {
  const auto stage = *DedupStage::Create({});
  const auto partition = *stage->Open("p");
  EXPECT_EQ(Passed(*partition, Numbered(kHonest)), kHonest);
  const int64_t passed = Passed(*partition, ForgedFor(*partition, 4000));
  const FilterStatus status = partition->Status().filter;
  EXPECT_GT(status.lost_ids, 1000);
  EXPECT_EQ(status.ids, kHonest + passed - status.lost_ids);
  EXPECT_EQ(status.limit_hits, 0);
  EXPECT_EQ(Passed(*partition, Numbered(kHonest)), 0);
}

}  // namespace
}  // namespace lethe
