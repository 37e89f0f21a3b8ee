// Quiet streams, silences, and wild timestamps in both: what passes, by the time that has really gone by.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "tests/support/exact_filter.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr int64_t kSecond = 1000;
constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kStartMs = 1'700'000'000'000;
constexpr int64_t kUntimed = INT64_MIN;

struct Record {
  uint64_t id;
  int64_t true_ms;  // when it was sent
  int64_t time_ms;  // what its producer says
  bool is_wild() const { return true_ms != time_ms; }
};

struct Outcome {
  std::vector<bool> passed;
  // Records that passed within the horizon of one of their id that had passed, and where that was.
  std::map<size_t, size_t> twice;
  // Dropped though the horizon and a part of it had gone by.
  std::vector<size_t> lost;
};

// Judges in transactions of random length, with aborts.
Outcome Judge(const std::vector<Record>& log, int64_t horizon_ms, std::mt19937_64& random,
              const FilterFactory& factory = ExactFilter::Factory()) {
  auto stage = *DedupStage::Create({.horizon = absl::Milliseconds(horizon_ms), .target_fpp = 1e-12}, factory);
  auto partition = *stage->Open("quiet");
  Outcome outcome;
  std::map<uint64_t, size_t> last;
  while (outcome.passed.size() < log.size()) {
    const size_t first = outcome.passed.size();
    const size_t size = std::min(log.size() - first, 1 + random() % 200);
    std::vector<Event> events;
    for (size_t i = first; i < first + size; ++i) {
      const bool is_timed = log[i].time_ms != kUntimed;
      const absl::Time time = is_timed ? absl::FromUnixMillis(log[i].time_ms) : absl::InfinitePast();
      events.push_back({.id = partition->Hash(absl::StrCat(log[i].id)), .time = time});
    }
    std::vector<Verdict> verdicts(size);
    Transaction transaction = *partition->Begin();
    EXPECT_OK(transaction.Judge(events, absl::MakeSpan(verdicts)));
    if (random() % 4 == 0) continue;  // aborted, to be judged again
    transaction.Commit();
    for (size_t i = first; i < first + size; ++i) {
      const bool passes = verdicts[i - first] == Verdict::kUnique;
      outcome.passed.push_back(passes);
      const auto before = last.find(log[i].id);
      if (before != last.end()) {
        const int64_t age_ms = log[i].true_ms - log[before->second].true_ms;
        // Which record the median is may make an eighth of a difference.
        if (passes && age_ms <= horizon_ms - horizon_ms / 8) outcome.twice[i] = before->second;
        if (!passes && age_ms > horizon_ms + horizon_ms / 5) outcome.lost.push_back(i);
      } else {
        EXPECT_TRUE(passes) << "record " << i << ", the first of its id";
      }
      if (passes) last[log[i].id] = i;
    }
  }
  return outcome;
}

size_t Passed(const Outcome& outcome) {
  return static_cast<size_t>(std::count(outcome.passed.begin(), outcome.passed.end(), true));
}

// `ids` ids in turn, each `gap_ms` after the last.
std::vector<Record> InTurn(size_t records, uint64_t ids, int64_t gap_ms) {
  std::vector<Record> log;
  for (size_t i = 0; i < records; ++i) {
    const int64_t time_ms = kStartMs + static_cast<int64_t>(i) * gap_ms;
    log.push_back({i % ids, time_ms, time_ms});
  }
  return log;
}

TEST(StageQuietTest, WhatComesAgainAfterTheHorizonPasses) {
  std::mt19937_64 random(TestSeed());
  EXPECT_EQ(Passed(Judge(InTurn(80, 5, kSecond), 2 * kSecond, random)), 80u);
  EXPECT_EQ(Passed(Judge(InTurn(800, 7, kHour), kHour / 6, random)), 800u);
  // Four records are too few to tell a quiet stream from a wild timestamp.
  EXPECT_EQ(Passed(Judge(InTurn(200, 1, kHour), kHour / 6, random)), 197u);
}

// A retry comes at once, however long the partition was quiet before.
TEST(StageQuietTest, RetriesInAQuietStreamAreCopies) {
  std::mt19937_64 random(TestSeed());
  std::vector<Record> log;
  for (const Record& record : InTurn(400, 1000, kHour)) {
    log.push_back(record);
    const int64_t retry_ms = record.time_ms + static_cast<int64_t>(random() % 300) * kSecond;
    log.push_back({record.id, retry_ms, retry_ms});
  }
  const Outcome outcome = Judge(log, kHour / 6, random);
  EXPECT_EQ(Passed(outcome), 400u);
  EXPECT_TRUE(outcome.twice.empty());
}

// Each morning the first records come while stream time is still at the evening before.
TEST(StageQuietTest, TheFirstRecordsAfterASilenceAreRemembered) {
  std::mt19937_64 random(TestSeed());
  std::vector<Record> log;
  int64_t now = kStartMs;
  uint64_t id = 0;
  for (int day = 0; day < 6; ++day) {
    now += 16 * kHour;
    for (int i = 0; i < 500; ++i) {
      now += 2 * kSecond;
      log.push_back({id++, now, now});
      if (i > 20 && random() % 3 == 0) log.push_back({id - 1 - random() % 20, now, now});
    }
  }
  const Outcome outcome = Judge(log, kHour, random);
  EXPECT_EQ(Passed(outcome), 3000u);
  EXPECT_TRUE(outcome.twice.empty());
}

// Stream time stands until a replay has read 101 timestamps, and jumps then.
TEST(StageQuietTest, AReplayRemembersNoIdForLongerThanItsHorizon) {
  constexpr int kFirst = 200, kAgain = 310;
  auto stage = *DedupStage::Create({.horizon = absl::Hours(1), .target_fpp = 1e-12}, ExactFilter::Factory());
  auto partition = *stage->Open("replayed");
  const std::vector<Record> log = InTurn(kAgain, 1000, 49 * kSecond);
  const auto time_of = [&](int record) { return absl::FromUnixMillis(kStartMs + record * 49 * kSecond); };
  ASSERT_OK(partition->StartAt(time_of(kFirst - 50)));
  for (int i = kFirst; i < kAgain; ++i) {
    const Event event = {.id = partition->Hash(absl::StrCat(log[i].id)), .time = time_of(i)};
    ASSERT_OK(partition->Replay({&event, 1}));
  }
  // Few of them: they have the same time. Ages are in records, of which a horizon has 73.
  for (const int age : {90, 95, 100, 110}) {
    EXPECT_EQ(*partition->Judge(absl::StrCat(kAgain - age), time_of(kAgain)), Verdict::kUnique) << age;
  }
  for (const int age : {1, 40, 73}) {
    EXPECT_EQ(*partition->Judge(absl::StrCat(kAgain - age), time_of(kAgain)), Verdict::kDuplicate) << age;
  }
}

// Of a disordered log, before stream time begins: so many records after an id has passed a copy comes that is
// dated more than a horizon earlier, and then one from in between.
TEST(StageQuietTest, NoIdIsForgottenForAnOlderCopyOfIt) {
  constexpr int64_t kMinute = 60 * kSecond;
  for (const bool renew : {false, true}) {
    for (const bool replays : {false, true}) {
      const StageOptions options = {.horizon = absl::Hours(1), .target_fpp = 1e-12, .renew = renew};
      auto stage = *DedupStage::Create(options, ExactFilter::Factory());
      auto partition = *stage->Open("disordered");
      const auto take = [&](const std::string& id, int64_t minute) {
        const Event event = {.id = partition->Hash(id),
                             .time = absl::FromUnixMillis(kStartMs + minute * kMinute)};
        Verdict verdict = Verdict::kUnique;
        const absl::Status taken =
            replays ? partition->Replay({&event, 1}) : partition->Judge({&event, 1}, {&verdict, 1});
        ASSERT_OK(taken);
      };
      take("id", 120);
      for (int i = 0; i < 110; ++i) take(absl::StrCat(i), 125 + i);
      // Those around it are as old.
      for (int i = 0; i < 3; ++i) take(absl::StrCat("older", i), 29);
      take("id", 30);
      EXPECT_EQ(partition->Status().stream_time, absl::InfinitePast()) << "it has not begun";
      EXPECT_EQ(*partition->Judge("id", absl::FromUnixMillis(kStartMs + 100 * kMinute)), Verdict::kDuplicate)
          << (renew ? "renewing" : "") << (replays ? " replayed" : " live");
    }
  }
}

TEST(StageQuietTest, ABusyStreamThatFallsSilentFollows) {
  std::mt19937_64 random(TestSeed());
  std::vector<Record> log;
  int64_t now = kStartMs;
  for (uint64_t i = 0; i < 200; ++i, now += 10) log.push_back({1000 + i, now, now});
  for (uint64_t i = 0; i < 300; ++i) {
    now += kHour;
    log.push_back({i % 3, now, now});
  }
  // Ten of the last 21 records do not outvote the others.
  EXPECT_GE(Passed(Judge(log, kHour / 6, random)), 490u);
}

// A quiet stream whose records have no timestamps from then on: time stands, and no copy passes, however many
// come.
TEST(StageQuietTest, IdsAreRememberedWhereTimestampsCease) {
  std::mt19937_64 random(TestSeed());
  std::vector<Record> log = InTurn(400, 1000, kHour / 8);
  const int64_t last_ms = log.back().time_ms;
  for (uint64_t i = 0; i < 400; ++i) log.push_back({10'000 + i, last_ms, kUntimed});
  for (uint64_t i = 380; i < 400; ++i) log.push_back({i, last_ms, kUntimed});
  for (uint64_t i = 0; i < 400; ++i) log.push_back({10'000 + i, last_ms, kUntimed});
  const Outcome outcome = Judge(log, 3 * kHour, random);
  EXPECT_EQ(Passed(outcome), 800u);
}

// Each id goes into the filter twice, when it passes and when stream time has come to it, and is held once.
TEST(StageQuietTest, IdsAreHeldOnce) {
  for (const bool in_transactions : {true, false}) {
    auto stage = *DedupStage::Create({.horizon = absl::Milliseconds(100 * kHour), .target_fpp = 1e-9});
    auto partition = *stage->Open("quiet");
    for (const Record& record : InTurn(1000, 1000, kHour)) {
      const Event event{.id = partition->Hash(absl::StrCat(record.id)),
                        .time = absl::FromUnixMillis(record.time_ms)};
      Verdict verdict = Verdict::kDuplicate;
      if (in_transactions) {
        Transaction transaction = *partition->Begin();
        ASSERT_OK(transaction.Judge({&event, 1}, {&verdict, 1}));
        transaction.Commit();
      } else {
        ASSERT_OK(partition->Judge({&event, 1}, {&verdict, 1}));
      }
      ASSERT_EQ(verdict, Verdict::kUnique);
    }
    EXPECT_GE(partition->Status().filter.ids, 100);
    // Those of a horizon and an eighth, and 50 for which stream time lags behind.
    EXPECT_LE(partition->Status().filter.ids, 100 + 13 + 50) << in_transactions;
  }
}

// Two sources, one of which is read hours after the other: what came of the first ahead of stream time is
// remembered, though stream time has not come to it within 101 records.
TEST(StageQuietTest, ARowOfOldRecordsLetsNoCopyPass) {
  std::mt19937_64 random(TestSeed());
  const int64_t gap_ms = kHour / 30;
  std::vector<Record> log = InTurn(400, 1000, gap_ms);
  const int64_t end_ms = log.back().time_ms;
  for (int64_t i = 0; i < 160; ++i) {
    const int64_t time_ms = end_ms - 400 * gap_ms + i * gap_ms;
    log.push_back({10'000 + static_cast<uint64_t>(i), time_ms, time_ms});
  }
  // The first goes on: the last twenty of its records come again after 48 minutes.
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t time_ms = end_ms + (5 + i) * gap_ms;
    log.push_back({20'000 + static_cast<uint64_t>(i), time_ms, time_ms});
    log.push_back({380 + static_cast<uint64_t>(i), time_ms, time_ms});
  }
  const Outcome outcome = Judge(log, kHour, random);
  EXPECT_TRUE(outcome.twice.empty()) << outcome.twice.size() << " passed twice";
}

// Retries, and ids that come again later, at one density.
std::vector<Record> RandomLog(std::mt19937_64& random, size_t size, int64_t gap_ms) {
  std::vector<Record> log;
  int64_t now = kStartMs;
  std::exponential_distribution<> gap(1.0 / static_cast<double>(gap_ms));
  for (size_t i = 0; i < size; ++i) {
    now += static_cast<int64_t>(gap(random));
    uint64_t id = i;
    const uint64_t kind = random() % 10;
    if (i > 0 && kind < 3) id = log[i - 1 - random() % std::min<size_t>(i, 10)].id;
    if (i > 0 && kind >= 8) id = log[i - 1 - random() % std::min<size_t>(i, 300)].id;
    log.push_back({id, now, now});
  }
  return log;
}

// At most `most` of any `window` records in a row, wherever the adversary has most of it: at random, or as
// many in a row as it may. Times from the distant past to far ahead, and such that are only hours off.
void MakeWild(std::mt19937_64& random, size_t most, size_t window, int64_t horizon_ms,
              std::vector<Record>* log) {
  std::vector<size_t> wild;
  const bool in_rows = random() % 2 == 0;
  const auto far = static_cast<uint64_t>(1 + random() % 20) * static_cast<uint64_t>(horizon_ms);
  for (size_t i = 0; i < log->size(); ++i) {
    if (!in_rows && random() % 2 == 0) continue;
    const auto recent = std::count_if(wild.begin(), wild.end(), [&](size_t at) { return at + window > i; });
    // Of the first few, too, less than a half.
    if (static_cast<size_t>(recent) >= std::min(most, i / 2)) continue;
    Record& record = (*log)[i];
    const auto off_ms = static_cast<int64_t>(random() % far);
    const int64_t times[] = {0,
                             1,
                             record.true_ms - off_ms,
                             record.true_ms + off_ms,
                             record.true_ms * 1000,
                             record.true_ms + 3650 * 24 * kHour};
    record.time_ms = times[random() % 6];
    wild.push_back(i);
  }
}

// Several sources in turn, each behind the others by up to nine horizons.
std::vector<Record> DisorderedLog(std::mt19937_64& random, size_t size) {
  std::vector<Record> log = RandomLog(random, size, kHour / (20 + static_cast<int64_t>(random() % 200)));
  int64_t behind_ms = 0;
  for (size_t left = 0, i = 0; i < log.size(); ++i, --left) {
    if (left == 0) {
      left = 1 + random() % 100;
      behind_ms = static_cast<int64_t>(random() % 4) * 3 * kHour;
    }
    log[i].time_ms = random() % 20 == 0 ? kUntimed : log[i].true_ms - behind_ms;
  }
  return log;
}

// Whatever the order is: what would be dropped after the log was judged is dropped after a replay of it, too,
// if its id has passed within the horizon. With `renew` both give the same verdict.
TEST(StageQuietTest, AReplayOfADisorderedLogKnowsWhatLiveJudgingDid) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 400; ++round) {
    const bool renew = round % 2 == 0;
    const StageOptions options = {.horizon = absl::Milliseconds(kHour), .target_fpp = 1e-12, .renew = renew};
    const std::vector<Record> log = DisorderedLog(random, 100 + random() % 500);
    auto stage = *DedupStage::Create(options, ExactFilter::Factory());
    const auto judged = *stage->Open("judged");
    const auto replayed = *stage->Open("replayed");
    const auto event_of = [](const Partition& partition, const Record& record) {
      const bool is_timed = record.time_ms != kUntimed;
      return Event{.id = partition.Hash(absl::StrCat(record.id)),
                   .time = is_timed ? absl::FromUnixMillis(record.time_ms) : absl::InfinitePast()};
    };
    std::map<uint64_t, int64_t> passed_ms;  // the latest timestamp, by id
    for (const Record& record : log) {
      const Event live = event_of(*judged, record);
      const Event again = event_of(*replayed, record);
      Verdict verdict = Verdict::kUnique;
      ASSERT_OK(judged->Judge({&live, 1}, {&verdict, 1}));
      ASSERT_OK(replayed->Replay({&again, 1}));
      if (verdict == Verdict::kDuplicate) continue;
      int64_t& latest_ms = passed_ms.try_emplace(record.id, record.time_ms).first->second;
      latest_ms = std::max(latest_ms, record.time_ms);
    }
    // Each in the place of the next record.
    const auto verdict_of = [&](Partition& partition, const Record& next) {
      const Event event = event_of(partition, next);
      Verdict verdict = Verdict::kUnique;
      Transaction transaction = *partition.Begin();  // it is aborted
      EXPECT_OK(transaction.Judge({&event, 1}, {&verdict, 1}));
      return verdict;
    };
    for (int probe = 0; probe < 50; ++probe) {
      const Record& of = log[random() % log.size()];
      const int64_t shift_ms = static_cast<int64_t>(random() % (2 * kHour)) - kHour;
      const int64_t time_ms = (of.time_ms == kUntimed ? of.true_ms : of.time_ms) + shift_ms;
      const Record next = {of.id, time_ms, time_ms};
      const Verdict first = verdict_of(*judged, next);
      const Verdict second = verdict_of(*replayed, next);
      const bool is_late = passed_ms[next.id] == kUntimed || time_ms - passed_ms[next.id] > kHour;
      EXPECT_TRUE(first == second || (!renew && (is_late || first == Verdict::kUnique)))
          << "round " << round << ", " << log.size() << " records, id " << next.id << ", "
          << (time_ms - of.true_ms) / kSecond << " s later" << (renew ? ", renewing" : "");
    }
    ASSERT_FALSE(HasFailure());
  }
}

// Ten of any 21, from the first record on: nothing passes twice in a dense stream.
TEST(StageQuietTest, TenWildTimestampsOf21ChangeNothingInADenseStream) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 60; ++round) {
    std::vector<Record> log = RandomLog(random, 1500, kHour / 6000);
    MakeWild(random, 10, 21, kHour, &log);
    const Outcome outcome = Judge(log, kHour, random);
    for (const auto& [copy, passed] : outcome.twice) {
      ADD_FAILURE() << "round " << round << ": record " << copy << " after " << passed;
    }
    ASSERT_FALSE(HasFailure());
  }
}

// In a sparse one a copy passes only if its own timestamp is wrong, or that of the record that has passed.
TEST(StageQuietTest, OnlyAWrongTimestampOfItsOwnLetsACopyPass) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 100; ++round) {
    const int64_t gap_ms = kHour / (1 + static_cast<int64_t>(random() % 1000)) + 6 * kHour * (round % 2);
    std::vector<Record> log = RandomLog(random, 1500, gap_ms);
    MakeWild(random, 1 + random() % 10, 21, kHour, &log);
    const Outcome outcome = Judge(log, kHour, random);
    for (const auto& [copy, passed] : outcome.twice) {
      EXPECT_TRUE(log[copy].is_wild() || log[passed].is_wild())
          << "round " << round << ", gap " << gap_ms << " ms: record " << copy << " after " << passed;
    }
    ASSERT_FALSE(HasFailure());
  }
}

// Without wild ones nothing is lost, nor does anything pass twice, at any density.
TEST(StageQuietTest, RightTimestampsGiveRightVerdicts) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 100; ++round) {
    const int64_t gap_ms = kHour * 6 / (1 + static_cast<int64_t>(random() % 30) * (1 + round * 10));
    const std::vector<Record> log = RandomLog(random, 1500, gap_ms);
    const Outcome outcome = Judge(log, kHour, random);
    EXPECT_TRUE(outcome.twice.empty()) << "gap " << gap_ms << " ms: record " << outcome.twice.begin()->first;
    // While stream time has not started, what came more than 101 records before counts as a copy; later few
    // do, after a silence that is long beside the last gaps.
    const auto late = std::count_if(outcome.lost.begin(), outcome.lost.end(), [&](size_t at) {
      return log[at].true_ms > log[303].true_ms + 2 * kHour;
    });
    EXPECT_LE(late, 15) << "gap " << gap_ms << " ms";
  }
}

}  // namespace
}  // namespace lethe
