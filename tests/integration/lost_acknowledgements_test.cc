// The claim of the FBF paper's Figure 14, with a real Redis: clients that lose acknowledgements and send
// again make a counter too high by what they sent again, and through lethe it is exact. `make lab-counters`
// plots it.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/rules.h"
#include "tests/support/flow.h"
#include "tests/support/redis_server.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

constexpr int kIncrements = 1500;
constexpr double kLost = 0.06;  // of the acknowledgements

// INCRBY goes to the Redis and the same increment as an event to Kafka, each as often as the client sends.
TEST(LostAcknowledgementsTest, RedisAloneCountsTooManyAndWithLetheExactly) {
  std::mt19937_64 random(TestSeed());
  std::bernoulli_distribution lost(kLost);
  // What it has answered outlives its process, which is killed here, not the machine.
  const auto redis = RedisServer::Start({"--appendfsync", "everysec"}).value();
  Flow flow(Options(3));
  const std::string totals = UniqueName("totals");
  const Args count_likes = {absl::StrCat("--counter=name=likes,mode=total,key=json:/page,output=", totals,
                                         ",store=redis://127.0.0.1:", redis->port(), "/0")};
  int sent_again = 0;
  std::vector<Record> sent;
  for (int i = 0; i < kIncrements; ++i) {
    const std::string id = absl::StrCat("client-", i % 10, "-", i);
    Record like = WithId(id, i % 3);
    like.value = absl::StrCat(R"({"id":")", id, R"(","page":"home"})");
    --sent_again;
    do {
      ASSERT_OK(redis->Command({"INCRBY", "without", "1"}));
      sent.push_back(like);
      ++sent_again;
    } while (lost(random));
    // Of ten clients at a time.
    if (i % 10 != 9 && i != kIncrements / 2) continue;
    flow.Send(std::exchange(sent, {}));
    if (i == kIncrements / 2) {
      ASSERT_TRUE(EndsWell(flow.RunToEnd(count_likes)));
      redis->Kill();
      ASSERT_OK(redis->Restart());
    }
  }
  ASSERT_TRUE(EndsWell(flow.RunToEnd(count_likes)));

  int64_t without = 0;
  ASSERT_TRUE(absl::SimpleAtoi(redis->Command({"GET", "without"}).value().front(), &without));
  EXPECT_EQ(without, kIncrements + sent_again);
  // Five standard deviations about the expected 6.4 %.
  EXPECT_GT(without, kIncrements * 1.03);
  EXPECT_LT(without, kIncrements * 1.1);
  int64_t with_lethe = 0;
  ASSERT_TRUE(absl::SimpleAtoi(redis->Hash("lethe:" + totals)["home"], &with_lethe));
  EXPECT_EQ(with_lethe, kIncrements);
}

}  // namespace
}  // namespace lethe::test
