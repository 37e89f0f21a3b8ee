// The oracle must be able to fail: each kind of fault is fed to it, and it has to name it.
#include "tests/faults/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/faults/second_judge.h"

namespace lethe::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kBegin = 1'700'000'000'000;
constexpr int64_t kMinute = 60'000;

// Two partitions with a record a minute; every 10th record is a copy of the 5th before it, and every 50th has
// no id. What lethe would leave of it: the evidence that each test spoils.
Evidence Right() {
  Evidence evidence;
  evidence.horizon = absl::Hours(1);
  for (int32_t p = 0; p < 2; ++p) {
    std::map<std::string, int64_t> sums;
    for (int i = 0; i < 600; ++i) {
      FaultyEvent event;
      event.send = 1000 * p + i;
      const bool copy = i % 10 == 7;
      if (i % 50 != 49) event.id = absl::StrCat("p", p, "-", copy ? i - 5 : i);
      event.country = i % 3 == 0 ? "is" : "jp";
      event.amount = i % 5 - 3;
      Record record;
      record.key = "key";
      record.value = event.ToJson();
      record.headers = {{"h", "1"}};
      record.timestamp_ms = kBegin + i * kMinute;
      record.partition = p;
      record.offset = i;
      evidence.input.push_back(record);
      if (copy) continue;
      sums[event.country] += event.amount;
      evidence.output.push_back(record);
    }
    for (const auto& [country, sum] : sums) {
      Record delta;
      delta.key = country;
      delta.value = absl::StrCat(sum);
      delta.headers = {{"lethe.partition", absl::StrCat(p)}};
      evidence.deltas.push_back(delta);
      Record total;
      total.key = absl::StrCat("totals/in/", p, "/", country);
      total.partition = p;
      for (const int64_t at : {300, 600}) {
        total.value =
            absl::StrCat(R"({"mode":"total","total":)", at == 600 ? sum : sum / 2, R"(,"offset":)", at, "}");
        evidence.totals.push_back(total);
      }
    }
    evidence.committed.push_back(600);
    evidence.output_ends.stable.push_back(700);
    evidence.delta_ends.stable.push_back(10);
  }
  evidence.totals_are_counted = true;
  evidence.output_ends.end = evidence.output_ends.stable;
  evidence.delta_ends.end = evidence.delta_ends.stable;
  evidence.counted = CountedVerdicts{1056, 120, 24};
  return evidence;
}

std::string Problems(const Evidence& evidence) { return absl::StrJoin(Judge(evidence).problems, "\n"); }

// Succeeds if the spoilt evidence has exactly these problems, and `lethe verify` says the same, where it is
// told as much.
void ExpectProblems(const std::vector<std::string>& expected, const std::function<void(Evidence&)>& spoil,
                    bool verifies = true) {
  Evidence evidence = Right();
  spoil(evidence);
  const Judgement judgement = Judge(evidence);
  const std::string all = absl::StrJoin(judgement.problems, "\n");
  EXPECT_EQ(judgement.problems.size(), expected.size()) << all;
  for (const std::string& problem : expected) EXPECT_THAT(all, HasSubstr(problem));
  if (!verifies) return;
  EXPECT_EQ(absl::StrJoin(Disagreements(evidence, judgement), "\n"), "") << all;
}

// The same of what happens behind the horizon, where `lethe verify` is told of no window.
void ExpectProblemsBehindHorizon(const std::vector<std::string>& expected,
                                 const std::function<void(Evidence&)>& spoil) {
  ExpectProblems(expected, spoil, /*verifies=*/false);
}

// An input record, sent again so much later, with the same id.
Record Again(const Evidence& evidence, size_t which, int64_t after_ms) {
  Record record = evidence.input[which];
  FaultyEvent event;
  EXPECT_TRUE(FaultyEvent::Parse(*record.value, &event));
  event.send = 5000;
  event.amount = 0;
  record.value = event.ToJson();
  record.offset = 600;
  record.timestamp_ms += after_ms;
  return record;
}

TEST(JudgeTest, FindsNothingWrongWithWhatIsRight) {
  EXPECT_EQ(Problems(Right()), "");
  const Judgement judgement = Judge(Right());
  EXPECT_EQ(judgement.records, 1200);
  EXPECT_EQ(judgement.passed, 1080);
  EXPECT_EQ(judgement.dropped, 120);
}

TEST(JudgeTest, ALostRecord) {
  // Its amount is 0, so that the counters are right.
  ExpectProblems({"1 records are LOST", "records are MISCOUNTED"},
                 [](Evidence& evidence) { evidence.output.erase(evidence.output.begin() + 3); });
}

TEST(JudgeTest, ALostRecordWithoutAnId) {
  ExpectProblems({"1 records are LOST", "counters are WRONG", "records are MISCOUNTED"},
                 [](Evidence& evidence) {
                   const auto nameless = [](const Record& record) {
                     return record.offset == 49 && record.partition == 0;
                   };
                   std::erase_if(evidence.output, nameless);
                 });
}

TEST(JudgeTest, ALostCopyOfALostRecordIsLostToo) {
  ExpectProblems({"2 records are LOST", "counters are WRONG", "records are MISCOUNTED"},
                 [](Evidence& evidence) { evidence.output.erase(evidence.output.begin() + 2); });
}

TEST(JudgeTest, ARepeatedRecord) {
  ExpectProblems({"1 records are REPEATED", "2 counters are WRONG", "records are MISCOUNTED"},
                 [](Evidence& evidence) {
                   evidence.output.insert(evidence.output.begin() + 9, evidence.input[17]);
                   std::sort(evidence.output.begin(), evidence.output.begin() + 30,
                             [](const Record& a, const Record& b) { return a.offset < b.offset; });
                 });
}

// The clock moves with the 303rd record here, since they are a minute apart.
TEST(JudgeTest, WithALentClockARepetitionOfARecordFromBeforeItMoved) {
  for (const int copy : {47, 347}) {
    Evidence evidence = Right();
    evidence.clock_may_be_older = true;
    const auto behind = std::find_if(evidence.output.begin(), evidence.output.end(), [&](const Record& each) {
      return each.partition == 0 && each.offset > copy;
    });
    evidence.output.insert(behind, evidence.input[static_cast<size_t>(copy)]);
    EXPECT_EQ(absl::StrContains(Problems(evidence), "1 records are REPEATED"), copy == 347) << copy;
  }
}

// A copy of record 462, of which there is one in 467, comes as the last record, 91 minutes after stream time
// had come to that, and is dropped.
void DropLate(Evidence& evidence) {
  evidence.input.push_back(Again(evidence, 462, 137 * kMinute));
  evidence.committed[0] = 601;
  ++evidence.counted->duplicate;
  evidence.forgotten_after = absl::Minutes(80);
}

TEST(JudgeTest, ARecordThatIsRememberedForTooLong) {
  ExpectProblemsBehindHorizon({"1 records are REMEMBERED"}, DropLate);
  ExpectProblemsBehindHorizon({}, [](Evidence& evidence) {
    DropLate(evidence);
    evidence.forgotten_after = absl::InfiniteDuration();
  });
  ExpectProblemsBehindHorizon({}, [](Evidence& evidence) {
    DropLate(evidence);
    evidence.output.push_back(evidence.input.back());
    --evidence.counted->duplicate;
    ++evidence.counted->unique;
  });
}

TEST(JudgeTest, ARebuildRemembersFromTheLastRecordOn) {
  for (const bool is_rebuilt : {false, true}) {
    ExpectProblemsBehindHorizon(
        is_rebuilt ? std::vector<std::string>() : std::vector<std::string>{"1 records are REMEMBERED"},
        [&](Evidence& evidence) {
          DropLate(evidence);
          evidence.forgotten_after = absl::Minutes(88);
          evidence.is_rebuilt = is_rebuilt;
        });
  }
}

TEST(JudgeTest, WhatAFilterHolds) {
  // Stream time, 50 records behind, ends in minute 549, and 53 of the records from 539 on have ids that
  // passed. Of the 45 before them, to which stream time came in minute 485 or later, a filter may still hold
  // the ids.
  const auto hold = [](int64_t ids, int64_t minute, bool is_rebuilt = false) {
    return [=](Evidence& evidence) {
      evidence.is_rebuilt = is_rebuilt;
      evidence.forgotten_after = absl::Minutes(64);
      evidence.held = {HeldIds{ids, absl::FromUnixMillis(kBegin + minute * kMinute)}};
    };
  };
  ExpectProblems({}, hold(53, 549));
  ExpectProblems({}, hold(98, 549));
  ExpectProblems({"1 filters HOLD other ids"}, hold(52, 549));
  ExpectProblems({"1 filters HOLD other ids"}, hold(99, 549));
  // A rebuild keeps ids as of their own timestamps, which are three minutes later.
  ExpectProblems({}, hold(101, 549, /*is_rebuilt=*/true));
  ExpectProblems({"1 filters HOLD other ids"}, hold(102, 549, /*is_rebuilt=*/true));
  ExpectProblems({"1 filters have ANOTHER TIME"}, hold(53, 548));
  ExpectProblems({}, [&](Evidence& evidence) {
    hold(52, 549)(evidence);
    evidence.held[0]->lacks_some = true;
  });
}

TEST(JudgeTest, OneRecordThatIsOutTwice) {
  ExpectProblems({"1 records are out TWICE"}, [](Evidence& evidence) {
    evidence.output.insert(evidence.output.begin() + 3, evidence.output[2]);
  });
}

TEST(JudgeTest, AReorderedRecord) {
  ExpectProblems({"1 records are REORDERED"},
                 [](Evidence& evidence) { std::swap(evidence.output[3], evidence.output[4]); });
}

TEST(JudgeTest, AForeignRecord) {
  ExpectProblems({"1 records of the output are FOREIGN"}, [](Evidence& evidence) {
    Record foreign = evidence.output[0];
    foreign.value = FaultyEvent{99'999, "x", "is", 0, ""}.ToJson();
    evidence.output.push_back(foreign);
  });
  ExpectProblems({"1 records of the output are FOREIGN"}, [](Evidence& evidence) {
    evidence.output.push_back(evidence.output[0]);
    evidence.output.back().partition = 2;
  });
}

TEST(JudgeTest, AChangedRecord) {
  for (const std::function<void(Record&)>& change : std::vector<std::function<void(Record&)>>{
           [](Record& r) { r.key = std::nullopt; }, [](Record& r) { *r.value += " "; },
           [](Record& r) { r.headers.clear(); }, [](Record& r) { ++r.timestamp_ms; }}) {
    ExpectProblems({"1 records are CHANGED"}, [&](Evidence& evidence) { change(evidence.output[4]); });
  }
}

TEST(JudgeTest, AWrongCounter) {
  ExpectProblems({"1 counters are WRONG"}, [](Evidence& evidence) { evidence.deltas[0].value = "12345"; });
  ExpectProblems({"2 counters are WRONG"},
                 [](Evidence& evidence) { evidence.deltas[0].headers[0].second = "1"; });
  ExpectProblems({"1 counters are WRONG"}, [](Evidence& evidence) {
    evidence.deltas.push_back(evidence.deltas[0]);
    evidence.deltas.back().key = "nowhere";
  });
  ExpectProblems({"1 counters are WRONG"},
                 [](Evidence& evidence) { evidence.totals.erase(evidence.totals.begin() + 1); });
  ExpectProblems({"2 counters are WRONG"},
                 [](Evidence& evidence) { std::swap(evidence.totals[0], evidence.totals[1]); });
  ExpectProblems({"1 counters are WRONG"}, [](Evidence& evidence) { evidence.totals[0].value = "5"; });
}

TEST(JudgeTest, AnOpenTransaction) {
  ExpectProblems({"1 partitions have a transaction OPEN"},
                 [](Evidence& evidence) { ++evidence.output_ends.end[1]; });
  ExpectProblems({"1 partitions have a transaction OPEN"},
                 [](Evidence& evidence) { ++evidence.delta_ends.end[0]; });
}

TEST(JudgeTest, OffsetsThatAreNotCommitted) {
  for (const int64_t wrong : {599, 601, -1}) {
    ExpectProblems({"1 partitions are NOT COMMITTED"},
                   [&](Evidence& evidence) { evidence.committed[1] = wrong; });
  }
}

TEST(JudgeTest, VerdictsThatWereMiscounted) {
  ExpectProblems({"MISCOUNTED"}, [](Evidence& evidence) { --evidence.counted->duplicate; });
}

// An id at minute 200, once more after what the stream's time is a horizon further, or not quite.
TEST(JudgeTest, AfterTheHorizonEitherVerdictIsRight) {
  const auto with = [](size_t which, bool passes) {
    Evidence evidence = Right();
    evidence.counted.reset();
    const Record again = Again(evidence, which, static_cast<int64_t>(600 - which) * kMinute);
    evidence.committed[0] = 601;
    evidence.input.insert(evidence.input.begin() + 600, again);
    if (passes) evidence.output.insert(evidence.output.begin() + 540, again);
    return Judge(evidence);
  };
  for (const bool passes : {true, false}) {
    const Judgement late = with(200, passes);
    EXPECT_EQ(absl::StrJoin(late.problems, "\n"), "");
    EXPECT_EQ(late.late_passed, passes ? 1 : 0);
    EXPECT_EQ(late.late_dropped, passes ? 0 : 1);
  }
  EXPECT_EQ(with(560, false).problems.size(), 0u);
  ASSERT_THAT(with(560, true).problems, ElementsAre(HasSubstr("REPEATED")));
}

// The output rejects a record for its size: that is not a loss, and a small copy of it is its first.
TEST(JudgeTest, ARecordThatIsTooLargeForTheOutputWasNotPassed) {
  const auto with = [](bool copy_passes) {
    Evidence evidence = Right();
    evidence.counted.reset();
    evidence.output_takes_bytes = 1000;
    Record large = evidence.input[0];
    FaultyEvent event;
    EXPECT_TRUE(FaultyEvent::Parse(*large.value, &event));
    event.id = "large";
    event.amount = 0;
    event.send = 5000;
    Record small = large;
    small.value = event.ToJson();
    event.pad = std::string(1000, 'x');
    event.send = 4999;
    large.value = event.ToJson();
    large.offset = 600;
    small.offset = 601;
    evidence.input.insert(evidence.input.begin() + 600, {large, small});
    evidence.committed[0] = 602;
    if (copy_passes) evidence.output.insert(evidence.output.begin() + 540, small);
    return Judge(evidence);
  };
  EXPECT_EQ(absl::StrJoin(with(true).problems, "\n"), "");
  EXPECT_EQ(with(true).undeliverable, 1);
  ASSERT_THAT(with(false).problems, ElementsAre(HasSubstr("1 records are LOST")));
}

// Most records of an hour are dated ten years ahead: if they moved time, nothing would ever expire again.
TEST(JudgeTest, RecordsFromTheFutureMoveNoTime) {
  Evidence evidence = Right();
  evidence.counted.reset();
  const auto is_ahead = [](const Record& record) {
    return record.partition == 0 && record.offset >= 300 && record.offset < 360;
  };
  for (std::vector<Record>* records : {&evidence.input, &evidence.output}) {
    for (Record& record : *records) {
      if (is_ahead(record)) record.timestamp_ms += 10 * 365 * 24 * 60 * kMinute;
    }
  }
  // A copy that comes three horizons after its first, and passes.
  const Record again = Again(evidence, 365, 200 * kMinute);
  evidence.input.insert(evidence.input.begin() + 600, again);
  evidence.output.insert(evidence.output.begin() + 540, again);
  evidence.committed[0] = 601;
  evidence.latest_time = absl::FromUnixMillis(kBegin + 601 * kMinute);
  EXPECT_EQ(Problems(evidence), "");
  evidence.latest_time = absl::InfiniteFuture();
  EXPECT_THAT(Problems(evidence), HasSubstr("1 records are REPEATED"));
}

// A client without idempotence has written a record twice: the later one is a copy, whatever it looks like.
TEST(JudgeTest, ACopyThatTheClientMade) {
  Evidence evidence = Right();
  evidence.counted.reset();
  Record copy = evidence.input[0];
  copy.offset = 600;
  evidence.input.insert(evidence.input.begin() + 600, copy);
  evidence.committed[0] = 601;
  const Judgement judgement = Judge(evidence);
  EXPECT_EQ(absl::StrJoin(judgement.problems, "\n"), "");
  EXPECT_EQ(judgement.client_copies, 1);
}

}  // namespace
}  // namespace lethe::test
