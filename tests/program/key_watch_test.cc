// What is said of keys that differ between copies, and of schemas that differ between records of a key; and
// that nothing is said of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/pipeline/output/warnings.h"
#include "src/pipeline/report/watches.h"
#include "tests/support/log_of.h"

namespace lethe::kafka {
namespace {

using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class KeyWatchTest : public testing::Test {
 protected:
  // As the lane does. The first of an id is unique, and the rest are duplicates.
  void See(const std::string& id, Verdict verdict, std::optional<absl::string_view> key,
           int32_t partition = 0) {
    const IdHash hash = HashId(id, {.low = 7});
    if (KeyWatch::IsSampled(hash)) watch_.See(partition, hash, verdict, key);
  }
  // The number-th id that is sampled.
  const std::string& Sampled(size_t number) {
    for (; sampled_.size() <= number; ++tried_) {
      std::string id = absl::StrCat("id", tried_);
      if (KeyWatch::IsSampled(HashId(id, {.low = 7}))) sampled_.push_back(std::move(id));
    }
    return sampled_[number];
  }
  void SeeCopies(int count, const std::string& key_of_copy) {
    for (int i = 0; i < count; ++i) {
      See("x", Verdict::kUnique, "key");
      See(Sampled(0), Verdict::kUnique, "key");
      See(Sampled(0), Verdict::kDuplicate, key_of_copy);
    }
  }

  KeyWatch watch_;
  std::vector<std::string> sampled_;
  int tried_ = 0;
};

TEST_F(KeyWatchTest, CopiesWithTheSameKeyAreFine) {
  SeeCopies(5000, "key");
  EXPECT_FALSE(watch_.Take(kNow));
}

TEST_F(KeyWatchTest, TenThatDifferAreEnoughAndAreSaidOnceAnHour) {
  SeeCopies(90, "key");
  SeeCopies(9, "another");
  EXPECT_FALSE(watch_.Take(kNow));
  SeeCopies(1, "another");
  const auto found = watch_.Take(kNow);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->differing, 10);
  EXPECT_EQ(found->compared, 100);
  SeeCopies(10, "another");
  EXPECT_FALSE(watch_.Take(kNow + absl::Minutes(59)));
  EXPECT_TRUE(watch_.Take(kNow + absl::Hours(1)));
  EXPECT_FALSE(watch_.Take(kNow + absl::Hours(3)));
}

// Fewer than one in a hundred are somebody's whim.
TEST_F(KeyWatchTest, AFewInAThousandAreNotEnough) {
  for (int round = 0; round < 10; ++round) {
    SeeCopies(991, "key");
    SeeCopies(9, "another");
  }
  EXPECT_FALSE(watch_.Take(kNow));
}

TEST_F(KeyWatchTest, NoKeyIsAnotherThanAnEmptyOne) {
  const std::string id = Sampled(3);
  See(id, Verdict::kUnique, std::nullopt);
  for (int i = 0; i < 10; ++i) See(id, Verdict::kDuplicate, std::nullopt);
  EXPECT_FALSE(watch_.Take(kNow));
  for (int i = 0; i < 10; ++i) See(id, Verdict::kDuplicate, "");
  EXPECT_TRUE(watch_.Take(kNow));
}

// A duplicate whose first was not seen (before a restart, say) or is another's is compared with nothing.
TEST_F(KeyWatchTest, OnlyCopiesOfTheSameIdInTheSamePartitionAreCompared) {
  for (size_t i = 0; i < 100; ++i) {
    See(Sampled(i), Verdict::kDuplicate, "another");
    See(Sampled(i), Verdict::kUnique, "key", 1);
    See(Sampled(i), Verdict::kDuplicate, "another", 2);
    See(Sampled(i), Verdict::kUnique, "another", 2);
    See(Sampled(i), Verdict::kDuplicate, "another", 2);
  }
  EXPECT_FALSE(watch_.Take(kNow));
}

TEST_F(KeyWatchTest, OneIdInSixtyFourIsSampled) {
  int sampled = 0;
  for (int i = 0; i < 64'000; ++i)
    sampled += KeyWatch::IsSampled(HashId(absl::StrCat(i), {.low = 1})) ? 1 : 0;
  EXPECT_NEAR(sampled, 1000, 200);  // six standard deviations
}

TEST(FrameWatchTest, ASchemaThatVariesWithinAKeyIsSaidOnceAnHour) {
  FrameWatch watch;
  for (int i = 0; i < 1000; ++i) watch.See(absl::StrCat("k", i), i < 500 ? 1 : 2);
  for (int i = 0; i < 1000; ++i) watch.See(absl::StrCat("k", i), i < 500 ? 1 : 2);
  EXPECT_FALSE(watch.Take(kNow));
  watch.See("k7", 3);
  watch.See("k7", 3);
  const auto found = watch.Take(kNow);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->differing, 1);
  EXPECT_EQ(found->before, 1);
  EXPECT_EQ(found->schema, 3);
  EXPECT_FALSE(watch.Take(kNow + absl::Hours(2)));
  watch.See("k7", 1);
  watch.See("k7", 3);
  EXPECT_EQ(watch.Take(kNow + absl::Hours(1))->differing, 2);
  watch.See("k7", 1);
  EXPECT_FALSE(watch.Take(kNow + absl::Minutes(119)));
}

// What the log says of records (key, value), with this id.
std::string Said(const std::string& id, const std::vector<std::pair<std::string, std::string>>& records) {
  DaemonOptions options;
  options.record.id = *IdSpec::Parse(id);
  Flow flow(options, nullptr);
  flow.topics.partitions = 1;
  const StopFlag stop;
  const WorkerState state(0, stop);
  Warnings warnings(flow, state);
  return LogOf(spdlog::level::info, [&] {
    for (const auto& record : records) {
      warnings.SeeEvent(0, HashId(record.first, {.low = 7}), Verdict::kUnique,
                        {.key = record.first, .value = record.second});
    }
    warnings.OfKeys({});
  });
}

TEST(FrameWatchTest, TheFieldToUseIsNamedIfTheIdHasTheFrameInIt) {
  const auto framed = [](int schema, const std::string& text) {
    return std::string("\0\0\0\0", 4) + static_cast<char>(schema) + text;
  };
  const std::string of_keys = Said("key", {{framed(1, "order"), "x"}, {framed(2, "order"), "x"}});
  EXPECT_THAT(of_keys, HasSubstr("1 and 2"));
  EXPECT_THAT(of_keys, HasSubstr("key.avro:/"));
  const std::string of_values =
      Said("value", {{framed(1, "order"), framed(3, "x")}, {framed(2, "order"), framed(4, "x")}});
  EXPECT_THAT(of_values, HasSubstr("3 and 4"));
  EXPECT_THAT(of_values, HasSubstr(" avro:/"));
  EXPECT_EQ(Said("value", {{"a", framed(3, "x")}, {"b", framed(4, "x")}, {"a", framed(3, "x")}}), "");
  EXPECT_EQ(Said("header:id", {{"a", framed(3, "x")}, {"a", framed(4, "x")}}), "");
  EXPECT_EQ(Said("value", {{"a", "plain"}, {"a", "other"}}), "");
}

}  // namespace
}  // namespace lethe::kafka
