// What a real Redis keeps of the batches that it is given: in any order, again, of two writers at once.
#include "connectors/redis/redis_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/redis_server.h"
#include "tests/support/reply_server.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe::redis {
namespace {

using testing::HasSubstr;
using testing::Not;

using test::RedisServer;
using test::ReplyServer;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

using Values = std::map<std::string, std::string>;
using Positions = std::vector<int64_t>;

class RedisStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = RedisServer::Start();
    ASSERT_OK(server);
    server_ = *std::move(server);
  }

  std::unique_ptr<RedisStore> Open(const std::string& input = "in") {
    return std::make_unique<RedisStore>(
        RedisStoreOptions{.address = {.user = "", .host = "127.0.0.1", .port = server_->port()},
                          .password = "",
                          .totals = "t",
                          .input = input});
  }
  Values Stored() { return server_->Hash("lethe:t"); }

  std::unique_ptr<RedisServer> server_;
};

TEST_F(RedisStoreTest, AnApplicationReadsTheSumOverPartitions) {
  const auto store = Open();
  EXPECT_EQ(store->Positions({0, 1, 2}).value(), (Positions{0, 0, 0}));
  EXPECT_EQ(
      store->Apply({{0, 0, 4, {{"a", 5}, {"b", -3}}}, {1, 0, 9, {{"a", 7}}}, {0, 4, 6, {{"a", 1}}}}).value(),
      (Positions{4, 9, 6}));
  EXPECT_EQ(server_->Command({"HGET", "lethe:t", "a"}).value(), (std::vector<std::string>{"8"}));
  EXPECT_EQ(Stored(), (Values{{"a", "8"}, {"b", "-3"}}));
  EXPECT_EQ(store->Positions({1, 0, 5}).value(), (Positions{9, 6, 0}));
  // Of another input, or of another lethe with the same one.
  EXPECT_EQ(Open("other")->Apply({{0, 0, 1, {{"a", 100}, {"z", 0}}}}).value(), Positions{1});
  EXPECT_EQ(Stored(), (Values{{"a", "108"}, {"b", "-3"}, {"z", "0"}}));
}

TEST_F(RedisStoreTest, KeysAreAnyBytes) {
  const std::string zeros("\0\xff\r\n\0", 5), long_one(100000, 'k');
  EXPECT_EQ(Open()->Apply({{0, 0, 3, {{zeros, 1}, {long_one, 2}, {"a/b:c {d}", 3}}}}).value(), Positions{3});
  EXPECT_EQ(Stored(), (Values{{zeros, "1"}, {long_one, "2"}, {"a/b:c {d}", "3"}}));
}

TEST_F(RedisStoreTest, WhatComesAgainChangesNothing) {
  const auto store = Open();
  const std::vector<StoreBatch> batches = {
      {0, 0, 4, {{"a", 5}}}, {0, 4, 6, {{"a", 1}, {"b", 2}}}, {1, 0, 2, {{"a", 10}}}, {0, 6, 9, {{"b", -2}}}};
  ASSERT_OK(store->Apply(batches));
  const Values all = {{"a", "11"}, {"b", "-2"}};
  EXPECT_EQ(Stored(), all);
  // Of the same writer, and of one that has slept.
  EXPECT_EQ(store->Apply(batches).value(), (Positions{9, 9, 2, 9}));
  EXPECT_EQ(Open()->Apply({batches[1]}).value(), Positions{9});
  EXPECT_EQ(Open()->Apply({{0, 4, 12, {{"a", 50}}}}).value(), Positions{9});
  // One that is ahead, since the store was set back, learns it, too.
  EXPECT_EQ(Open()->Apply({{1, 3, 4, {{"a", 20}}}}).value(), Positions{2});
  EXPECT_EQ(Stored(), all);
}

TEST_F(RedisStoreTest, SumsBeyond64BitsAreNamedAndComeBack) {
  const auto store = Open();
  int64_t at = 0;
  // Against 128 bits: totals of all sizes, in three partitions.
  std::mt19937_64 random(TestSeed());
  std::map<int32_t, int64_t> totals;
  for (const int64_t extreme : {kMost, kLeast, int64_t{999999999999999}, int64_t{-99999999999999},
                                int64_t{1000000000000000}, int64_t{0}}) {
    for (int i = 0; i < 12; ++i, ++at) {
      const auto partition = static_cast<int32_t>(random() % 3);
      const int64_t total = i % 4 == 3 ? static_cast<int64_t>(random()) >> (random() % 64) : extreme;
      totals[partition] = total;
      const int64_t from = store->Positions({partition})->front();
      ASSERT_EQ(store->Apply({{partition, from, from + 1, {{"k", total}}}}).value(), Positions{from + 1});
      absl::int128 sum = 0, largest = 0;
      for (const auto& [each, value] : totals) {
        sum += value;
        largest += value < 0 ? -absl::int128(value) : absl::int128(value);
      }
      std::ostringstream digits;
      digits << sum;
      const std::string stored = Stored()["k"];
      if (largest <= kMost || stored != "overflow") {
        ASSERT_EQ(stored, digits.str());
      }
      if (sum > kMost || sum < kLeast) {
        ASSERT_EQ(stored, "overflow");
      }
    }
  }
}

TEST_F(RedisStoreTest, ADeletedTotalIsTakenOut) {
  const auto store = Open();
  ASSERT_OK(store->Apply({{0, 0, 1, {{"a", 5}, {"b", 6}}}, {1, 0, 1, {{"a", 2}}}}));
  ASSERT_OK(store->Apply({{0, 1, 2, {{"a", std::nullopt}, {"b", std::nullopt}, {"c", std::nullopt}}}}));
  EXPECT_EQ(Stored(), (Values{{"a", "2"}}));
  ASSERT_OK(store->Apply({{0, 2, 3, {{"a", 1}, {"b", 1}}}}));
  EXPECT_EQ(Stored(), (Values{{"a", "3"}, {"b", "1"}}));
}

// Of totals that are deleted in part the rest cannot be added to: the store asks for all of them again.
TEST_F(RedisStoreTest, WhatSomebodyDeletesIsWrittenAgain) {
  const std::vector<StoreBatch> batches = {
      {0, 0, 2, {{"a", 100}, {"b", 1}}}, {1, 0, 1, {{"a", 100}}}, {0, 2, 3, {{"a", 102}}}};
  const Values all = {{"a", "202"}, {"b", "1"}};
  const std::vector<std::vector<std::string>> deletions = {
      {"DEL", "lethe:t"},
      {"HDEL", "lethe:t", "b"},
      {"DEL", "lethe:t:totals:in/0"},
      {"HDEL", "lethe:t:totals:in/0", "a"},
      {"DEL", "lethe:t", "lethe:t:positions"},
      {"DEL", "lethe:t:totals:in/0", "lethe:t:totals:in/1"},
  };
  const auto store = Open();
  for (const std::vector<std::string>& deletion : deletions) {
    ASSERT_EQ(store->Apply(batches).value(), (Positions{2, 1, 3}));
    ASSERT_EQ(store->Positions({0, 1}).value(), (Positions{3, 1}));
    ASSERT_OK(server_->Command(deletion));
    EXPECT_EQ(store->Positions({0, 1}).value(), (Positions{0, 0})) << deletion.back();
    EXPECT_EQ(store->Apply(batches).value(), (Positions{2, 1, 3}));
    EXPECT_EQ(Stored(), all) << deletion.back();
    ASSERT_OK(server_->Command({"FLUSHALL"}));
  }
  // Before another batch, whose position fits.
  ASSERT_OK(store->Apply(batches));
  ASSERT_OK(server_->Command({"DEL", "lethe:t"}));
  EXPECT_EQ(store->Apply({{1, 1, 2, {}}}).value(), Positions{0});
  EXPECT_EQ(store->Apply(batches).value(), (Positions{2, 1, 3}));
  EXPECT_EQ(Stored(), all);
  // Positions alone: everything is stored over what is there.
  ASSERT_OK(store->Apply(batches));
  ASSERT_OK(server_->Command({"DEL", "lethe:t:positions"}));
  EXPECT_EQ(store->Apply(batches).value(), (Positions{2, 1, 3}));
  EXPECT_EQ(Stored(), all);
}

// As in a store that an earlier version has filled, which has no numbers of keys.
TEST_F(RedisStoreTest, AMissingValueIsWrittenWithTheNextTotalOfItsKey) {
  const auto store = Open();
  ASSERT_OK(store->Apply({{0, 0, 1, {{"a", 100}}}, {1, 0, 1, {{"a", 100}}}}));
  ASSERT_OK(server_->Command({"DEL", "lethe:t", "lethe:t:keys"}));
  EXPECT_EQ(store->Apply({{0, 1, 2, {{"a", 102}}}}).value(), Positions{2});
  EXPECT_EQ(Stored(), (Values{{"a", "202"}}));
}

TEST_F(RedisStoreTest, TheResetCommandDeletesTheKeysOfThisCounterAlone) {
  const auto store = Open();
  ASSERT_OK(store->Apply({{0, 0, 1, {{"a", 1}}}, {1, 0, 1, {{"a", 5}}}}));
  ASSERT_OK(server_->Command({"SET", "lethe:t2", "another counter's"}));
  ASSERT_EQ(std::system(store->ResetCommand().c_str()), 0);
  EXPECT_EQ(server_->Command({"KEYS", "*"}).value(), (std::vector<std::string>{"lethe:t2"}));
}

// Two writers of the same partitions, each with batches of its own making, from a log that both read.
TEST_F(RedisStoreTest, TwoWritersAtOnceAreExact) {
  constexpr int32_t kPartitions = 2;
  constexpr int64_t kOffsets = 4000;
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  struct Entry {
    std::string key;
    int64_t total;
  };
  std::vector<std::vector<Entry>> log(kPartitions);
  std::map<std::string, std::map<int32_t, int64_t>> expected;
  for (int32_t partition = 0; partition < kPartitions; ++partition) {
    for (int64_t offset = 0; offset < kOffsets; ++offset) {
      const std::string key = absl::StrCat("k", random() % 20);
      const auto total = static_cast<int64_t>(random() % 1000) - 500;
      log[static_cast<size_t>(partition)].push_back({key, total});
      expected[key][partition] = total;
    }
  }
  const auto write = [&](uint64_t own_seed) {
    std::mt19937_64 own(own_seed);
    const auto store = Open();
    std::vector<int64_t> positions(kPartitions, 0);
    int64_t rejected = 0;
    while (std::any_of(positions.begin(), positions.end(), [](int64_t at) { return at < kOffsets; })) {
      std::vector<StoreBatch> batches;
      for (int32_t partition = 0; partition < kPartitions; ++partition) {
        int64_t from = positions[static_cast<size_t>(partition)];
        if (own() % 8 == 0) from = static_cast<int64_t>(own() % static_cast<uint64_t>(from + 1));  // a replay
        const int64_t to = std::min<int64_t>(from + 1 + static_cast<int64_t>(own() % 40), kOffsets);
        std::map<std::string, int64_t> last;
        for (int64_t at = from; at < to; ++at) {
          const Entry& entry = log[static_cast<size_t>(partition)][static_cast<size_t>(at)];
          last[entry.key] = entry.total;
        }
        StoreBatch batch{partition, from, to, {}};
        for (const auto& [key, total] : last) batch.totals.push_back({key, total});
        batches.push_back(std::move(batch));
      }
      const Positions now = store->Apply(batches).value();
      for (size_t i = 0; i < now.size(); ++i) {
        if (now[i] != batches[i].to) ++rejected;
        positions[i] = now[i];
      }
    }
    return rejected;
  };
  int64_t first = 0, second = 0;
  std::thread other([&] { second = write(seed + 1); });
  first = write(seed + 2);
  other.join();
  EXPECT_GT(first + second, 0) << "they never met";
  Values sums;
  for (const auto& [key, of_key] : expected) {
    int64_t sum = 0;
    for (const auto& [partition, total] : of_key) sum += total;
    sums[key] = absl::StrCat(sum);
  }
  EXPECT_EQ(Stored(), sums);
  EXPECT_EQ(Open()->Positions({0, 1}).value(), (Positions{kOffsets, kOffsets}));
}

TEST_F(RedisStoreTest, OutOfMemoryNothingOfABatchIsStored) {
  const auto store = Open();
  ASSERT_OK(store->Apply({{0, 0, 1, {{"a", 1}, {"big", kMost}}}}));
  ASSERT_OK(server_->Command({"CONFIG", "SET", "maxmemory", "1"}));
  for (const StoredTotal& total :
       {StoredTotal{"a", 2}, StoredTotal{"big", kMost - 1}, StoredTotal{"new", 1}}) {
    const absl::Status refused = store->Apply({{0, 1, 2, {total}}}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(refused.message(), HasSubstr("maxmemory"));
  }
  EXPECT_EQ(store->Positions({0}).value(), Positions{1});
  EXPECT_EQ(Stored(), (Values{{"a", "1"}, {"big", absl::StrCat(kMost)}}));
  ASSERT_OK(server_->Command({"CONFIG", "SET", "maxmemory", "0"}));
  EXPECT_EQ(store->Apply({{0, 1, 2, {{"a", 2}}}}).value(), Positions{2});
}

TEST_F(RedisStoreTest, OneThatEvictsAnyKeyIsRefused) {
  const auto set = [&](const char* name, const char* value) {
    ASSERT_OK(server_->Command({"CONFIG", "SET", name, value}));
  };
  set("maxmemory-policy", "allkeys-lru");
  EXPECT_OK(Open()->Positions({0}));  // it has no limit
  set("maxmemory", "100mb");
  const absl::Status refused = Open()->Positions({0}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("noeviction"));
  set("maxmemory-policy", "volatile-lru");
  EXPECT_OK(Open()->Positions({0}));
  set("maxmemory-policy", "noeviction");
  EXPECT_OK(Open()->Positions({0}));
}

TEST_F(RedisStoreTest, AForeignKeyIsLeftAloneAndNamed) {
  ASSERT_OK(server_->Command({"SET", "lethe:t", "mine"}));
  const absl::Status refused = Open()->Apply({{0, 0, 1, {{"a", 1}}}}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("lethe:t is a string"));
  EXPECT_EQ(server_->Command({"GET", "lethe:t"}).value(), (std::vector<std::string>{"mine"}));
  EXPECT_EQ(Open()->Positions({0}).value(), Positions{0});
}

// A value that somebody else has changed is lethe's again with the next total of its key that is no sum of
// small numbers; the totals of the partitions are what counts.
TEST_F(RedisStoreTest, AValueThatIsNoNumberIsMended) {
  const auto store = Open();
  ASSERT_OK(store->Apply({{0, 0, 1, {{"a", 1}}}, {1, 0, 1, {{"a", 5}}}}));
  ASSERT_OK(server_->Command({"HSET", "lethe:t", "a", "lots"}));
  ASSERT_OK(store->Apply({{0, 1, 2, {{"a", 2}}}}));
  EXPECT_EQ(Stored(), (Values{{"a", "7"}}));
}

TEST_F(RedisStoreTest, GoesOnAfterARestartAndWithoutItsScript) {
  const auto store = Open();
  ASSERT_OK(store->Apply({{0, 0, 1, {{"a", 1}}}}));
  ASSERT_OK(server_->Command({"SCRIPT", "FLUSH"}));
  EXPECT_TRUE(absl::IsUnavailable(store->Apply({{0, 1, 2, {{"a", 2}}}}).status()));
  EXPECT_EQ(store->Apply({{0, 1, 2, {{"a", 2}}}}).value(), Positions{2});
  server_->Kill();
  EXPECT_TRUE(absl::IsUnavailable(store->Apply({{0, 2, 3, {{"a", 3}}}}).status()));
  EXPECT_TRUE(absl::IsUnavailable(store->Positions({0}).status()));
  ASSERT_OK(server_->Restart());
  EXPECT_EQ(store->Positions({0}).value(), Positions{2});
  EXPECT_EQ(store->Apply({{0, 2, 3, {{"a", 3}}}}).value(), Positions{3});
  EXPECT_EQ(Stored(), (Values{{"a", "3"}}));
}

TEST_F(RedisStoreTest, AHangingStoreTimesOut) {
  const auto store = Open();
  ASSERT_OK(store->Positions({0}));
  ASSERT_OK(server_->process().Signal(SIGSTOP));
  const absl::Time begin = SteadyNow();
  const absl::Status status = store->Positions({0}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("no answer"));
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(10));
  ASSERT_OK(server_->process().Signal(SIGCONT));
  EXPECT_OK(store->Positions({0}));
}

TEST_F(RedisStoreTest, NamesTheAddressThatNeedsAPassword) {
  ASSERT_OK(server_->Command({"ACL", "SETUSER", "lethe", "on", ">right", "~lethe:t", "~lethe:t:*", "+select",
                              "+info", "+script|load", "+evalsha", "+type", "+hget", "+hset", "+hdel",
                              "+hkeys", "+hincrby", "+hlen", "+unlink"}));
  const auto open = [&](const std::string& user, const std::string& password, int database = 0) {
    return RedisStore({.address = {user, "127.0.0.1", server_->port(), database},
                       .password = password,
                       .totals = "t",
                       .input = "in"});
  };
  const absl::Status wrong = open("lethe", "hush").Positions({0}).status();
  EXPECT_TRUE(absl::IsPermissionDenied(wrong)) << wrong;
  EXPECT_THAT(wrong.message(), Not(HasSubstr("hush")));
  EXPECT_TRUE(absl::IsFailedPrecondition(open("", "", 99).Positions({0}).status()));
  // What the error of a missing grant asks for is enough.
  RedisStore granted = open("lethe", "right", 1);
  EXPECT_EQ(granted.Apply({{0, 0, 1, {{"a", kMost}, {"b", 1}}}, {1, 0, 1, {{"a", std::nullopt}}}}).value(),
            (Positions{1, 1}));
  EXPECT_EQ(granted.Positions({0}).value(), Positions{1});
  ASSERT_OK(server_->Command(
      {"EVAL", "redis.call('SELECT', 1); return redis.call('DEL', KEYS[1])", "1", "lethe:t"}));
  EXPECT_EQ(granted.Positions({0}).value(), Positions{0});
  ASSERT_OK(server_->Command({"ACL", "SETUSER", "lethe", "-evalsha"}));
  const absl::Status denied = granted.Apply({{0, 0, 2, {{"a", 1}}}}).status();
  EXPECT_TRUE(absl::IsPermissionDenied(denied)) << denied;
  EXPECT_THAT(denied.message(), HasSubstr("+evalsha"));
  // Of the default user.
  ASSERT_OK(server_->Command({"CONFIG", "SET", "requirepass", "right"}));
  EXPECT_TRUE(absl::IsPermissionDenied(open("", "").Positions({0}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(open("", "hush").Positions({0}).status()));
  EXPECT_OK(open("", "right").Positions({0}));
}

// Of INFO, and of two scripts that are loaded.
std::string Prepared() {
  const std::string hash = absl::StrCat("$40\r\n", std::string(40, 'a'), "\r\n");
  return absl::StrCat("$13\r\nmaxmemory:0\r\n\r\n", hash, hash);
}

RedisStoreOptions At(const ReplyServer& server) {
  return {.address = {.user = "", .host = "127.0.0.1", .port = server.port()},
          .password = "",
          .totals = "t",
          .input = "in"};
}

TEST(HostileRedisTest, RepliesThatNoRedisGivesAreErrors) {
  const std::string arrays = [] {
    std::string text;
    for (int i = 0; i < 5; ++i) text += "*2\r\n";
    return text;
  }();
  const std::vector<std::string> streams = {
      ":1\r\n",                                                   // INFO
      "$-1\r\n",                                                  // likewise
      absl::StrCat("$1\r\n \r\n", ":5\r\n"),                      // SCRIPT LOAD
      absl::StrCat("$1\r\n \r\n", "$-1\r\n"),                     // likewise
      absl::StrCat(Prepared(), "$1\r\n7\r\n"),                    // positions
      absl::StrCat(Prepared(), "*1\r\n$1\r\n7\r\n"),              // too few
      absl::StrCat(Prepared(), "*2000000000\r\n"),                // too many
      absl::StrCat(Prepared(), arrays),                           // in one another
      absl::StrCat(Prepared(), "*2\r\n:1\r\n:2\r\n"),             // numbers
      absl::StrCat(Prepared(), "*2\r\n$2\r\n-5\r\n$1\r\n0\r\n"),  // no offset
      absl::StrCat(Prepared(), "*-1\r\n"),
      "HTTP/1.1 400 Bad Request\r\n\r\n",
  };
  for (const std::string& stream : streams) {
    const ReplyServer server([&](int connection) {
      ReplyServer::Send(connection, stream);
      ReplyServer::ReadAll(connection);
    });
    const absl::Status status = RedisStore(At(server)).Positions({0, 1}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << stream << ": " << status;
  }
}

TEST(HostileRedisTest, AReplyWithoutEndIsNotKept) {
  for (const char* begin : {"$512000000\r\n", "+", "-", "*1\r\n"}) {
    size_t sent = 0;
    {
      const ReplyServer server([&](int connection) {
        const std::string more(64 << 10, 'x');
        for (bool open = ReplyServer::Send(connection, begin); open;) {
          open = ReplyServer::Send(connection, more);
          if (open) sent += more.size();
        }
      });
      EXPECT_TRUE(absl::IsFailedPrecondition(RedisStore(At(server)).Positions({0}).status())) << begin;
    }
    EXPECT_LT(sent, 64u << 20) << begin;  // what fits into the system's buffers
  }
}

TEST(HostileRedisTest, AReplyInDropsIsNotAwaitedForever) {
  const ReplyServer server([](int connection) {
    for (bool open = ReplyServer::Send(connection, "$1000000\r\n"); open;) {
      open = ReplyServer::Send(connection, "x");
      absl::SleepFor(absl::Milliseconds(20));
    }
  });
  const absl::Status status = RedisStore(At(server)).Positions({0}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(HostileRedisTest, AWaitIsInterrupted) {
  std::promise<void> connected;
  const ReplyServer server([&](int connection) {
    connected.set_value();
    ReplyServer::ReadAll(connection);
  });
  RedisStore store(At(server));
  std::thread interrupts([&] {
    connected.get_future().wait();
    store.Interrupt();
  });
  const absl::Status status = store.Positions({0}).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  interrupts.join();
}

}  // namespace
}  // namespace lethe::redis
