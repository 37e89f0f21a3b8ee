// `lethe run` end to end, on made-up clients that send again: each event once, whatever is killed.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/pipeline.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

absl::StatusOr<std::unique_ptr<Pipeline>> NewPipeline(const std::string& name) {
  PipelineOptions options;
  options.program = LETHE_PROGRAM;
  options.name = name;
  options.counter_key = "json:/country";
  options.counter_delta = "json:/amount";
  return Pipeline::Create(options);
}

TEST(RunTest, EachEventOnce) {
  RetryingClients clients(TestSeed());
  const auto pipeline = NewPipeline("orders");
  ASSERT_OK(pipeline);
  ASSERT_OK((*pipeline)->Send(clients.Take(50'000)));
  const absl::Status ended = (*pipeline)->RunToEnd();
  ASSERT_OK(ended);
  EXPECT_TRUE((*pipeline)->ExactlyOnce(clients.totals()));
}

TEST(RunTest, ASecondRunGoesOnWhereTheFirstEnded) {
  RetryingClients clients(TestSeed());
  const auto pipeline = NewPipeline("orders");
  ASSERT_OK(pipeline);
  for (int run = 0; run < 3; ++run) {
    // Copies of what one run has passed come in the next.
    ASSERT_OK((*pipeline)->Send(clients.Take(5'000)));
    const absl::Status ended = (*pipeline)->RunToEnd();
    ASSERT_OK(ended);
  }
  EXPECT_TRUE((*pipeline)->ExactlyOnce(clients.totals()));
}

TEST(RunTest, EachEventOnceThroughTenKills) {
  const uint64_t seed = TestSeed();
  RetryingClients clients(seed);
  std::mt19937_64 random(seed);
  const auto pipeline = NewPipeline("orders");
  ASSERT_OK(pipeline);
  const absl::Status ended = (*pipeline)->RunKilled(10, clients.Take(100'000), random);
  ASSERT_OK(ended);
  EXPECT_TRUE((*pipeline)->ExactlyOnce(clients.totals()));
}

}  // namespace
}  // namespace lethe::test
