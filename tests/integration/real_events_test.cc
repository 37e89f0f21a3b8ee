// `lethe run` end to end, on a day of real Wikipedia edits that their clients have sent again now and then.
#include "tests/support/real_events.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "tests/support/pipeline.h"
#include "tests/support/process.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

absl::StatusOr<std::unique_ptr<Pipeline>> NewPipeline() {
  PipelineOptions options;
  options.program = LETHE_PROGRAM;
  options.name = "edits";
  options.counter_key = "json:/channel";
  options.counter_delta = "json:/delta";
  return Pipeline::Create(options);
}

class RealEventsTest : public testing::Test {
 protected:
  void EachEditOnce(uint64_t seed) {
    const absl::StatusOr<RealStream> stream = MakeRealStream(source_, seed, 1);
    ASSERT_OK(stream);
    EXPECT_GT(stream->records.size(), stream->unique);
    const auto pipeline = NewPipeline();
    ASSERT_OK(pipeline);
    ASSERT_OK((*pipeline)->Send(stream->records));
    const absl::Status ended = (*pipeline)->RunToEnd();
    ASSERT_OK(ended);
    EXPECT_TRUE((*pipeline)->ExactlyOnce(stream->totals));
  }

  const RealEventsFile source_ = FindRealEvents(LETHE_SOURCE_DIR);
};

TEST_F(RealEventsTest, EachEditOnce) { EachEditOnce(1); }

TEST_F(RealEventsTest, EachEditOnceWithOtherRetries) { EachEditOnce(TestSeed()); }

TEST_F(RealEventsTest, EachEditOnceThroughTenKills) {
  const uint64_t seed = TestSeed();
  const absl::StatusOr<RealStream> stream = MakeRealStream(source_, seed, 3);
  ASSERT_OK(stream);
  std::mt19937_64 random(seed);
  const auto pipeline = NewPipeline();
  ASSERT_OK(pipeline);
  const absl::Status ended = (*pipeline)->RunKilled(10, stream->records, random);
  ASSERT_OK(ended);
  EXPECT_TRUE((*pipeline)->ExactlyOnce(stream->totals));
}

}  // namespace
}  // namespace lethe::test
