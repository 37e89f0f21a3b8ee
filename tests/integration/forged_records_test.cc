// Who may write into the input and sees which of his own records pass gets nothing by it: on the program,
// what tests/unit/forged_ids_test.cc shows of a partition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lethe/stage.h"
#include "tests/support/chosen_pairs.h"
#include "tests/support/flow.h"
#include "tests/support/seed.h"

namespace lethe::test {
namespace {

int64_t Given(const char* variable, int64_t otherwise) {
  const char* const given = std::getenv(variable);
  EXPECT_TRUE(given == nullptr || absl::SimpleAtoi(given, &otherwise)) << variable << "=" << given;
  return otherwise;
}

void SendKeys(Flow& flow, const std::vector<std::string>& ids) {
  constexpr size_t kAtOnce = 20'000;
  for (size_t i = 0; i < ids.size(); i += kAtOnce) {
    std::vector<Record> records;
    for (size_t at = i; at < std::min(i + kAtOnce, ids.size()); ++at) {
      Record record;
      record.key = ids[at];
      record.value = "x";
      records.push_back(std::move(record));
    }
    flow.Send(records);
  }
}

constexpr char kUnique[] = "verdict=\"unique\"";

// A pair of which one is dropped would tell bits of the key. Each round is chosen after the last one's
// answer, which is always the same, so it tells the chooser nothing. More by LETHE_PROBES=200000.
TEST(ForgedRecordsTest, ProbesOfBothKindsTellNothing) {
  const int64_t probes = Given("LETHE_PROBES", 20'000);
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const auto daemon = flow.Start({"--id=key", "--fpp=1e-12"});
  LongPairs long_pairs(1000, TestSeed());
  ShortPairs short_pairs(TestSeed());
  constexpr int64_t kRounds = 10;
  for (int64_t round = 1; round <= kRounds; ++round) {
    std::vector<std::string> ids(static_cast<size_t>(probes / kRounds));
    for (size_t i = 0; i + 1 < ids.size(); i += 2) {
      i % 4 == 0 ? long_pairs.Next(&ids[i], &ids[i + 1]) : short_pairs.Next(&ids[i], &ids[i + 1]);
      // Two pairs of short ones might be the same.
      for (size_t at = i; at < i + 2; ++at) {
        if (ids[at].size() < 100) absl::StrAppend(&ids[at], "#", round, "/", i);
      }
    }
    SendKeys(flow, ids);
    const int64_t sent = probes / kRounds * round;
    ASSERT_TRUE(AwaitJudged(*daemon, sent));
    ASSERT_EQ(daemon->Metric("lethe_records_total", {kUnique}), static_cast<double>(sent));
  }
  EXPECT_TRUE(daemon->Stop());
}

// Ids that fill two lines of a filter whose key their author has. In another filter they are as any: it grows
// by what is inserted and forgets nothing. More by LETHE_FORGED=400000.
TEST(ForgedRecordsTest, ForgedIdsGrowTheFilterByWhatTheyInsert) {
  const auto stage = *DedupStage::Create({});
  const auto own = *stage->Open("own");
  const auto most = static_cast<size_t>(Given("LETHE_FORGED", 4000));
  const std::vector<std::string> forged = ForgedFor(*own, most);
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  constexpr int64_t kHonest = 50'000;
  std::vector<std::string> honest;
  for (int64_t i = 0; i < kHonest; ++i) honest.push_back(absl::StrCat("honest-", i));
  const auto daemon = flow.Start({"--id=key", "--fpp=1e-9"});
  SendKeys(flow, honest);
  ASSERT_TRUE(AwaitJudged(*daemon, kHonest));
  int64_t sent = kHonest;
  size_t begin = 0;
  for (const size_t count : {size_t{40}, most}) {
    SendKeys(flow, {forged.begin() + static_cast<std::ptrdiff_t>(begin),
                    forged.begin() + static_cast<std::ptrdiff_t>(count)});
    sent += static_cast<int64_t>(count - begin);
    begin = count;
    ASSERT_TRUE(AwaitJudged(*daemon, sent));
    EXPECT_TRUE(daemon->Await([&] {
      return daemon->Metric("lethe_filter_ids") == static_cast<double>(sent);
    })) << daemon->Metric("lethe_filter_ids")
        << " ids of " << sent;
  }
  EXPECT_EQ(daemon->Metric("lethe_filter_lost_ids_total"), 0);
  // Nothing old passes again.
  SendKeys(flow, honest);
  ASSERT_TRUE(AwaitJudged(*daemon, sent + kHonest));
  EXPECT_EQ(daemon->Metric("lethe_records_total", {kUnique}), static_cast<double>(sent));
  EXPECT_TRUE(daemon->Stop());
}

}  // namespace
}  // namespace lethe::test
