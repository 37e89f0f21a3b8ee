#include "src/pipeline/restore/commit_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe::kafka {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr size_t kBrokerLimit = 4096;  // offset.metadata.max.bytes by default

CommitMetadata Example() {
  return {{100, 4},
          {1200, absl::FromUnixMillis(1'700'000'000'123)},
          absl::FromUnixMillis(1'700'086'400'456),
          "0123456789abcdef",
          absl::Hours(24),
          ""};
}

void ExpectSame(const CommitMetadata& a, const CommitMetadata& b) {
  EXPECT_EQ(a.origin.offset, b.origin.offset);
  EXPECT_EQ(a.origin.partitions, b.origin.partitions);
  EXPECT_EQ(a.restart.offset, b.restart.offset);
  EXPECT_EQ(a.restart.stream_time, b.restart.stream_time);
  EXPECT_EQ(a.committed_time, b.committed_time);
  EXPECT_EQ(a.id_fingerprint, b.id_fingerprint);
  EXPECT_EQ(a.horizon, b.horizon);
  EXPECT_EQ(a.snapshot, b.snapshot);
  EXPECT_EQ(a.covered_since, b.covered_since);
  EXPECT_EQ(a.growth.partitions, b.growth.partitions);
  EXPECT_EQ(a.growth.offset, b.growth.offset);
  EXPECT_EQ(a.growth.time, b.growth.time);
  EXPECT_EQ(a.output, b.output);
  EXPECT_EQ(a.scope, b.scope);
  EXPECT_EQ(a.last.offset, b.last.offset);
  EXPECT_EQ(a.last.hash, b.last.hash);
  EXPECT_EQ(a.undeliverable, b.undeliverable);
  EXPECT_EQ(a.last.time, b.last.time);
  EXPECT_EQ(a.next_record_time, b.next_record_time);
  EXPECT_EQ(a.wall_time, b.wall_time);
  EXPECT_EQ(a.topic_id, b.topic_id);
  EXPECT_EQ(a.totals, b.totals);
}

// The example with one field replaced.
std::string With(const std::string& field, const std::string& instead) {
  const std::string text = Example().ToString();
  std::string changed = absl::StrReplaceAll(text, {{field, instead}});
  EXPECT_NE(changed, text) << field;
  return changed;
}

TEST(CommitMetadataTest, IsTheTextThatIsDocumented) {
  EXPECT_EQ(Example().ToString(),
            "lethe/2 o=100 n=4 r=1200 rt=1700000000123 ct=1700086400456 id=0123456789abcdef h=86400000");
  CommitMetadata all = Example();
  all.output = "orders-unique";
  all.scope = "topic";
  all.last.offset = 1999;
  all.last.hash = 0xbeef;
  all.undeliverable = {1300, 1301, 1950};
  all.totals = {{0xabc, 7}, {0x1, 1}};
  EXPECT_EQ(all.ToString(),
            Example().ToString() + " out=orders-unique sc=topic b=1999:beef u=1950,649,1 tk=abc:7,1:1");
  EXPECT_EQ(KeysOf(all.totals, 0xabc), 7);
  EXPECT_EQ(KeysOf(all.totals, 0xabd), 0);
}

TEST(CommitMetadataTest, TheFormerFormatIsRead) {
  const auto story =
      CommitMetadata::Parse(absl::StrReplaceAll(Example().ToString(), {{"lethe/2", "lethe/1"}}));
  ASSERT_OK(story);
  ExpectSame(*story, Example());
  EXPECT_EQ(story->last.offset, -1);
}

TEST(CommitMetadataTest, ALongListKeepsTheNewestWithinTheBrokersLimit) {
  CommitMetadata story = Example();
  for (int64_t i = 0; i < 3000; ++i) story.undeliverable.push_back((int64_t{1} << 62) + 1000 * i);
  const std::string text = story.ToString();
  EXPECT_LT(text.size(), kBrokerLimit);
  const auto parsed = CommitMetadata::Parse(text);
  ASSERT_OK(parsed);
  ASSERT_GT(parsed->undeliverable.size(), 300u);
  EXPECT_TRUE(
      std::equal(parsed->undeliverable.rbegin(), parsed->undeliverable.rend(), story.undeliverable.rbegin()));
}

TEST(CommitMetadataTest, RoundTripOfRandomStories) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint64_t bound) { return static_cast<int64_t>(random() % bound); };
  const auto time = [&] {
    return below(4) == 0 ? absl::InfinitePast()
                         : absl::FromUnixMillis(below(uint64_t{1} << 62) - (int64_t{1} << 61));
  };
  for (int i = 0; i < 10'000; ++i) {
    CommitMetadata story;
    story.origin.offset = below(uint64_t{1} << 62);
    story.origin.partitions = static_cast<int32_t>(1 + below(100'000));
    story.restart.offset = story.origin.offset + below(uint64_t{1} << 62);
    story.restart.stream_time = time();
    story.committed_time = time();
    story.id_fingerprint = absl::StrCat(absl::Hex(random()));
    story.horizon = absl::Milliseconds(1 + below(uint64_t{1} << 50));
    if (below(2) == 0)
      story.snapshot = absl::StrCat(below(uint64_t{1} << 62), "-", absl::Hex(random(), absl::kZeroPad16));
    story.covered_since = time();
    if (below(2) == 0) story.output = absl::StrCat("topic-", below(1000));
    if (below(2) == 0) story.scope = below(2) == 0 ? "topic" : "partition";
    if (below(2) == 0) {
      story.last.offset = below(uint64_t{1} << 62);
      story.last.hash = random();
    }
    for (int64_t offset = story.restart.offset, count = below(40); count > 0; --count) {
      story.undeliverable.push_back(offset += 1 + below(1000));
    }
    if (below(2) == 0) {
      story.growth.partitions = static_cast<int32_t>(1 + below(100'000));
      if (below(2) == 0) story.growth = {story.growth.partitions, below(uint64_t{1} << 62), time()};
    }
    story.last.time = time();
    story.wall_time = time();
    story.next_record_time = time();
    for (int64_t counters = below(17); counters > 0; --counters) {
      story.totals.push_back({random(), 1 + below(uint64_t{1} << 62)});
    }
    story.topic_id = below(2) == 0 ? "" : "AbCd-_0123456789efghij";
    const std::string text = story.ToString();
    EXPECT_LE(text.size(), kBrokerLimit);
    const auto parsed = CommitMetadata::Parse(text);
    ASSERT_OK(parsed) << text;
    ExpectSame(*parsed, story);
    const CommitTimes times = ReadCommitTimes(text);
    EXPECT_EQ(times.committed, story.committed_time) << text;
    EXPECT_EQ(times.next_record, story.next_record_time) << text;
  }
}

TEST(CommitMetadataTest, UnknownFieldsAreLeftToLaterVersions) {
  const auto parsed = CommitMetadata::Parse(absl::StrCat(Example().ToString(), " z=7f/12"));
  ASSERT_OK(parsed);
  ExpectSame(*parsed, Example());
}

// What the version before snapshots wrote, and reads.
TEST(CommitMetadataTest, TheSnapshotStandsBehindWhatEarlierVersionsKnow) {
  CommitMetadata story = Example();
  const std::string without = story.ToString();
  story.snapshot = "1100-00000000deadbeef";
  EXPECT_EQ(story.ToString(), without + " s=1100-00000000deadbeef");
  EXPECT_EQ(CommitMetadata::Parse(without)->snapshot, "");
  EXPECT_EQ(CommitMetadata::Parse(story.ToString())->snapshot, "1100-00000000deadbeef");
}

// The same of what the filter does not know, and of growth.
TEST(CommitMetadataTest, ShortHistoryAndGrowthStandBehindThat) {
  CommitMetadata story = Example();
  const std::string without = story.ToString();
  story.snapshot = "1100-00000000deadbeef";
  story.covered_since = absl::FromUnixMillis(1'700'000'000'123);
  story.growth = {6, 1300, absl::InfinitePast()};
  EXPECT_EQ(story.ToString(), without + " s=1100-00000000deadbeef cs=1700000000123 g=6:1300:-");
  ExpectSame(*CommitMetadata::Parse(story.ToString()), story);
  story.growth.time = absl::FromUnixMillis(1'700'086'400'456);
  EXPECT_THAT(story.ToString(), EndsWith(" g=6:1300:1700086400456"));
  story.growth = {6};
  EXPECT_THAT(story.ToString(), EndsWith(" g=6"));
  ExpectSame(*CommitMetadata::Parse(without), Example());
  for (const char* damaged : {" cs=", " cs=soon", " g=", " g=0", " g=-1", " g=x", " g=6:1", " g=6:-1:-",
                              " g=6:1:", " g=6:1:2:3", " g=6:x:-"}) {
    EXPECT_TRUE(absl::IsDataLoss(CommitMetadata::Parse(without + damaged).status())) << damaged;
  }
}

TEST(CommitMetadataTest, DamagedTotalsAreFound) {
  const std::string text = Example().ToString();
  std::string many = " tk=";
  for (size_t i = 0; i < CommitMetadata::kMostCounters; ++i) absl::StrAppend(&many, i, ":1,");
  for (const std::string& damaged :
       {std::string(" tk="), std::string(" tk=a"), std::string(" tk=a:"), std::string(" tk=a:0"),
        std::string(" tk=a:-1"), std::string(" tk=a:1:2"), std::string(" tk=g:1"), std::string(" tk=a:1,"),
        many + "ff:1"}) {
    EXPECT_TRUE(absl::IsDataLoss(CommitMetadata::Parse(text + damaged).status())) << damaged;
  }
}

TEST(GrowthTest, IsRecentUntilTheHorizonHasGoneByBehindIt) {
  const absl::Time at = absl::FromUnixMillis(1'700'000'000'123);
  EXPECT_FALSE(Growth().IsRecent(at, absl::Hours(1)));
  EXPECT_FALSE(Growth{6}.IsRecent(at, absl::Hours(1)));
  Growth growth = {6, 1300, absl::InfinitePast()};
  EXPECT_TRUE(growth.IsRecent(at + absl::Hours(100), absl::Hours(1)));
  growth.Reach(1299, at);
  EXPECT_EQ(growth.time, absl::InfinitePast());
  growth.Reach(1300, at);
  growth.Reach(1400, at + absl::Minutes(1));
  EXPECT_EQ(growth.time, at);
  EXPECT_TRUE(growth.IsRecent(at + absl::Minutes(59), absl::Hours(1)));
  EXPECT_FALSE(growth.IsRecent(at + absl::Hours(1), absl::Hours(1)));
  Growth none;
  none.Reach(0, at);
  EXPECT_EQ(none.time, absl::InfinitePast());
}

TEST(CommitMetadataTest, WhatOthersCommitIsNotFound) {
  for (const char* foreign :
       {"", "{\"lag\":3}", "lethe", "Lethe/1 o=1", " lethe/1", "\xff\x00", "o=1 n=2 ct=3"}) {
    EXPECT_TRUE(absl::IsNotFound(CommitMetadata::Parse(foreign).status())) << foreign;
    EXPECT_EQ(ReadCommitTimes(foreign).committed, absl::InfinitePast()) << foreign;
  }
}

TEST(CommitMetadataTest, AnotherVersionIsRefusedWithTheRemedy) {
  for (const char* other : {"lethe/3", "lethe/3 o=1", "lethe/10 o=100 n=4 r=1200", "lethe/0", "lethe/"}) {
    const absl::Status status = CommitMetadata::Parse(other).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << other << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr("reset the group's offsets"));
  }
}

TEST(CommitMetadataTest, DamageIsFound) {
  const std::string text = Example().ToString();
  for (const std::string& damaged : {
           With(" o=100", ""),
           With(" n=4", ""),
           With(" r=1200", ""),
           With(" rt=1700000000123", ""),
           With(" ct=1700086400456", ""),
           With(" id=0123456789abcdef", ""),
           With(" h=86400000", ""),
           With("o=100", "o=-1"),
           With("o=100", "o=1e2"),
           With("o=100", "o="),
           With("o=100", "o=99999999999999999999"),
           With("n=4", "n=four"),
           With("n=4", "n=0"),
           With("n=4", "n=-4"),
           With("n=4", "n=4294967300"),
           With("r=1200", "r=99"),  // before the origin
           With("rt=1700000000123", "rt=+-"),
           With("rt=1700000000123", "rt="),
           With("ct=1700086400456", "ct=soon"),
           With("id=0123456789abcdef", "id="),
           With("h=86400000", "h=0"),
           With("h=86400000", "h=-1"),
           Example().ToString() + " g",
           Example().ToString() + " g=",
           Example().ToString() + " g=3:",
           Example().ToString() + " cs",
           Example().ToString() + " b",
           Example().ToString() + " b=",
           Example().ToString() + " b=1999",
           Example().ToString() + " b=-1:beef",
           Example().ToString() + " b=1999:xyz",
           Example().ToString() + " u",
           Example().ToString() + " u=",
           Example().ToString() + " u=5,6",
           Example().ToString() + " u=5,0",
           Example().ToString() + " u=5,-1",
           Example().ToString() + " u=,",
           Example().ToString() + " ",
           std::string("lethe/1 g"),
           std::string("lethe/1"),
           std::string("lethe/1 "),
       }) {
    EXPECT_TRUE(absl::IsDataLoss(CommitMetadata::Parse(damaged).status())) << damaged;
  }
}

// However it is cut or changed: an answer, and never a story that cannot be.
TEST(CommitMetadataTest, RandomDamageNeverGivesImpossibleMetadata) {
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 100'000; ++i) {
    std::string text = Example().ToString();
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) text.resize(random() % text.size());
    const auto parsed = CommitMetadata::Parse(text);
    if (!parsed.ok()) continue;
    EXPECT_GE(parsed->origin.offset, 0) << text;
    EXPECT_GE(parsed->restart.offset, parsed->origin.offset) << text;
    EXPECT_GT(parsed->origin.partitions, 0) << text;
    EXPECT_GT(parsed->horizon, absl::ZeroDuration()) << text;
    EXPECT_FALSE(parsed->id_fingerprint.empty()) << text;
  }
}

}  // namespace
}  // namespace lethe::kafka
