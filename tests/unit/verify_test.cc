// Two logs whose truth is known: a right output has no finding, and each damage is found where it is.
#include "src/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/stage.h"
#include "tests/support/exact_filter.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

using Kind = VerifyKind;
using Fate = VerifyRules::Fate;
using Outcome = VerifyReport::Outcome;

constexpr int64_t kStart = 1'700'000'000'000;
constexpr int kPartitions = 2;
constexpr int64_t kHorizonMs = 600'000;

struct Rec : RecordHeaders {
  std::optional<absl::string_view> Last(const std::string& name) const override {
    for (auto header = headers.rbegin(); header != headers.rend(); ++header) {
      if (header->first == name) return header->second;
    }
    return std::nullopt;
  }

  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  int64_t time_ms = 0;
  int32_t partition = 0;
  int64_t offset = 0;
  std::string topic = "orders";
  // As the truth knows them.
  std::string id;
  int n = 0;
};

using Log = std::vector<Rec>;

// Offsets by partition, with a gap now and then, as transactions leave them.
void Number(Log& log) {
  std::map<std::pair<std::string, int32_t>, int64_t> next;
  for (Rec& rec : log) {
    int64_t& offset = next[{rec.topic, rec.partition}];
    rec.offset = offset;
    offset += offset % 7 == 6 ? 2 : 1;
  }
}

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    rules_.id = *IdSpec::Parse("json:/id");
    rules_.horizon = absl::Milliseconds(kHorizonMs);
    rules_.window = rules_.horizon * 5 / 4;
    rules_.fpp = 1e-9;
    Send(3000);
    output_ = RightOutput(input_);
    outputs_.assign(kPartitions, {});
  }

  // A record a second in each partition; a tenth comes again, some of it beyond the horizon; some have no id.
  void Send(int count, const std::vector<std::string>& topics = {"orders"}) {
    std::mt19937_64 random(TestSeed());
    input_.clear();
    std::vector<size_t> again(static_cast<size_t>(count) * 3, SIZE_MAX);
    for (int i = 0; i < count; ++i) {
      Rec rec;
      rec.n = i;
      rec.partition = i % kPartitions;
      rec.topic = topics[static_cast<size_t>(i / kPartitions) % topics.size()];
      const size_t copied = again[static_cast<size_t>(i)];
      if (copied != SIZE_MAX) {
        rec.key = input_[copied].key;
        rec.value = input_[copied].value;
        rec.id = input_[copied].id;
        if (!rules_.topic_scope) rec.partition = input_[copied].partition;
        if (!rules_.topic_scope) rec.topic = input_[copied].topic;
      } else {
        rec.id = i % 50 == 7 ? "" : absl::StrCat("id-", i);
        rec.key = absl::StrCat("key-", i % 10);
        rec.value =
            rec.id.empty() ? absl::StrCat("{\"n\":", i, "}") : absl::StrCat("{\"id\":\"", rec.id, "\"}");
      }
      rec.headers = {{"trace", absl::StrCat(random() % 9)}, {"empty", std::nullopt}};
      rec.time_ms = kStart + i / kPartitions * 1000;
      input_.push_back(rec);
      if (random() % 10 == 0) {
        const auto later = static_cast<size_t>(i) + 1 + random() % (random() % 4 == 0 ? 2000 : 300);
        if (later < static_cast<size_t>(count)) again[later] = static_cast<size_t>(i);
      }
    }
    Number(input_);
    SetInputs(topics);
  }

  void SetInputs(const std::vector<std::string>& topics) {
    inputs_.clear();
    for (const std::string& topic : topics) {
      for (int32_t p = 0; p < kPartitions; ++p) inputs_.push_back({.topic = topic, .partition = p});
    }
  }

  // By the promise itself: a hash set with the times of passes.
  Log RightOutput(const Log& input) const {
    Log output;
    std::map<std::string, int64_t> passed;
    std::map<std::pair<std::string, int32_t>, StreamTime> clocks;
    std::map<std::pair<std::string, int32_t>, int64_t> begins;
    std::vector<int64_t> times;
    for (const Rec& rec : input) {
      const std::pair<std::string, int32_t> place(rec.topic, rec.partition);
      times.push_back(
          clocks.try_emplace(place, StreamTime::For(rules_.horizon)).first->second.Observe(rec.time_ms));
      if (times.back() != kNoStreamTime) begins.try_emplace(place, times.back());
    }
    for (size_t i = 0; i < input.size(); ++i) {
      const Rec& rec = input[i];
      int64_t now = times[i] == kNoStreamTime ? begins[{rec.topic, rec.partition}] : times[i];
      if (rules_.topic_scope) now = rec.time_ms;
      if (!rec.id.empty()) {
        const std::string id = rules_.topic_scope ? rec.id : absl::StrCat(rec.partition, "/", rec.id);
        const auto before = passed.find(id);
        const bool is_copy = before != passed.end() && now - before->second <= kHorizonMs;
        if (!is_copy || rules_.renew) passed[id] = now;
        if (is_copy) continue;
      }
      output.push_back(rec);
    }
    Number(output);
    for (Rec& rec : output) rec.topic = "";
    Number(output);
    return output;
  }

  VerifyReport Run(HashRange range = {}) {
    Verifier verifier(rules_, inputs_, kPartitions, nullptr, 42, range);
    const auto add = [](const Rec& rec, const auto& take) {
      SurveyRecord record;
      record.record.key = rec.key;
      record.record.value = rec.value;
      record.record.headers = &rec;
      std::vector<std::pair<absl::string_view, std::optional<absl::string_view>>> headers(rec.headers.begin(),
                                                                                          rec.headers.end());
      record.headers = headers;
      record.partition = rec.partition;
      record.offset = rec.offset;
      record.time_ms = rec.time_ms;
      take(record);
    };
    for (const Rec& rec : input_) {
      int32_t number = 0;
      while (inputs_[static_cast<size_t>(number)].topic != rec.topic ||
             inputs_[static_cast<size_t>(number)].partition != rec.partition) {
        ++number;
      }
      if (rec.offset < inputs_[static_cast<size_t>(number)].read_from) continue;
      add(rec, [&](const SurveyRecord& record) { verifier.AddInput(number, record); });
    }
    for (const Rec& rec : output_) {
      if (rec.offset < outputs_[static_cast<size_t>(rec.partition)].read_from) continue;
      add(rec, [&](const SurveyRecord& record) { verifier.AddOutput(record); });
    }
    for (const Rec& rec : diverted_) {
      add(rec, [&](const SurveyRecord& record) { verifier.AddDiverted(record); });
    }
    return verifier.Judge({inputs_, outputs_, judged_until_ms_});
  }

  // Nothing but this is found, once.
  void ExpectOnly(const VerifyReport& report, Kind kind, bool is_input, const Rec& at) {
    for (size_t i = 0; i < kVerifyKinds.size(); ++i) {
      EXPECT_EQ(report.counts[i], i == static_cast<size_t>(kind) ? 1 : 0) << kVerifyKinds[i];
    }
    const auto& examples = report.examples[static_cast<size_t>(kind)];
    ASSERT_EQ(examples.size(), 1u);
    EXPECT_EQ(examples[0].is_input, is_input);
    EXPECT_EQ(examples[0].partition, at.partition);
    EXPECT_EQ(examples[0].offset, at.offset);
  }
  void ExpectNoFinding(const VerifyReport& report) {
    EXPECT_EQ(report.counts, decltype(report.counts){}) << absl::StrCat(
        "lost ", report.count(Kind::kLost), " repeated ", report.count(Kind::kRepeated), " foreign ",
        report.count(Kind::kForeign), " changed ", report.count(Kind::kChanged), " out of order ",
        report.count(Kind::kOutOfOrder), " in several partitions ", report.count(Kind::kInSeveralPartitions),
        " undecided ", report.count(Kind::kUndecided));
  }
  void ExpectRight(const VerifyReport& report) {
    ExpectNoFinding(report);
    EXPECT_EQ(report.OutcomeFor(rules_.fpp), Outcome::kHolds);
  }

  // The place in the input of what the output has at `at`.
  const Rec& InputOf(const Rec& at) const {
    return *std::find_if(input_.begin(), input_.end(), [&](const Rec& rec) { return rec.n == at.n; });
  }
  int64_t WithoutId() const {
    return std::count_if(input_.begin(), input_.end(), [](const Rec& rec) { return rec.id.empty(); });
  }
  // A record of the output that has an id which comes once.
  size_t Single(size_t from) const {
    for (size_t i = from;; ++i) {
      const auto same = std::count_if(input_.begin(), input_.end(),
                                      [&](const Rec& rec) { return rec.id == output_[i].id; });
      if (!output_[i].id.empty() && same == 1) return i;
    }
  }

  VerifyRules rules_;
  Log input_, output_, diverted_;
  std::vector<VerifiedInput> inputs_;
  std::vector<VerifiedOutput> outputs_;
  int64_t judged_until_ms_ = INT64_MAX;
};

TEST_F(VerifyTest, ARightOutputHasNoFinding) {
  const VerifyReport report = Run();
  ExpectRight(report);
  EXPECT_EQ(report.input_records, static_cast<int64_t>(input_.size()));
  EXPECT_EQ(report.output_records, static_cast<int64_t>(output_.size()));
  EXPECT_EQ(report.passed + report.without_id, static_cast<int64_t>(output_.size()));
  EXPECT_EQ(report.copies, static_cast<int64_t>(input_.size() - output_.size()));
  EXPECT_GT(report.copies, 100);
  EXPECT_EQ(report.without_id, WithoutId());
}

TEST_F(VerifyTest, SharesAddUpToTheWhole) {
  output_.erase(output_.begin() + static_cast<std::ptrdiff_t>(Single(1000)));
  const VerifyReport whole = Run();
  VerifyReport sum;
  for (uint64_t share = 0; share < 4; ++share) {
    const uint64_t quarter = UINT64_MAX / 4;
    sum += Run({share * (quarter + 1), share == 3 ? UINT64_MAX : share * (quarter + 1) + quarter});
  }
  EXPECT_EQ(sum.input_records, whole.input_records);
  EXPECT_EQ(sum.passed, whole.passed);
  EXPECT_EQ(sum.copies, whole.copies);
  EXPECT_EQ(sum.counts, whole.counts);
}

TEST_F(VerifyTest, ALostRecord) {
  const size_t at = Single(1000);
  const Rec lost = InputOf(output_[at]);
  output_.erase(output_.begin() + static_cast<std::ptrdiff_t>(at));
  const VerifyReport report = Run();
  ExpectOnly(report, Kind::kLost, true, lost);
  EXPECT_EQ(report.OutcomeFor(1e-9), Outcome::kBroken);
  // One in a hundred thousand or so is what the target allows.
  EXPECT_EQ(report.OutcomeFor(1e-4), Outcome::kHolds);
  EXPECT_GE(report.AllowedLosses(1e-4), 1);
  EXPECT_EQ(report.AllowedLosses(1e-9), 0);
}

TEST_F(VerifyTest, ALostRecordWithoutAnIdIsNoFalsePositive) {
  const auto at =
      std::find_if(output_.begin() + 1000, output_.end(), [](const Rec& rec) { return rec.id.empty(); });
  const Rec lost = InputOf(*at);
  output_.erase(at);
  const VerifyReport report = Run();
  ExpectOnly(report, Kind::kLost, true, lost);
  EXPECT_EQ(report.OutcomeFor(0.5), Outcome::kBroken);
}

TEST_F(VerifyTest, ARepeatedRecord) {
  Rec again = output_[Single(1000)];
  output_.push_back(again);
  Number(output_);
  const VerifyReport report = Run();
  ExpectOnly(report, Kind::kRepeated, false, output_.back());
  EXPECT_EQ(report.written_twice, 1);
}

TEST_F(VerifyTest, ACopyThatPassed) {
  const auto copy = std::find_if(input_.begin() + 1000, input_.end(), [&](const Rec& rec) {
    return std::none_of(output_.begin(), output_.end(), [&](const Rec& out) { return out.n == rec.n; });
  });
  const auto place =
      std::find_if(output_.begin(), output_.end(), [&](const Rec& rec) { return rec.n > copy->n; });
  const auto put = output_.insert(place, *copy);
  const auto at = put - output_.begin();
  for (Rec& rec : output_) rec.topic = "";
  Number(output_);
  const VerifyReport report = Run();
  // A later one of its id, if there is one, may now be too early, too.
  EXPECT_GE(report.count(Kind::kRepeated), 1);
  EXPECT_EQ(report.examples[1][0].offset, output_[static_cast<size_t>(at)].offset);
  EXPECT_EQ(report.written_twice, 0);
  EXPECT_EQ(report.count(Kind::kLost) + report.count(Kind::kForeign) + report.count(Kind::kOutOfOrder), 0);
}

TEST_F(VerifyTest, AChangedRecord) {
  for (const char* what : {"key", "value", "header", "no header", "time", "null"}) {
    const Log right = output_;
    Rec& rec = output_[Single(1200)];
    if (what == std::string("key")) rec.key = "other";
    if (what == std::string("value")) rec.value = absl::StrCat(*rec.value, " ");
    if (what == std::string("header")) rec.headers[0].second = "x";
    if (what == std::string("no header")) rec.headers.pop_back();
    if (what == std::string("time")) ++rec.time_ms;
    if (what == std::string("null")) rec.headers[1].second = "";
    SCOPED_TRACE(what);
    ExpectOnly(Run(), Kind::kChanged, false, rec);
    output_ = right;
  }
}

TEST_F(VerifyTest, AForeignRecord) {
  Rec foreign = output_[1000];
  foreign.value = R"({"id":"nobody's"})";
  output_.insert(output_.begin() + 1001, foreign);
  Number(output_);
  ExpectOnly(Run(), Kind::kForeign, false, output_[1001]);
}

TEST_F(VerifyTest, ARecordInAnotherPartitionIsForeignThereAndLostHere) {
  Rec& rec = output_[Single(1000)];
  rec.partition = 1 - rec.partition;
  Number(output_);
  const VerifyReport report = Run();
  EXPECT_EQ(report.count(Kind::kForeign), 1);
  EXPECT_EQ(report.count(Kind::kLost), 1);
}

TEST_F(VerifyTest, ARecordOutOfOrder) {
  const size_t at = Single(1000);
  Rec moved = output_[at];
  output_.erase(output_.begin() + static_cast<std::ptrdiff_t>(at));
  output_.insert(output_.begin() + static_cast<std::ptrdiff_t>(at) + 20, moved);
  Number(output_);
  ExpectOnly(Run(), Kind::kOutOfOrder, false, output_[at + 20]);
}

TEST_F(VerifyTest, TwoGroupsThatWroteToOneOutput) {
  const Log once = output_;
  Log both;
  for (size_t i = 0; i < once.size(); ++i) {
    both.push_back(once[i]);
    if (i >= 10) both.push_back(once[i - 10]);  // the other lags
  }
  output_ = both;
  Number(output_);
  const VerifyReport report = Run();
  EXPECT_GT(report.count(Kind::kRepeated), static_cast<int64_t>(once.size()) * 9 / 10);
  EXPECT_GT(report.written_twice, static_cast<int64_t>(once.size()) * 9 / 10);
  EXPECT_EQ(report.count(Kind::kLost), 0);
  EXPECT_EQ(report.count(Kind::kForeign), 0);
  EXPECT_EQ(report.examples[1].size(), 100u);
  EXPECT_TRUE(std::is_sorted(report.examples[1].begin(), report.examples[1].end(),
                             [](const auto& x, const auto& y) { return x.time_ms < y.time_ms; }));
}

TEST_F(VerifyTest, WhatRetentionHasTakenFromTheOutputIsUndecided) {
  for (VerifiedOutput& output : outputs_) output = {.read_from = 500, .judged_from = 0, .is_cut = true};
  const VerifyReport report = Run();
  // Of 1,000 that are gone; of some a copy is there.
  EXPECT_GT(report.count(Kind::kUndecided), 800);
  EXPECT_EQ(report.count(Kind::kLost), 0);
  EXPECT_EQ(report.count(Kind::kForeign), 0);
  EXPECT_EQ(report.count(Kind::kRepeated), 0);
  EXPECT_EQ(report.count(Kind::kChanged), 0);
  EXPECT_EQ(report.count(Kind::kOutOfOrder), 0);
  EXPECT_EQ(report.OutcomeFor(1e-9), Outcome::kUndecided);
}

TEST_F(VerifyTest, AnEmptiedOutputIsUndecided) {
  for (VerifiedOutput& output : outputs_) output = {.read_from = 100'000, .judged_from = 0, .is_cut = true};
  const VerifyReport report = Run();
  EXPECT_GT(report.count(Kind::kUndecided), 2500);
  EXPECT_EQ(report.count(Kind::kLost), 0);
}

TEST_F(VerifyTest, WhatRetentionHasTakenFromTheInputIsUndecided) {
  for (VerifiedInput& input : inputs_) input.read_from = input.judged_from = 700;
  const VerifyReport report = Run();
  // Outputs of which the input is gone, and copies whose first one may be gone.
  EXPECT_GT(report.count(Kind::kUndecided), 1000);
  EXPECT_EQ(report.count(Kind::kLost), 0);
  EXPECT_EQ(report.count(Kind::kForeign), 0);
  EXPECT_EQ(report.count(Kind::kChanged), 0);
  EXPECT_EQ(report.count(Kind::kRepeated), 0);
  EXPECT_EQ(report.count(Kind::kOutOfOrder), 0);
  EXPECT_EQ(report.OutcomeFor(1e-9), Outcome::kUndecided);
}

TEST_F(VerifyTest, AStretchIsJudgedByTheHistoryBeforeIt) {
  // The window before the last 300 seconds, and a little more for the clock to begin.
  for (VerifiedInput& input : inputs_) {
    input.read_from = 200;
    input.judged_from = 1400;
  }
  for (VerifiedOutput& output : outputs_) output = {.read_from = 300, .judged_from = 1300};
  ExpectRight(Run());
  const size_t at = Single(output_.size() - 100);
  const Rec lost = InputOf(output_[at]);
  output_.erase(output_.begin() + static_cast<std::ptrdiff_t>(at));
  ExpectOnly(Run(), Kind::kLost, true, lost);
}

TEST_F(VerifyTest, WhatIsNotCommittedIsNotLost) {
  const Rec from = output_[Single(2000)];
  const int64_t committed = InputOf(from).offset;
  std::erase_if(output_, [&](const Rec& rec) {
    return rec.partition == from.partition && InputOf(rec).offset >= committed;
  });
  EXPECT_GT(Run().count(Kind::kLost), 100);
  inputs_[static_cast<size_t>(from.partition)].committed = committed;
  const VerifyReport report = Run();
  ExpectRight(report);
  EXPECT_GT(report.not_yet, 100);
}

TEST_F(VerifyTest, WhatIsCommittedNowhereIsUndecided) {
  output_.clear();
  for (VerifiedInput& input : inputs_) input.committed = 0;
  EXPECT_EQ(Run().OutcomeFor(1e-9), Outcome::kUndecided);
}

TEST_F(VerifyTest, TheGroupAnswersForNothingBeforeItsBeginning) {
  for (VerifiedInput& input : inputs_) input.origin = 800;
  Log after;
  std::copy_if(input_.begin(), input_.end(), std::back_inserter(after),
               [](const Rec& rec) { return rec.offset >= 800; });
  output_ = RightOutput(after);
  const VerifyReport report = Run();
  ExpectRight(report);
  EXPECT_GT(report.before_begin, 1000);
}

// Offsets 400 to 800 of each partition are in neither life's output.
TEST_F(VerifyTest, WhatAResetOfTheOffsetSkipsIsLost) {
  Log judged;
  std::copy_if(input_.begin(), input_.end(), std::back_inserter(judged),
               [](const Rec& rec) { return rec.offset < 400 || rec.offset >= 800; });
  output_ = RightOutput(judged);
  for (VerifiedInput& input : inputs_) input.origin = 800;
  const VerifyReport report = Run();
  EXPECT_EQ(report.OutcomeFor(0.5), Outcome::kBroken);
  // Some are copies of what passed before, or after.
  EXPECT_GT(report.count(Kind::kLost), 500);
  EXPECT_EQ(report.before_begin, 0);
  EXPECT_EQ(report.lost_skipped, report.count(Kind::kLost));
  for (const VerifyExample& lost : report.examples[0]) {
    EXPECT_GE(lost.offset, 400);
    EXPECT_LT(lost.offset, 800);
  }
}

TEST_F(VerifyTest, CopiesFromBeforeAResetAreNotLost) {
  for (VerifiedInput& input : inputs_) input.origin = 800;
  const VerifyReport report = Run();
  ExpectRight(report);
  EXPECT_EQ(report.before_begin, 0);
  EXPECT_EQ(report.copies, static_cast<int64_t>(input_.size() - output_.size()));
}

TEST_F(VerifyTest, BeforeTheBeginningOfAGroupAnOutputThatIsNotReadWholeIsUndecided) {
  Log after;
  std::copy_if(input_.begin(), input_.end(), std::back_inserter(after),
               [](const Rec& rec) { return rec.offset >= 800; });
  output_ = RightOutput(after);
  for (Rec& rec : output_) rec.offset += 300;
  for (VerifiedInput& input : inputs_) input.origin = 800;
  for (VerifiedOutput& output : outputs_) output = {.read_from = 300, .judged_from = 300};
  const VerifyReport report = Run();
  EXPECT_GT(report.count(Kind::kUndecided), 1000);
  EXPECT_EQ(report.OutcomeFor(rules_.fpp), Outcome::kUndecided);
}

// The output has records of an earlier life of the group, whose input retention has deleted.
TEST_F(VerifyTest, AnEarlierLifeWhoseInputIsGoneIsUndecided) {
  for (VerifiedInput& input : inputs_) input.origin = input.read_from = input.judged_from = 700;
  Log after;
  std::copy_if(input_.begin(), input_.end(), std::back_inserter(after),
               [](const Rec& rec) { return rec.offset >= 700; });
  const Log second_life = RightOutput(after);
  std::erase_if(output_, [&](const Rec& rec) { return InputOf(rec).offset >= 700; });
  output_.insert(output_.end(), second_life.begin(), second_life.end());
  Number(output_);
  const VerifyReport report = Run();
  EXPECT_GT(report.count(Kind::kUndecided), 1000);
  EXPECT_EQ(report.count(Kind::kForeign) + report.count(Kind::kChanged) + report.count(Kind::kLost), 0);
  EXPECT_EQ(report.OutcomeFor(rules_.fpp), Outcome::kUndecided);
}

TEST_F(VerifyTest, CopiesThatPassInAnotherPartition) {
  // A copy in the other partition, of the same bytes, or of others.
  for (const bool is_equal : {true, false}) {
    SCOPED_TRACE(is_equal ? "equal" : "differing");
    Send(3000);
    for (size_t i = 1000; i < 1100; i += 2) {
      input_[i + 1] = input_[i];
      input_[i + 1].n = static_cast<int>(i) + 1;
      input_[i + 1].partition = 1;
      if (!is_equal) input_[i + 1].value = absl::StrCat(*input_[i].value, " ");
    }
    Number(input_);
    output_ = RightOutput(input_);
    const VerifyReport report = Run();
    EXPECT_GT(report.count(Kind::kInSeveralPartitions), 30);
    EXPECT_LE(report.count(Kind::kInSeveralPartitions), 50);
    EXPECT_EQ(report.count(Kind::kRepeated), 0);
    EXPECT_EQ(report.OutcomeFor(rules_.fpp), is_equal ? Outcome::kBroken : Outcome::kUndecided);
  }
}

TEST_F(VerifyTest, MostRecordsWithoutAnIdAreUndecided) {
  const auto outcome = [&](int one_in) {
    for (size_t i = 0; i < input_.size(); i += static_cast<size_t>(one_in)) {
      input_[i].id = "";
      input_[i].value = absl::StrCat("{\"n\":", i, "}");
    }
    output_ = RightOutput(input_);
    return Run().OutcomeFor(rules_.fpp);
  };
  EXPECT_EQ(outcome(20), Outcome::kHolds);
  EXPECT_EQ(outcome(7), Outcome::kUndecided);
}

// An id that different events share: all but one of them are dropped.
TEST_F(VerifyTest, DroppedRecordsThatDifferFromTheOneThatPassed) {
  const auto report = [&](int different, bool is_shared) {
    input_.clear();
    for (int i = 0; i < 2000; ++i) {
      Rec rec;
      rec.n = i;
      rec.id = i >= different ? absl::StrCat(i) : is_shared ? "unknown" : absl::StrCat("of-", i / 5);
      rec.value = absl::StrCat("{\"id\":\"", rec.id, "\",\"n\":", i, "}");
      rec.time_ms = kStart + i * 100;
      input_.push_back(rec);
    }
    Number(input_);
    output_ = RightOutput(input_);
    return Run();
  };
  const VerifyReport constant = report(2000, true);
  EXPECT_EQ(constant.differing, 1999);
  EXPECT_EQ(constant.OutcomeFor(rules_.fpp), Outcome::kUndecided);
  EXPECT_EQ(report(200, true).OutcomeFor(rules_.fpp), Outcome::kUndecided);
  // Retries that have another sending time, of which no id has many.
  EXPECT_EQ(report(50, true).OutcomeFor(rules_.fpp), Outcome::kHolds);
  const VerifyReport retries = report(1000, false);
  EXPECT_EQ(retries.differing, 800);
  EXPECT_EQ(retries.OutcomeFor(rules_.fpp), Outcome::kHolds);
  EXPECT_EQ(report(2000, false).OutcomeFor(rules_.fpp), Outcome::kUndecided);
}

TEST_F(VerifyTest, UndeliverableRecordsAreListed) {
  const size_t at = Single(1000);
  const Rec lost = InputOf(output_[at]);
  output_.erase(output_.begin() + static_cast<std::ptrdiff_t>(at));
  inputs_[static_cast<size_t>(lost.partition)].undeliverable = {lost.offset};
  const VerifyReport report = Run();
  ExpectOnly(report, Kind::kUndeliverable, true, lost);
  EXPECT_EQ(report.OutcomeFor(1e-9), Outcome::kHolds);
}

TEST_F(VerifyTest, ARecordThatIsTooLargeForTheOutputIsUndeliverable) {
  Rec& large = input_[500];
  large = input_[500];
  large.id = "large";
  large.value = absl::StrCat(R"({"id":"large","pad":")", std::string(5000, 'x'), "\"}");
  output_ = RightOutput(input_);
  std::erase_if(output_, [](const Rec& rec) { return rec.id == "large"; });
  rules_.max_output_bytes = 4000;
  ExpectOnly(Run(), Kind::kUndeliverable, true, large);
}

TEST_F(VerifyTest, WithTagEachRecordIsInTheOutput) {
  const Log passed = output_;
  output_ = input_;
  for (Rec& rec : output_) {
    const bool is_unique =
        std::any_of(passed.begin(), passed.end(), [&](const Rec& out) { return out.n == rec.n; });
    if (!is_unique) rec.headers.emplace_back("lethe.verdict", "duplicate");
  }
  EXPECT_GT(Run().count(Kind::kRepeated) + Run().count(Kind::kChanged), 100);
  rules_.copies = Fate::kTagged;
  ExpectRight(Run());
  // A copy that is not even tagged.
  const auto copy = std::find_if(output_.begin() + 1000, output_.end(),
                                 [](const Rec& rec) { return rec.headers.size() == 3; });
  const Rec lost = InputOf(*copy);
  output_.erase(copy);
  ExpectOnly(Run(), Kind::kLost, true, lost);
}

TEST_F(VerifyTest, DivertedRecordsAreAccountedFor) {
  rules_.copies = rules_.without_id = Fate::kDiverted;
  const Log passed = output_;
  std::erase_if(output_, [](const Rec& rec) { return rec.id.empty(); });
  Number(output_);
  for (const Rec& rec : input_) {
    const bool is_unique =
        std::any_of(output_.begin(), output_.end(), [&](const Rec& out) { return out.n == rec.n; });
    if (is_unique) continue;
    Rec diverted = rec;
    const std::vector<std::pair<std::string, std::optional<std::string>>> added = {
        {"lethe.verdict", rec.id.empty() ? "missing_id" : "duplicate"},
        {"lethe.reason", "so"},
        {"lethe.topic", rec.topic},
        {"lethe.partition", absl::StrCat(rec.partition)},
        {"lethe.offset", absl::StrCat(rec.offset)}};
    diverted.headers.insert(diverted.headers.end(), added.begin(), added.end());
    diverted_.push_back(diverted);
  }
  ExpectRight(Run());
  const size_t at = diverted_.size() / 2;
  const Rec lost = diverted_[at];
  diverted_.erase(diverted_.begin() + static_cast<std::ptrdiff_t>(at));
  ExpectOnly(Run(), Kind::kLost, true, lost);
}

TEST_F(VerifyTest, DroppedRecordsWithoutAnIdAreAccountedFor) {
  std::erase_if(output_, [](const Rec& rec) { return rec.id.empty(); });
  Number(output_);
  EXPECT_EQ(Run().lost_without_id, WithoutId());
  rules_.without_id = Fate::kDropped;
  ExpectRight(Run());
}

TEST_F(VerifyTest, RenewedIds) {
  // One id that comes every 100 seconds, in either partition, passes once there, and with the default again
  // and again.
  for (size_t i = 0; i < input_.size(); i += 200) {
    input_[i].id = absl::StrCat("often-", input_[i].partition);
    input_[i].value = absl::StrCat("{\"id\":\"", input_[i].id, "\"}");
  }
  rules_.renew = true;
  const Log renewed = RightOutput(input_);
  rules_.renew = false;
  output_ = RightOutput(input_);
  ASSERT_LT(renewed.size(), output_.size());
  ExpectRight(Run());
  rules_.renew = true;
  EXPECT_GT(Run().count(Kind::kRepeated), 0);
  output_ = renewed;
  ExpectRight(Run());
}

TEST_F(VerifyTest, TopicScopeWithMergedInputs) {
  rules_.topic_scope = true;
  rules_.source_header = "source";
  Send(3000, {"orders-a", "orders-b"});
  output_ = RightOutput(input_);
  for (Rec& rec : output_) rec.headers.emplace_back("source", InputOf(rec).topic);
  const VerifyReport report = Run();
  ExpectRight(report);
  EXPECT_GT(report.copies, 100);
  const size_t at = Single(1000);
  const Rec lost = InputOf(output_[at]);
  Rec again = output_[at + 1];
  output_.erase(output_.begin() + static_cast<std::ptrdiff_t>(at));
  output_.push_back(again);
  Number(output_);
  const VerifyReport damaged = Run();
  EXPECT_EQ(damaged.count(Kind::kLost), 1);
  EXPECT_EQ(damaged.examples[0][0].offset, lost.offset);
  EXPECT_EQ(damaged.count(Kind::kRepeated), 1);
}

TEST_F(VerifyTest, RecordsThatTheRoutersHaveNotHandedOnAreNotLost) {
  rules_.topic_scope = true;
  Send(3000);
  output_ = RightOutput(input_);
  judged_until_ms_ = kStart + 1'400'000;
  std::erase_if(output_,
                [&](const Rec& rec) { return rec.time_ms > judged_until_ms_ && rec.time_ms % 2000 == 0; });
  const VerifyReport report = Run();
  ExpectRight(report);
  EXPECT_GT(report.not_yet, 20);
}

// Between horizon and window either is right; beyond it, a record that does not pass is lost.
TEST_F(VerifyTest, TheEdgesOfTheHorizon) {
  const struct {
    int64_t seconds;
    bool passes;
    Kind kind;
  } cases[] = {{600, true, Kind::kRepeated},   {601, true, Kind::kUndecided}, {601, false, Kind::kUndecided},
               {750, false, Kind::kUndecided}, {751, false, Kind::kLost},     {751, true, Kind::kUndecided}};
  for (const auto& [seconds, passes, kind] : cases) {
    input_.clear();
    for (int i = 0; i < 13'000; ++i) {
      Rec rec;
      rec.n = i;
      rec.id = i == 4000 || i == 4000 + 10 * seconds ? "x" : absl::StrCat(i);
      rec.value = absl::StrCat("{\"id\":\"", rec.id, "\"}");
      rec.time_ms = kStart + i * 100;
      input_.push_back(rec);
    }
    Number(input_);
    output_ = input_;
    if (!passes) output_.erase(output_.begin() + 4000 + 10 * seconds);
    Number(output_);
    const VerifyReport report = Run();
    SCOPED_TRACE(absl::StrCat(seconds, passes ? " passes" : " does not"));
    EXPECT_EQ(report.passed_after_horizon, passes && seconds > 600 ? 1 : 0);
    if (kind == Kind::kUndecided) {
      ExpectRight(report);
    } else {
      EXPECT_EQ(report.count(kind), 1);
    }
  }
}

// An id passes; of two equal records of it the first comes within the horizon, the other after it and passes.
// What comes between them is copies.
TEST_F(VerifyTest, OfEqualRecordsTheOneThatMayPassIsTheOneThatDid) {
  input_.clear();
  for (int i = 0; i < 1300; ++i) {
    Rec rec;
    rec.n = i;
    const bool is_again = i == 950 || i == 1010;
    rec.id = i == 400 || is_again ? "x" : absl::StrCat(i > 950 && i < 1010 ? i - 100 : i);
    rec.value = absl::StrCat("{\"id\":\"", rec.id, "\",\"try\":", is_again ? 2 : 1, "}");
    rec.time_ms = kStart + (is_again ? 950 : i) * 1000;
    input_.push_back(rec);
  }
  Number(input_);
  output_ = input_;
  output_.erase(output_.begin() + 950, output_.begin() + 1010);
  Number(output_);
  ExpectRight(Run());
}

// Quiet partitions, silences, and timestamps that are wrong or missing, as the filter itself judges them; and
// what it must not do there is found.
TEST_F(VerifyTest, WhereStreamTimeStandsRecordsAreJudgedByTheirOwnTime) {
  std::mt19937_64 random(TestSeed());
  rules_.latest = absl::InfiniteFuture();
  for (int round = 0; round < 200; ++round) {
    rules_.renew = round % 5 == 0;
    const int64_t gap_ms = kHorizonMs / (int64_t{1} << (random() % 10)) * 2;
    const bool has_wrong = round % 2 == 0;
    const bool is_long = !rules_.renew && round % 3 == 0;
    input_.clear();
    int64_t now_ms = kStart;
    for (int i = 0; i < 1000; ++i) {
      now_ms += static_cast<int64_t>(random() % static_cast<uint64_t>(2 * gap_ms));
      if (random() % 200 == 0) now_ms += static_cast<int64_t>(random() % (20 * kHorizonMs));
      Rec rec;
      rec.n = i;
      rec.id = absl::StrCat(i);
      if (i > 0 && random() % 2 == 0) {
        rec.id = input_[static_cast<size_t>(i) - 1 - random() % std::min<size_t>(input_.size(), 50)].id;
      }
      rec.value = absl::StrCat("{\"id\":\"", rec.id, "\",\"n\":", i, "}");
      rec.time_ms = now_ms;
      if (has_wrong && random() % 20 == 0) rec.time_ms = -1;
      if (has_wrong && random() % 20 == 0) rec.time_ms = static_cast<int64_t>(random() % (2 * kStart));
      if (is_long && i >= 300 && i < 600) rec.time_ms = -1;
      input_.push_back(rec);
    }
    // The producer sends all of it again.
    if (is_long) input_.insert(input_.end(), input_.begin(), input_.begin() + 1000);
    Number(input_);
    const std::unique_ptr<DedupStage> stage = *DedupStage::Create(
        {.horizon = rules_.horizon, .target_fpp = 1e-12, .renew = rules_.renew}, ExactFilter::Factory());
    const std::unique_ptr<Partition> partition = *stage->Open("orders/0");
    output_.clear();
    for (const Rec& rec : input_) {
      const absl::Time time = rec.time_ms < 0 ? absl::InfinitePast() : absl::FromUnixMillis(rec.time_ms);
      if (*partition->Judge(rec.id, time) == Verdict::kUnique) output_.push_back(rec);
    }
    Number(output_);
    SCOPED_TRACE(absl::StrCat("round ", round, ", gap ", gap_ms, " ms"));
    ExpectNoFinding(Run());
    ASSERT_FALSE(HasFailure());
  }

  // An hour apart, and each a second time a minute later.
  input_.clear();
  for (int i = 0; i < 400; ++i) {
    Rec rec;
    rec.n = i;
    rec.id = absl::StrCat(i / 2);
    rec.value = absl::StrCat("{\"id\":\"", rec.id, "\"}");
    rec.time_ms = kStart + i / 2 * 3'600'000 + i % 2 * 60'000;
    input_.push_back(rec);
  }
  Number(input_);
  output_ = input_;
  Number(output_);
  rules_.renew = false;
  EXPECT_EQ(Run().count(Kind::kRepeated), 200);
}

// Ids and payloads that never change, and no time: what is quadratic would take hours.
TEST_F(VerifyTest, AConstantIsJudgedInTheTimeOfItsSize) {
  rules_.ignores_time = true;
  for (const bool has_id : {true, false}) {
    input_.clear();
    for (int i = 0; i < 100'000; ++i) {
      Rec rec;
      rec.n = i;
      rec.value = has_id ? R"({"id":"unknown"})" : "{}";
      rec.time_ms = kStart + i * 10;
      rec.id = has_id ? "unknown" : "";
      input_.push_back(rec);
    }
    Number(input_);
    output_ = RightOutput(input_);
    ExpectNoFinding(Run());
    EXPECT_EQ(output_.size(), has_id ? 2u : input_.size());
    output_ = input_;
    output_.insert(output_.end(), input_.begin(), input_.end());
    Number(output_);
    EXPECT_GT(Run().count(Kind::kRepeated), 99'000);
  }
}

}  // namespace
}  // namespace lethe
