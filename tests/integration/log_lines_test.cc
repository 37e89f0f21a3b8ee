// What `lethe run` says at the turning points of a run, and of a mistyped topic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/flow.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;

FlowOptions Options() {
  FlowOptions options;
  options.program = LETHE_PROGRAM;
  return options;
}

TEST(LogLinesTest, AMistypedInputGetsTheNearestTopicBeforeTheCommandThatCreatesIt) {
  Flow flow(Options());
  const Finished finished = flow.RunToEnd({absl::StrCat("--input=", flow.input(), "x"), "--group=mistyped"});
  EXPECT_EQ(finished.exit_code, 1);
  const size_t nearest = finished.err.find(absl::StrCat("did you mean ", flow.input(), "?"));
  const size_t create = finished.err.find("create it");
  ASSERT_NE(nearest, std::string::npos) << finished.err;
  ASSERT_NE(create, std::string::npos) << finished.err;
  EXPECT_LT(nearest, create);
}

TEST(LogLinesTest, CaughtUpSnapshotsAndTotalsAreSaid) {
  Flow flow(Options());
  flow.SendIds("a", 1, 100);
  flow.SendIds("a", 1, 10);
  const std::string folder = testing::TempDir() + "/" + flow.input();
  const auto daemon = flow.Start({"--snapshots-to=folder:" + folder, "--snapshots-every=1s"});
  EXPECT_TRUE(daemon->AwaitLog(absl::StrCat("caught up with ", flow.input())));
  // A partition is saved between two commits.
  int next = 1;
  EXPECT_TRUE(daemon->Await([&] {
    flow.SendIds("b", next, next);
    ++next;
    return absl::StrContains(daemon->Log(), "-0: snapshot written");
  }));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(daemon->AwaitLog("records: ")) << daemon->Log();
  EXPECT_THAT(daemon->Log(), HasSubstr(" 10 duplicates"));
}

TEST(LogLinesTest, PartitionsThatTheGroupTookAwayAreSaid) {
  Flow flow(Options());
  flow.SendIds("a", 1, 10);
  const auto stalled = flow.Start({"--instance=stalled"});
  ASSERT_TRUE(stalled->AwaitReady());
  ASSERT_OK(stalled->process().Signal(SIGSTOP));
  const auto other = flow.Start({"--instance=other"});
  ASSERT_TRUE(other->AwaitReady());  // it has the partition, so the first one is out
  ASSERT_OK(stalled->process().Signal(SIGCONT));
  EXPECT_TRUE(stalled->AwaitLog("lost 1 partition"));
  EXPECT_TRUE(other->Stop());
  EXPECT_TRUE(stalled->Stop());
}

}  // namespace
}  // namespace lethe::test
