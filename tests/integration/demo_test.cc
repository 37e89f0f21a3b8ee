// `lethe demo`: what it shows is compared with the truth by the program itself; here its exit code and its
// words are held to it, on the embedded broker, on a real one, and through kills.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "connectors/http/http_client.h"
#include "tests/support/process.h"
#include "tests/support/shared_broker.h"

namespace lethe::test {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(3);

Finished Demo(std::vector<std::string> args) {
  args.insert(args.begin(), {LETHE_PROGRAM, "demo", "--seed", "4711"});
  ProcessOptions options;
  options.args = std::move(args);
  auto finished = RunToEnd(options, kPatience);
  EXPECT_TRUE(finished.ok()) << finished.status();
  return finished.ok() ? *finished : Finished{-1, "", ""};
}

void ExpectExact(const Finished& demo) {
  EXPECT_EQ(demo.exit_code, 0) << demo.out << demo.err;
  EXPECT_TRUE(absl::StrContains(demo.out, "Nothing was lost, and no duplicate passed.")) << demo.out;
}

TEST(DemoTest, IsExactOnTheEmbeddedBroker) {
  const Finished demo = Demo({"--events", "20000"});
  ExpectExact(demo);
  EXPECT_TRUE(absl::StrContains(demo.out, "at least once")) << demo.out;
  EXPECT_TRUE(absl::StrContains(demo.out, "20,000")) << demo.out;
}

TEST(DemoTest, IsExactOnARealBrokerThroughTwoKills) {
  const Finished demo = Demo({"--events", "40000", "--brokers", SharedBroker().bootstrap(), "--kill", "2"});
  ExpectExact(demo);
  EXPECT_TRUE(absl::StrContains(demo.out, "exactly once")) << demo.out;
  EXPECT_TRUE(absl::StrContains(demo.out, "killed with SIGKILL   2 times")) << demo.out;
}

TEST(DemoTest, ServesItsMetricsUntilItIsInterrupted) {
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "demo", "--events", "2000", "--serve"};
  auto demo = Process::Start(options);
  ASSERT_TRUE(demo.ok()) << demo.status();
  const std::string intro = "The status page stays at http://127.0.0.1:";
  ASSERT_TRUE(WaitUntil([&] { return absl::StrContains((*demo)->Stdout(), intro); }, kPatience))
      << (*demo)->Stdout() << (*demo)->Stderr();
  const std::string out = (*demo)->Stdout();
  const int port = std::stoi(out.substr(out.find(intro) + intro.size()));
  const auto metrics = http::HttpGet("127.0.0.1", port, "/metrics");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_TRUE(absl::StrContains(*metrics, "lethe_records_total{")) << *metrics;
  ASSERT_TRUE((*demo)->Signal(SIGINT).ok());
  const auto code = (*demo)->Wait(absl::Seconds(15));
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0) << (*demo)->Stderr();
}

}  // namespace
}  // namespace lethe::test
