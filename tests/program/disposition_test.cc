#include "src/pipeline/output/disposition.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

using State = RecordFields::State;

// By the configuration: what each policy may be.
const std::vector<Action> kOnDuplicate = {Action::kDrop, Action::kTag, Action::kDivert};
const std::vector<Action> kOnNoId = {Action::kPass, Action::kDrop, Action::kDivert, Action::kFail};
const std::vector<Action> kOnSuspiciousId = {Action::kDrop, Action::kPass, Action::kDivert, Action::kFail};
const std::vector<Action> kOnUndeliverable = {Action::kDrop, Action::kDivert, Action::kFail};

struct Expected {
  Action action;
  std::string kind;
  int64_t RecordCounts::*count;
};

// The rules once more, as a table: the first line that fits counts.
Expected Rule(const RecordFacts& record, const Policies& policies) {
  const struct {
    bool fits;
    Expected expected;
  } table[] = {
      {record.is_undeliverable && record.is_divert_refused && policies.on_undeliverable == Action::kDivert,
       {Action::kDrop, "undeliverable", &RecordCounts::undeliverable}},
      {record.is_undeliverable, {policies.on_undeliverable, "undeliverable", &RecordCounts::undeliverable}},
      {record.id_state == State::kMissing, {policies.on_missing_id, "missing_id", &RecordCounts::missing_id}},
      {record.id_state == State::kMalformed, {policies.on_malformed, "malformed", &RecordCounts::malformed}},
      {record.has_suspicious_id && policies.on_suspicious_id != Action::kDrop,
       {policies.on_suspicious_id, "suspicious_id", &RecordCounts::duplicate}},
      {record.verdict == Verdict::kDuplicate, {policies.on_duplicate, "duplicate", &RecordCounts::duplicate}},
      {true, {Action::kPass, "unique", &RecordCounts::unique}},
  };
  for (const auto& line : table) {
    if (line.fits) return line.expected;
  }
  return {};
}

std::vector<Policies> AllPolicies() {
  std::vector<Policies> all;
  for (const Action duplicate : kOnDuplicate) {
    for (const Action missing : kOnNoId) {
      for (const Action malformed : kOnNoId) {
        for (const Action undeliverable : kOnUndeliverable) {
          for (const Action suspicious : kOnSuspiciousId) {
            all.push_back({duplicate, missing, malformed, undeliverable});
            all.back().on_suspicious_id = suspicious;
          }
        }
      }
    }
  }
  return all;
}

std::vector<RecordFacts> AllRecords() {
  std::vector<RecordFacts> all;
  for (const State id : {State::kPresent, State::kMissing, State::kMalformed}) {
    for (const Verdict verdict : {Verdict::kUnique, Verdict::kDuplicate}) {
      for (int bits = 0; bits < 8; ++bits) {
        const bool is_suspicious = (bits & 4) != 0 && verdict == Verdict::kDuplicate;
        all.push_back({id, verdict, (bits & 1) != 0, (bits & 2) != 0, is_suspicious});
      }
    }
  }
  return all;
}

TEST(Disposition, EveryRecordUnderEveryPolicy) {
  int combinations = 0;
  for (const Policies& policies : AllPolicies()) {
    for (const RecordFacts& record : AllRecords()) {
      ++combinations;
      const Disposition found = Dispose(record, policies);
      const Expected expected = Rule(record, policies);
      ASSERT_EQ(found.action, expected.action);
      ASSERT_EQ(found.kind, expected.kind);
      // One count of the first five, and one of the last four unless the partition stops.
      RecordCounts counts;
      ++(counts.*found.kind_count);
      ASSERT_EQ(counts.*expected.count, 1);
      ASSERT_EQ(
          counts.unique + counts.duplicate + counts.missing_id + counts.malformed + counts.undeliverable, 1);
      ASSERT_EQ(found.action_count == nullptr, found.action == Action::kFail);
      if (found.action_count != nullptr) ++(counts.*found.action_count);
      ASSERT_EQ(counts.passed, found.action == Action::kPass ? 1 : 0);
      ASSERT_EQ(counts.tagged, found.action == Action::kTag ? 1 : 0);
      ASSERT_EQ(counts.diverted, found.action == Action::kDivert ? 1 : 0);
      ASSERT_EQ(counts.dropped, found.action == Action::kDrop ? 1 : 0);
      ASSERT_EQ(found.is_written(), counts.passed + counts.tagged == 1);
      // A policy is named wherever one was asked, and what is diverted has a reason here or in its reader.
      ASSERT_EQ(found.policy, counts.unique == 1 ? "" : absl::StrCat("on_", found.kind));
      ASSERT_EQ(found.reason.empty(), counts.duplicate == 0);
    }
  }
  EXPECT_EQ(combinations, 3 * 4 * 4 * 3 * 4 * 48);
}

TEST(Disposition, AUniqueEventPassesUnderEveryPolicy) {
  for (const Policies& policies : AllPolicies()) {
    const Disposition found = Dispose({}, policies);
    ASSERT_EQ(found.action, Action::kPass);
  }
}

TEST(Disposition, WhatCannotBeCountedIsCopiedWhereACopyIsTaken) {
  EXPECT_EQ(DisposeUncountable(false, {}), Action::kPass);
  EXPECT_EQ(DisposeUncountable(false, {.on_uncountable = Action::kDivert}), Action::kDivert);
  EXPECT_EQ(DisposeUncountable(true, {.on_uncountable = Action::kDivert}), Action::kPass);
}

}  // namespace
}  // namespace lethe
