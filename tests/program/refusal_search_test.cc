#include "src/pipeline/output/refusal_search.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace lethe::kafka {
namespace {

constexpr int64_t kBatch = 1'000'000;
constexpr int64_t kHourMs = 3'600'000;
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);
const absl::Time kSteady = absl::UnixEpoch() + absl::Hours(1);
using Indices = std::vector<size_t>;

int64_t At(absl::Duration from_now) { return absl::ToUnixMillis(kNow + from_now); }

RefusedRecord Small(int64_t timestamp_ms = At(absl::ZeroDuration()), bool is_invalid = true) {
  return {.bytes = 100,
          .timestamp_ms = timestamp_ms,
          .has_key = true,
          .is_invalid = is_invalid,
          .diverted = false};
}
RefusedRecord Large() {
  return {.bytes = kBatch, .timestamp_ms = 0, .has_key = true, .is_invalid = false, .diverted = false};
}

Indices Blame(RefusalSearch& search, const std::vector<RefusedRecord>& refused, bool named) {
  return search.ToBlame(refused, kBatch, named, kNow, kSteady);
}

RefusalSearch WithinAnHour() {
  RefusalSearch search(RecordRules({.before_max_ms = kHourMs, .after_max_ms = kHourMs, .needs_key = false}));
  return search;
}

TEST(RecordRulesTest, TimestampsOutOfBoundsAreRefused) {
  const RecordRules rules{.before_max_ms = kHourMs, .after_max_ms = 2 * kHourMs, .needs_key = false};
  const auto why = [&](absl::Duration from_now) { return rules.WhyRefused(At(from_now), true, kNow); };
  EXPECT_EQ(why(absl::ZeroDuration()), "");
  EXPECT_EQ(why(-absl::Minutes(59)), "");
  EXPECT_EQ(why(-absl::Minutes(60.5)), "") << "the clocks may disagree";
  EXPECT_NE(why(-absl::Minutes(62)), "");
  EXPECT_EQ(why(absl::Minutes(119)), "");
  EXPECT_NE(why(absl::Minutes(122)), "");
  EXPECT_NE(rules.WhyRefused(1'700'000'000'000'000, true, kNow), "") << "microseconds";
  EXPECT_EQ(rules.WhyRefused(0, true, kNow), "") << "becomes the present time";
  EXPECT_EQ(rules.WhyRefused(-1, true, kNow), "");
  EXPECT_EQ(RecordRules().WhyRefused(1, true, kNow), "") << "without bounds";
}

TEST(RecordRulesTest, ACompactedTopicRefusesRecordsWithoutAKey) {
  const RecordRules rules{.before_max_ms = INT64_MAX, .after_max_ms = INT64_MAX, .needs_key = true};
  EXPECT_NE(rules.WhyRefused(0, false, kNow), "");
  EXPECT_EQ(rules.WhyRefused(0, true, kNow), "");
}

// What no codec makes small enough is not sent; what compresses well is, and what is small is not looked at.
TEST(RecordRulesTest, ValuesThatStayTooLargeAreRefused) {
  const RecordRules rules{.max_batch_bytes = 10'000};
  CompressedSize compressed;
  std::mt19937_64 random(1);
  std::string noise(20'000, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  EXPECT_NE(rules.WhyTooLarge(noise, compressed), "");
  EXPECT_EQ(rules.WhyTooLarge(std::string(1'000'000, 'x'), compressed), "");
  EXPECT_EQ(rules.WhyTooLarge(noise.substr(0, 10'000), compressed), "");
  EXPECT_EQ(rules.WhyTooLarge(noise.substr(0, 10'500), compressed), "") << "the broker is asked";
  EXPECT_EQ(RecordRules().WhyTooLarge(noise, compressed), "") << "without a bound";
}

TEST(RefusalSearchTest, SizesAreForeseenForAWhileAfterOneThatWasRefused) {
  RefusalSearch search(RecordRules{.max_batch_bytes = kBatch});
  EXPECT_FALSE(search.sizes_trusted(kSteady));
  EXPECT_EQ(Blame(search, {Large()}, false), Indices{0});
  EXPECT_TRUE(search.sizes_trusted(kSteady));
  EXPECT_FALSE(search.sizes_trusted(kSteady + RefusalSearch::kTrust));
}

TEST(RefusalSearchTest, TheSettingsAreAskedForOnceForEachKindOfRefusal) {
  RefusalSearch search = WithinAnHour();
  const RefusedRecord old = Small(At(-absl::Hours(2)));
  EXPECT_FALSE(search.NeedsRules({}, kSteady));
  EXPECT_TRUE(search.NeedsRules({Large()}, kSteady));
  EXPECT_TRUE(search.NeedsRules({old}, kSteady));
  Blame(search, {old}, false);
  EXPECT_FALSE(search.NeedsRules({old}, kSteady));
  EXPECT_TRUE(search.NeedsRules({old, Large()}, kSteady)) << "a limit was not asked for yet";
  Blame(search, {Large()}, false);
  EXPECT_FALSE(search.NeedsRules({old, Large()}, kSteady));
  EXPECT_TRUE(search.NeedsRules({Large()}, kSteady + RefusalSearch::kTrust));
}

TEST(RefusalSearchTest, ARecordThatWasAloneIsToBlame) {
  RefusalSearch search((RecordRules()));
  EXPECT_EQ(Blame(search, {Small()}, false), (Indices{0}));
  EXPECT_EQ(Blame(search, {Small(), Small()}, false), Indices{});
  EXPECT_EQ(Blame(search, {Large(), Small(0, false), Large(), Small(0, false)}, false), (Indices{0, 2}));
}

TEST(RefusalSearchTest, RecordsThatTheBrokerNamesAreToBlame) {
  RefusalSearch search((RecordRules()));
  EXPECT_EQ(Blame(search, {Small(), Small(), Small(0, false)}, true), (Indices{0, 1}));
  EXPECT_FALSE(search.trusted(kSteady));
}

TEST(RefusalSearchTest, AllThatTheSettingsForbidIsFoundAtOnce) {
  RefusalSearch search = WithinAnHour();
  const int64_t old = At(-absl::Hours(2));
  EXPECT_EQ(Blame(search, {Small(), Small(old), Small(), Small(At(absl::Hours(2)))}, false), (Indices{1, 3}));
  RefusedRecord diverted = Small(old);
  diverted.diverted = true;
  EXPECT_EQ(Blame(search, {Small(), diverted}, false), Indices{}) << "another topic's rules";
  EXPECT_EQ(Blame(search, {Small(), Small(old, /*is_invalid=*/false)}, false), Indices{})
      << "it was refused for a size";
}

TEST(RefusalSearchTest, TheSettingsAreTrustedForAWhileOnceTheBrokerHasActedByThem) {
  RefusalSearch search = WithinAnHour();
  const int64_t old = At(-absl::Hours(2));
  EXPECT_FALSE(search.trusted(kSteady));
  Blame(search, {Small(), Small()}, false);
  EXPECT_FALSE(search.trusted(kSteady)) << "it refused them for another reason";
  Blame(search, {Small(), Small(old)}, false);
  EXPECT_TRUE(search.trusted(kSteady + RefusalSearch::kTrust - absl::Seconds(1)));
  EXPECT_FALSE(search.trusted(kSteady + RefusalSearch::kTrust)) << "the broker is to say so again";
  EXPECT_NE(search.Foresee(old, true, kNow), "");
  EXPECT_EQ(search.Foresee(At(absl::ZeroDuration()), true, kNow), "");
  search.SetRules(RecordRules());
  EXPECT_EQ(search.Foresee(old, true, kNow), "");
}

}  // namespace
}  // namespace lethe::kafka
