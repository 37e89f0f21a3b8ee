// StageOptions::renew: what is unique did not come for a horizon, not even as a copy.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr int64_t kHorizonSeconds = 1000;

StageOptions Options(bool renew) {
  return {.horizon = absl::Seconds(kHorizonSeconds),
          .renew = renew,
          .engine = Engine::kExact,
          .audit_share = 1,
          .hash_seed = 7};
}

struct Opened {
  std::unique_ptr<DedupStage> stage;
  std::unique_ptr<Partition> partition;
};

Opened Open(const StageOptions& options) {
  Opened opened = {DedupStage::Create(options).value(), nullptr};
  opened.partition = opened.stage->Open("orders-0").value();
  return opened;
}

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1'700'000'000 + seconds); }

// How often an id passes that comes again and again, at 0.6 of a horizon, among others that move stream time.
int PassesOfABusyId(bool renew, bool in_transactions) {
  const Opened opened = Open(Options(renew));
  int passes = 0;
  for (int64_t seconds = 0; seconds < 10 * kHorizonSeconds; ++seconds) {
    const std::string id = seconds % 600 == 0 ? "busy" : absl::StrCat("other ", seconds);
    absl::StatusOr<Verdict> verdict;
    if (in_transactions) {
      Transaction transaction = opened.partition->Begin().value();
      verdict = transaction.Judge(id, At(seconds));
      transaction.Commit();
    } else {
      verdict = opened.partition->Judge(id, At(seconds));
    }
    EXPECT_OK(verdict);
    if (id == "busy" && *verdict == Verdict::kUnique) ++passes;
  }
  const AuditStatus audit = opened.partition->Status().audit;
  EXPECT_EQ(audit.missed, 0);
  EXPECT_EQ(audit.false_drops, 0);
  return passes;
}

TEST(Renew, AnIdThatComesAgainAndAgainPassesOnce) {
  for (const bool in_transactions : {false, true}) {
    EXPECT_EQ(PassesOfABusyId(true, in_transactions), 1);
    EXPECT_GE(PassesOfABusyId(false, in_transactions), 5);
  }
}

TEST(Renew, AnAbortedCopyRenewsNothing) {
  const Opened opened = Open(Options(true));
  for (int64_t i = 0; i < 200; ++i) {  // stream time begins
    ASSERT_OK(opened.partition->Judge(absl::StrCat("before ", i), At(0)));
  }
  ASSERT_EQ(opened.partition->Judge("id", At(0)).value(), Verdict::kUnique);
  Transaction transaction = opened.partition->Begin().value();
  ASSERT_EQ(transaction.Judge("id", At(900)).value(), Verdict::kDuplicate);
  transaction.Abort();
  for (int64_t seconds = 901; seconds < 1700; ++seconds) {
    ASSERT_OK(opened.partition->Judge(absl::StrCat(seconds), At(seconds)));
  }
  EXPECT_EQ(opened.partition->Judge("id", At(1700)).value(), Verdict::kUnique);
}

TEST(Renew, ForgettingACopyKeepsTheCounts) {
  const Opened opened = Open(Options(true));
  ASSERT_EQ(opened.partition->Judge("id", At(0)).value(), Verdict::kUnique);
  Transaction transaction = opened.partition->Begin().value();
  ASSERT_EQ(transaction.Judge("id", At(1)).value(), Verdict::kDuplicate);
  ASSERT_EQ(transaction.Judge("new", At(1)).value(), Verdict::kUnique);
  ASSERT_OK(transaction.Forget(opened.partition->Hash("id")));
  ASSERT_OK(transaction.Forget(opened.partition->Hash("new")));
  ASSERT_EQ(transaction.Judge("newer", At(1)).value(), Verdict::kUnique);
  transaction.Commit();
  EXPECT_EQ(opened.partition->Status().unique, 2);
}

// The last time of each id, as the oracle knows it.
using LastTimes = std::map<std::string, int64_t>;
using Events = std::vector<std::pair<std::string, int64_t>>;

// Judges the events, and fails where the oracle knows the verdict. The filter's time is that of the last
// commit, up to 900 s before.
void Play(const Events& events, Transaction& transaction, LastTimes& last) {
  for (const auto& [id, time] : events) {
    const Verdict verdict = transaction.Judge(id, At(time)).value();
    const auto seen = last.find(id);
    const int64_t age = seen == last.end() ? INT64_MAX : time - seen->second;
    if (age <= kHorizonSeconds - 200) {
      ASSERT_EQ(verdict, Verdict::kDuplicate) << id << " at " << time;
    } else if (age > 3 * kHorizonSeconds) {
      ASSERT_EQ(verdict, Verdict::kUnique) << id << " at " << time;
    }
    last[id] = time;
  }
}

// In transactions of any length in stream time, with aborts, and with a partition that is rebuilt from the
// log's last two horizons now and then.
TEST(Renew, AgreesWithAnOracleThroughAbortsAndReplays) {
  std::mt19937_64 random(TestSeed());
  Opened opened = Open(Options(true));
  Events log;
  LastTimes last;
  int64_t now = 0;
  for (int transactions = 0; transactions < 2000; ++transactions) {
    Events events;
    const size_t count = 1 + random() % 300;
    for (size_t i = 0; i < count; ++i) {
      now += static_cast<int64_t>(random() % 4);
      // The ids of a few thousand seconds, of which some come again soon, some late and some never.
      events.emplace_back(absl::StrCat(random() % 3000 + static_cast<uint64_t>(now) / 20000 * 1000), now);
    }
    if (random() % 3 == 0) {
      Transaction aborted = opened.partition->Begin().value();
      LastTimes unchanged = last;
      ASSERT_NO_FATAL_FAILURE(Play(events, aborted, unchanged));
      aborted.Abort();
      // Stream time has moved on, and does not move back for the same events.
    }
    Transaction transaction = opened.partition->Begin().value();
    ASSERT_NO_FATAL_FAILURE(Play(events, transaction, last));
    transaction.Commit();
    log.insert(log.end(), events.begin(), events.end());
    if (random() % 40 != 0) continue;
    EXPECT_EQ(opened.partition->Status().audit.missed, 0);
    opened.partition.reset();  // before its stage
    opened = Open(Options(true));
    std::vector<Event> replayed;
    for (const auto& [id, time] : log) {
      if (time >= now - 2 * kHorizonSeconds) {
        replayed.push_back({.id = opened.partition->Hash(id), .time = At(time)});
      }
    }
    ASSERT_OK(opened.partition->Replay(replayed));
  }
}

TEST(Renew, ASnapshotOfTheOtherKindIsRefused) {
  const std::string path = absl::StrCat(testing::TempDir(), "/renew.snapshot");
  const Opened opened = Open(Options(true));
  ASSERT_OK(opened.partition->Judge("id", At(0)));
  ASSERT_OK(opened.partition->Save(path, {}, {}));
  EXPECT_OK(Open(Options(true)).stage->Restore("orders-0", path, {}));
  EXPECT_THAT(Open(Options(false)).stage->Restore("orders-0", path, {}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(InspectSnapshot(path));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lethe
