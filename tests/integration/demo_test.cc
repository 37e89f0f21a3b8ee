// `lethe demo`: what it shows is compared with the truth by the program itself; here its exit code and its
// words are held to it, on the embedded broker, on a real one, and through kills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "connectors/http/http_client.h"
#include "tests/support/pages.h"
#include "tests/support/process.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Minutes(3);

Finished Demo(std::vector<std::string> args) {
  args.insert(args.begin(), {LETHE_PROGRAM, "demo", "--seed", "4711"});
  ProcessOptions options;
  options.args = std::move(args);
  auto finished = RunToEnd(options, kPatience);
  EXPECT_OK(finished);
  return finished.ok() ? *finished : Finished{-1, "", ""};
}

void ExpectExact(const Finished& demo) {
  EXPECT_EQ(demo.exit_code, 0) << demo.out << demo.err;
  EXPECT_THAT(demo.out, HasSubstr("Nothing was lost, and no duplicate passed."));
  EXPECT_THAT(demo.out, HasSubstr("lethe verify          both topics"));
}

// More events than the embedded broker keeps.
TEST(DemoTest, IsExactWithItsDefaults) { ExpectExact(Demo({})); }

TEST(DemoTest, IsExactOnTheEmbeddedBroker) {
  const Finished demo = Demo({"--events", "20000"});
  ExpectExact(demo);
  EXPECT_THAT(demo.out, HasSubstr("at least once"));
  EXPECT_THAT(demo.out, HasSubstr("20,000"));
}

// Half of the copies are written with another version of the schema than the first.
TEST(DemoTest, IsExactOnAvroInTwoVersionsOfASchema) {
  ExpectExact(Demo({"--events", "20000", "--format", "avro"}));
}

TEST(DemoTest, IsExactOnARealBrokerThroughTwoKills) {
  const Finished demo = Demo({"--events", "40000", "--brokers", SharedBroker().bootstrap(), "--kill", "2"});
  ExpectExact(demo);
  EXPECT_THAT(demo.out, HasSubstr("exactly once"));
  EXPECT_THAT(demo.out, HasSubstr("killed with SIGKILL   2 times"));
}

// The lines that `lethe demo --adapt` prints without a terminal: time, load, and of each engine N, t
// and FPP.
std::vector<std::vector<std::string>> AdaptLines(const std::string& out) {
  std::vector<std::vector<std::string>> lines;
  for (const absl::string_view line : absl::StrSplit(out, '\n')) {
    std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() == 8 && words[0].size() == 5 && words[0][2] == ':') lines.push_back(std::move(words));
  }
  return lines;
}

TEST(DemoTest, AFilterFollowsTheLoadOfADay) {
  const Finished demo = Demo({"--adapt", "--day", "10s"});
  ASSERT_EQ(demo.exit_code, 0) << demo.out << demo.err;
  struct Moment {
    double past;
    absl::Duration period;
    double fpp;
  };
  std::vector<Moment> day;  // of `published`, once it has a horizon's ids
  for (const std::vector<std::string>& words : AdaptLines(demo.out)) {
    Moment moment = {};
    ASSERT_TRUE(absl::SimpleAtod(words[2], &moment.past) && absl::ParseDuration(words[3], &moment.period) &&
                absl::SimpleAtod(words[4], &moment.fpp))
        << demo.out;
    if (words[0] > "01:30") day.push_back(moment);
    EXPECT_LE(moment.fpp, 1e-6) << demo.out;
  }
  ASSERT_GT(day.size(), 10u) << demo.out;
  const auto less = [](const Moment& a, const Moment& b) { return a.past < b.past; };
  const Moment most = *absl::c_max_element(day, less);
  EXPECT_EQ(day.front().past, 1) << demo.out;
  EXPECT_GE(most.past, 10) << demo.out;
  EXPECT_LE(day.back().past, 3) << demo.out;
  EXPECT_GE(day.front().period, 5 * most.period) << demo.out;
  EXPECT_GE(day.back().period, 5 * most.period) << demo.out;
}

// The architecture page lists the functions on a record's way. A debugger stops the daemon in each of them
// once: a function that is never called would be named as its part of the work only by mistake.
TEST(DemoTest, TheWayOfARecordIsTheOneThatRuns) {
  std::ifstream file(LETHE_SOURCE_DIR "/connectors/README.md");
  std::stringstream page;
  page << file.rdbuf();
  std::set<std::string> named;
  for (const auto& [source, function] : NamedFunctions(page.str())) named.insert(function);
  ASSERT_GT(named.size(), 12u);
  ProcessOptions options;
  // The daemon is a child of the demo, which reads and judges records of its own.
  options.args = {"gdb",
                  "-nx",
                  "-batch",
                  "-ex",
                  "set follow-fork-mode child",
                  "-ex",
                  "set breakpoint pending off",
                  "-ex",
                  "tbreak lethe::RunCommand",
                  "-ex",
                  "run"};
  for (const std::string& function : named) {
    const bool is_connector =
        absl::StartsWith(function, "Consumer::") || absl::StartsWith(function, "Output::");
    options.args.insert(options.args.end(),
                        {"-ex", absl::StrCat("tbreak lethe::", is_connector ? "kafka::" : "", function)});
  }
  options.args.insert(options.args.end(),
                      {"-ex", "python exec('while gdb.selected_inferior().pid: gdb.execute(\"continue\")')",
                       "--args", LETHE_PROGRAM, "demo", "--events", "2000", "--seed", "4711"});
  const auto finished = RunToEnd(options, kPatience);
  ASSERT_OK(finished);
  for (const std::string& function : named) {
    const bool was_called = absl::c_any_of(absl::StrSplit(finished->out, '\n'), [&](absl::string_view line) {
      return absl::StrContains(line, "hit Temporary breakpoint") &&
             absl::StrContains(line, absl::StrCat("::", function, "("));
    });
    EXPECT_TRUE(was_called) << function << " is never called\n" << finished->out << finished->err;
  }
}

TEST(DemoTest, ServesItsMetricsUntilItIsInterrupted) {
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "demo", "--events", "2000", "--serve"};
  auto demo = Process::Start(options);
  ASSERT_OK(demo);
  const std::string intro = "The status page stays at http://127.0.0.1:";
  ASSERT_TRUE(WaitUntil([&] { return absl::StrContains((*demo)->Stdout(), intro); }, kPatience))
      << (*demo)->Stdout() << (*demo)->Stderr();
  const std::string out = (*demo)->Stdout();
  const int port = std::stoi(out.substr(out.find(intro) + intro.size()));
  const auto metrics = http::HttpGet("127.0.0.1", port, "/metrics");
  ASSERT_OK(metrics);
  EXPECT_THAT(*metrics, HasSubstr("lethe_records_total{"));
  ASSERT_OK((*demo)->Signal(SIGINT));
  const auto code = (*demo)->Wait(absl::Seconds(15));
  EXPECT_THAT(code, IsOkAndHolds(0)) << (*demo)->Stderr();
}

}  // namespace
}  // namespace lethe::test
