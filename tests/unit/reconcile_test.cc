// Two peers, each in a thread of its own, and what they find out.
#include "lethe/reconcile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/peer_pipe.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

using test::PeerPipe;

struct Outcome {
  absl::StatusOr<Difference> here = absl::UnknownError("did not run");
  absl::StatusOr<Difference> there = absl::UnknownError("did not run");
  std::vector<uint64_t> only_here, only_there;  // as they should be
  std::vector<uint64_t> keys_here;              // all, ascending
};

struct Sets {
  int here = 0;
  int there = 0;
  int both = 0;
};

std::vector<std::string> Ids(const char* side, int own, int common) {
  std::vector<std::string> ids;
  for (int i = 0; i < own; ++i) ids.push_back(absl::StrCat(side, i));
  for (int i = 0; i < common; ++i) ids.push_back(absl::StrCat("both", i));
  return ids;
}

// The first `own` of the ids are this side's only.
absl::StatusOr<Difference> RunPeer(PeerChannel& channel, bool initiates, const std::vector<std::string>& ids,
                                   ReconcileMethod method, std::vector<uint64_t>& only,
                                   std::vector<uint64_t>& all, int own) {
  auto peers = Reconciliation::Begin(channel, {initiates, "numbers", int64_t{64} << 20});
  if (!peers.ok()) return peers.status();
  for (const std::string& id : ids) all.push_back(peers->Key(id));
  only.assign(all.begin(), all.begin() + own);
  std::sort(only.begin(), only.end());
  absl::StatusOr<Difference> difference = peers->Compare(all, method);
  std::sort(all.begin(), all.end());
  return difference;
}

// `tamper` sees what the called peer writes.
Outcome Talk(const Sets& sets, ReconcileMethod method = ReconcileMethod::kAuto,
             const std::function<std::string(std::string)>& tamper = nullptr) {
  auto [here, there] = PeerPipe::Make();
  there->tamper = tamper;
  // A length that was changed has one side wait for what never comes.
  if (tamper) here->patience = there->patience = absl::Milliseconds(100);
  Outcome outcome;
  std::thread other([&, end = std::move(there)]() mutable {
    std::vector<uint64_t> all;
    outcome.there = RunPeer(*end, false, Ids("there", sets.there, sets.both), method, outcome.only_there, all,
                            sets.there);
    end.reset();
  });
  outcome.here = RunPeer(*here, true, Ids("here", sets.here, sets.both), method, outcome.only_here,
                         outcome.keys_here, sets.here);
  here.reset();
  other.join();
  return outcome;
}

void ExpectExact(const Outcome& outcome, const std::string& what) {
  ASSERT_OK(outcome.here) << what;
  ASSERT_OK(outcome.there) << what;
  EXPECT_EQ(outcome.here->only_here, outcome.only_here) << what;
  EXPECT_EQ(outcome.there->only_here, outcome.only_there) << what;
  EXPECT_EQ(outcome.here->only_there, outcome.only_there.size()) << what;
  EXPECT_EQ(outcome.there->only_there, outcome.only_here.size()) << what;
  EXPECT_EQ(outcome.here->bytes, outcome.there->bytes) << what;
}

TEST(ReconcileTest, EachSideLearnsExactlyWhatTheOtherLacks) {
  for (const ReconcileMethod method :
       {ReconcileMethod::kAuto, ReconcileMethod::kFilter, ReconcileMethod::kLookupTable}) {
    for (const Sets& sets : {Sets{0, 0, 0},
                             {1, 0, 0},
                             {0, 1, 0},
                             {0, 0, 1},
                             {0, 0, 5000},
                             {1, 0, 5000},
                             {7, 5, 30},
                             {0, 3000, 0},
                             {3000, 0, 0},
                             {300, 200, 20'000},
                             {10'000, 10'000, 10'000},
                             {20'000, 3, 1}}) {
      ExpectExact(Talk(sets, method), absl::StrCat("method ", static_cast<int>(method), ": ", sets.here,
                                                   " here, ", sets.there, " there, ", sets.both, " on both"));
    }
  }
}

TEST(ReconcileTest, RandomSets) {
  const uint64_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 40; ++i) {
    const auto draw = [&] { return static_cast<int>(random() % (uint64_t{1} << (random() % 15))); };
    const Sets sets = {draw(), draw(), draw()};
    ExpectExact(Talk(sets), absl::StrCat("seed ", seed, ": ", sets.here, " here, ", sets.there, " there, ",
                                         sets.both, " on both"));
  }
}

// A million ids a side, in bytes: sending all keys takes 8 MB one way, 16 MB both ways.
TEST(ReconcileTest, BytesFollowTheDifference) {
  const struct {
    Sets sets;
    uint64_t at_most;
  } cases[] = {{{0, 0, 1'000'000}, 100'000},
               {{500, 500, 999'500}, 200'000},
               {{250'000, 250'000, 750'000}, 16'000'000 / 3}};
  for (const auto& [sets, at_most] : cases) {
    const Outcome outcome = Talk(sets);
    ExpectExact(outcome, absl::StrCat(sets.here + sets.there, " differ"));
    EXPECT_LE(outcome.here->bytes, at_most) << sets.here + sets.there << " differ";
    std::cout << sets.here + sets.there << " of a million differ: " << outcome.here->bytes << " bytes, "
              << outcome.here->table_rounds << " tables, " << outcome.here->filter_rounds
              << " filters; with filters alone " << outcome.here->bytes_by_filters << ", with tables alone "
              << outcome.here->bytes_by_tables << "\n";
  }
}

TEST(ReconcileTest, TheMethodsCostAsComputed) {
  const Sets sets = {2000, 1000, 100'000};
  const Outcome filters = Talk(sets, ReconcileMethod::kFilter);
  const Outcome tables = Talk(sets, ReconcileMethod::kLookupTable);
  ASSERT_OK(filters.here);
  ASSERT_OK(tables.here);
  EXPECT_EQ(filters.here->table_rounds, 0);
  EXPECT_EQ(tables.here->filter_rounds, 0);
  EXPECT_NEAR(static_cast<double>(filters.here->bytes), static_cast<double>(filters.here->bytes_by_filters),
              0.25 * static_cast<double>(filters.here->bytes));
  EXPECT_NEAR(static_cast<double>(tables.here->bytes), static_cast<double>(tables.here->bytes_by_tables),
              0.35 * static_cast<double>(tables.here->bytes));
}

TEST(ReconcileTest, PeersThatCompareOtherThingsPart) {
  auto [here, there] = PeerPipe::Make();
  absl::Status other;
  std::thread peer([&, &there = there] {
    other = Reconciliation::Begin(*there, {false, "by json:/b"}).status();
  });
  const absl::Status own = Reconciliation::Begin(*here, {true, "by json:/a"}).status();
  peer.join();
  EXPECT_THAT(own, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("json:/a")));
  EXPECT_THAT(own.message(), HasSubstr("json:/b"));
  EXPECT_THAT(other, StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ReconcileTest, AShellsGreetingIsNamed) {
  auto [here, there] = PeerPipe::Make();
  ASSERT_OK(there->Write("Welcome to host b, last login yesterday\n"));
  const absl::Status status = Reconciliation::Begin(*here, {true, "x"}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Welcome to host")));
}

TEST(ReconcileTest, MessagesOfThePrograms) {
  auto [here, there] = PeerPipe::Make();
  std::thread peer([&there = there] {
    auto peers = Reconciliation::Begin(*there, {false, "x"});
    ASSERT_OK(peers);
    auto message = peers->Receive();
    ASSERT_OK(message);
    EXPECT_OK(peers->Send(*message + " to you"));
  });
  auto peers = Reconciliation::Begin(*here, {true, "x"});
  ASSERT_OK(peers);
  EXPECT_OK(peers->Send("good day"));
  EXPECT_EQ(peers->Receive().value_or("none"), "good day to you");
  peer.join();
}

// A peer that announces what it never sends costs nothing.
TEST(ReconcileTest, AMessageOverTheLimitIsRefused) {
  auto [here, there] = PeerPipe::Make();
  std::thread peer([&there = there] {
    auto peers = Reconciliation::Begin(*there, {false, "x"});
    ASSERT_OK(peers);
    EXPECT_OK(there->Write(absl::string_view("P\xff\xff\xff\xff", 5)));
  });
  auto peers = Reconciliation::Begin(*here, {true, "x", 1 << 20});
  ASSERT_OK(peers);
  EXPECT_THAT(peers->Receive().status(), StatusIs(absl::StatusCode::kResourceExhausted));
  peer.join();
}

// A peer that claims billions of keys, which are never sent, takes no memory for them.
TEST(ReconcileTest, CountsThatCannotBeAreRefused) {
  bool sums_follow = false;
  const Outcome outcome = Talk({3, 3, 1000}, ReconcileMethod::kLookupTable, [&](std::string bytes) {
    constexpr size_t kRangeBytes = 12, kCountAt = 8;
    if (sums_follow) {
      for (size_t i = 0; i + kRangeBytes <= bytes.size(); i += kRangeBytes) {
        bytes.replace(i + kCountAt, 4, "\xff\xff\xff\xff");
      }
    }
    sums_follow = bytes.size() == 5 && bytes[0] == 'S';  // a message's header comes by itself
    return bytes;
  });
  EXPECT_THAT(outcome.here.status(), StatusIs(absl::StatusCode::kResourceExhausted));
}

// The initiator copies as many records as the peer says that it has alone, so that must fit what both have.
TEST(ReconcileTest, ACountOfDifferencesMustFitTheSets) {
  bool count_follows = false;
  const Outcome outcome = Talk({3, 3, 1000}, ReconcileMethod::kLookupTable, [&](std::string bytes) {
    if (count_follows) ++bytes[0];
    count_follows = bytes.size() == 5 && bytes[0] == 'D';
    return bytes;
  });
  EXPECT_THAT(outcome.here.status(), StatusIs(absl::StatusCode::kDataLoss));
}

// The peer dies after any number of bytes, or any byte of it is another: an error or the truth, never a
// crash, and never without an end. (A lie about its own set is believed: a peer could have sent it as the
// truth.)
TEST(ReconcileTest, APeerThatDiesOrLiesEndsInAnError) {
  const Sets sets = {40, 30, 2000};
  size_t total = 0;
  ASSERT_OK(Talk(sets, ReconcileMethod::kAuto, [&](std::string bytes) {
              total += bytes.size();
              return bytes;
            }).here);
  std::mt19937_64 random(11);
  for (const ReconcileMethod method : {ReconcileMethod::kFilter, ReconcileMethod::kLookupTable}) {
    for (int i = 0; i < 300; ++i) {
      const size_t at = random() % total;
      const bool dies = i % 2 == 0;
      const char change = static_cast<char>(1 << (random() % 8));
      size_t written = 0;
      const Outcome outcome = Talk(sets, method, [&, dies, at, change](std::string bytes) {
        const size_t begin = written;
        written += bytes.size();
        if (at < begin || at >= written) return bytes;
        if (dies) return bytes.substr(0, at - begin);
        bytes[at - begin] = static_cast<char>(bytes[at - begin] ^ change);
        return bytes;
      });
      // All was sent before the place was reached, or it ends without an answer.
      EXPECT_TRUE(!dies || !outcome.here.ok() || at >= written);
      if (!outcome.here.ok()) continue;
      EXPECT_TRUE(std::includes(outcome.keys_here.begin(), outcome.keys_here.end(),
                                outcome.here->only_here.begin(), outcome.here->only_here.end()));
    }
  }
}

}  // namespace
}  // namespace lethe
