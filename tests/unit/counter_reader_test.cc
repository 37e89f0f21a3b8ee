// The records of counters' topics, and what a program makes of them.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "lethe/counters.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using Entry = std::pair<std::string, absl::int128>;

TEST(CounterTotalTest, GoesThereAndBack) {
  for (const std::string& key : {std::string("en"), std::string("a/b/c"), std::string("\0\xff/", 3)}) {
    for (const int64_t total : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::max()}) {
      const CounterTotal written = {"likes", "my.topic-1", 17, key, total, 1842};
      const auto read = CounterTotal::Parse(written.RecordKey(), written.RecordValue());
      ASSERT_OK(read);
      EXPECT_EQ(read->counter, "likes");
      EXPECT_EQ(read->topic, "my.topic-1");
      EXPECT_EQ(read->partition, 17);
      EXPECT_EQ(read->key, key);
      EXPECT_EQ(read->total, total);
      EXPECT_EQ(read->offset, 1842);
    }
  }
  const CounterTotal total = {"likes", "t", 3, "en", -5, 9};
  EXPECT_EQ(total.RecordKey(), "likes/t/3/en");
  EXPECT_EQ(total.RecordValue(), R"({"mode":"total","total":-5,"offset":9})");
}

TEST(CounterTotalTest, MayHaveMoreInALaterVersion) {
  const auto total = CounterTotal::Parse("c/t/0/k", R"({"mode":"total","total":1,"offset":2,"more":[3]})");
  ASSERT_OK(total);
  EXPECT_EQ(total->offset, 2);
}

TEST(CounterTotalTest, RefusesMalformedOnes) {
  const std::string value = R"({"mode":"total","total":1,"offset":2})";
  for (const char* key :
       {"", "k", "c/t/k", "c/t/0/", "c/t/x/k", "c/t/-1/k", "/t/0/k", "c//0/k", "c/t/4294967296/k"}) {
    EXPECT_FALSE(CounterTotal::Parse(key, value).ok()) << key;
  }
  for (const char* bad :
       {"", "1", "{}", R"({"mode":"delta","total":1,"offset":2})", R"({"mode":"total","total":1,"offset":2)",
        R"({"mode":"total","total":1,"offset":2}x)", R"({"mode":"total","total":1.5,"offset":2})",
        R"({"mode":"total","total":9223372036854775808,"offset":2})",
        R"({"mode":"total","total":1,"offset":-2})", R"({"mode":"total","total":,"offset":2})"}) {
    EXPECT_FALSE(CounterTotal::Parse("c/t/0/k", bad).ok()) << bad;
  }
}

TEST(CounterReaderTest, AddsDeltasUp) {
  CounterReader reader;
  EXPECT_EQ(reader.Total("a"), 0);
  for (const char* delta : {"5", "-7", "0"}) ASSERT_OK(reader.Add("a", delta)) << delta;
  ASSERT_OK(reader.Add("b", "9223372036854775807"));
  ASSERT_OK(reader.Add("b", "9223372036854775807"));
  EXPECT_EQ(reader.Total("a"), -2);
  EXPECT_EQ(reader.Total("b"), absl::int128(std::numeric_limits<int64_t>::max()) * 2);
  for (const char* bad : {"", "x", "1.5", "9223372036854775808", " 1", "1 "}) {
    EXPECT_FALSE(reader.Add("a", bad).ok()) << bad;
  }
  EXPECT_FALSE(reader.Add("a", std::nullopt).ok());
  EXPECT_FALSE(reader.Add(std::nullopt, "1").ok());
  EXPECT_FALSE(reader.Add("c/t/0/a", R"({"mode":"total","total":1,"offset":2})").ok());
  EXPECT_EQ(reader.Total("a"), -2);
}

TEST(CounterReaderTest, TakesTheLastTotalOfEachShard) {
  CounterReader reader;
  const auto add = [&](int32_t partition, const std::string& key, int64_t total, int64_t offset) {
    const CounterTotal record = {"c", "t", partition, key, total, offset};
    return reader.Add(record.RecordKey(), record.RecordValue());
  };
  ASSERT_OK(add(0, "a", 5, 10));
  ASSERT_OK(add(1, "a", 7, 4));
  ASSERT_OK(add(0, "a", -2, 20));
  ASSERT_OK(add(0, "b", 1, 20));
  EXPECT_EQ(reader.Total("a"), 5);
  EXPECT_EQ(reader.Total("b"), 1);
  EXPECT_FALSE(reader.Add("a", "1").ok());
  ASSERT_OK(reader.Add("c/t/1/a", std::nullopt));
  EXPECT_EQ(reader.Total("a"), -2);
}

TEST(CounterReaderTest, TopIsByTotalAndKey) {
  CounterReader reader;
  EXPECT_TRUE(reader.Top(3).empty());
  for (const char* key : {"b", "a", "c", "d"}) ASSERT_OK(reader.Add(key, "1"));
  ASSERT_OK(reader.Add("c", "1"));
  ASSERT_OK(reader.Add("d", "-5"));
  EXPECT_EQ(reader.Top(2), (std::vector<Entry>{{"c", 2}, {"a", 1}}));
  EXPECT_EQ(reader.Top(9), (std::vector<Entry>{{"c", 2}, {"a", 1}, {"b", 1}, {"d", -4}}));
}

}  // namespace
}  // namespace lethe
