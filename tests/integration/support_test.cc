// The parts of the tests that need no broker: child programs, and the oracle, which must be able to fail.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/support/oracle.h"
#include "tests/support/process.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

testing::AssertionResult Has(const std::string& text, const std::string& part) {
  if (absl::StrContains(text, part)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no \"" << part << "\" in \"" << text << "\"";
}

absl::StatusOr<Finished> Shell(const std::string& script) {
  ProcessOptions options;
  options.args = {"sh", "-c", script};
  options.env = {{"LETHE_TEST_VARIABLE", "given"}};
  return RunToEnd(options, absl::Seconds(30));
}

TEST(ProcessTest, OutputAndExitCodeAreKept) {
  const auto finished = Shell("echo \"$LETHE_TEST_VARIABLE\"; cat; echo bad >&2; exit 3");
  ASSERT_OK(finished);
  EXPECT_EQ(finished->exit_code, 3);
  EXPECT_EQ(finished->out, "given\n");
  EXPECT_EQ(finished->err, "bad\n");
}

TEST(ProcessTest, OutputGoesToFiles) {
  const std::string file = testing::TempDir() + "/lethe_process_test." + std::to_string(getpid());
  for (int i = 0; i < 2; ++i) {
    ProcessOptions options;
    options.args = {"sh", "-c", "echo out; echo err >&2"};
    options.stdout_file = options.stderr_file = file;
    ASSERT_OK(RunToEnd(options, absl::Seconds(30)));
  }
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  std::remove(file.c_str());
  EXPECT_EQ(text, "out\nerr\nout\nerr\n");
}

TEST(ProcessTest, AProgramThatDoesNotExistIsAnError) {
  ProcessOptions options;
  options.args = {"/no/such/program"};
  EXPECT_TRUE(Has(Process::Start(options).status().ToString(), "/no/such/program"));
}

TEST(ProcessTest, DeadlinesHoldAndSignalsEndIt) {
  ProcessOptions options;
  options.args = {"sleep", "1000"};
  const auto process = Process::Start(options);
  ASSERT_OK(process);
  EXPECT_TRUE(absl::IsDeadlineExceeded((*process)->Wait(absl::Milliseconds(20)).status()));
  EXPECT_TRUE((*process)->Running());
  ASSERT_OK((*process)->Signal(SIGINT));
  EXPECT_EQ((*process)->Wait(absl::Seconds(30)).value_or(-1), 128 + SIGINT);
  EXPECT_FALSE((*process)->Running());
  EXPECT_FALSE((*process)->Signal(SIGINT).ok());
}

TEST(ProcessTest, ACallFailsAsAsked) {
  ProcessOptions options;
  options.args = {"sh", "-c", "sync /proc/self/exe; true > /dev/null && echo well"};
  options.failing_call = FailingCall{SYS_fsync, EIO, 0, 0};
  auto finished = RunToEnd(options, absl::Seconds(10));
  ASSERT_OK(finished);
  EXPECT_TRUE(Has(finished->err, "Input/output error")) << finished->err;
  EXPECT_EQ(finished->out, "well\n");
  // Only where the flag is set: opening to read goes well.
  options.failing_call = FailingCall{SYS_openat, ENOSPC, O_CREAT, 2};
  finished = RunToEnd(options, absl::Seconds(10));
  ASSERT_OK(finished);
  EXPECT_TRUE(Has(finished->err, "No space left on device")) << finished->err;
  EXPECT_FALSE(Has(finished->out, "well"));
}

TEST(ProcessTest, TerminateInsists) {
  ProcessOptions options;
  options.args = {"sh", "-c", "trap '' TERM; echo ready; while :; do read x; done < /dev/zero"};
  const auto process = Process::Start(options);
  ASSERT_OK(process);
  while ((*process)->Stdout().empty() && (*process)->Running()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ((*process)->Terminate(absl::Milliseconds(50)).value_or(-1), 128 + SIGKILL);
}

TEST(ProcessTest, NothingIsLeftBehind) {
  pid_t pid = 0;
  {
    ProcessOptions options;
    options.args = {"sleep", "1000"};
    const auto process = Process::Start(options);
    ASSERT_OK(process);
    pid = (*process)->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

Record Make(int32_t partition, int64_t offset, const std::string& id, const std::string& value = "v") {
  Record record;
  record.partition = partition;
  record.offset = offset;
  record.key = id;
  record.value = value;
  return record;
}

std::string Id(const Record& record) { return *record.key; }

class OracleTest : public testing::Test {
 protected:
  std::string Verdict(const std::vector<Record>& output) const {
    const testing::AssertionResult result = Deduplicated(input_, output, Id);
    return result ? "" : result.message();
  }

  // b is in both partitions, a twice in the first.
  const std::vector<Record> input_ = {Make(0, 0, "a"), Make(0, 1, "b"), Make(0, 2, "a"),
                                      Make(0, 3, "c"), Make(1, 0, "b"), Make(1, 1, "d")};
  const std::vector<Record> right_ = {Make(0, 10, "a"), Make(0, 12, "b"), Make(0, 13, "c"), Make(1, 0, "b"),
                                      Make(1, 1, "d")};
};

TEST_F(OracleTest, AcceptsTheFirstOfEachId) {
  EXPECT_EQ(Verdict(right_), "");
  EXPECT_EQ(Verdict(FirstOfEachId(input_, Id)), "");
}

TEST_F(OracleTest, FindsEachFault) {
  std::vector<Record> output = right_;
  output.erase(output.begin() + 1);
  EXPECT_TRUE(Has(Verdict(output), "1 ids are missing from the output, for example:\n    id \"b\" at 0/1"));

  output = right_;
  output.push_back(Make(0, 14, "a"));
  EXPECT_TRUE(Has(Verdict(output), "1 records of the output repeat an id"));

  output = right_;
  output.push_back(Make(1, 14, "a"));
  EXPECT_TRUE(Has(Verdict(output), "an id that the partition's input has not"));
  output.back().partition = 7;
  EXPECT_TRUE(Has(Verdict(output), "an id that the partition's input has not"));

  output = right_;
  std::swap(output[0].key, output[1].key);
  EXPECT_TRUE(Has(Verdict(output), "come after one that follows them in the input"));

  output = right_;
  output[0].value = std::nullopt;
  EXPECT_TRUE(Has(Verdict(output), "differ from their original, for example:\n    id \"a\" at 0/10"));
  output = right_;
  output[0].timestamp_ms = 5;
  EXPECT_TRUE(Has(Verdict(output), "timestamp (0 -> 5)"));
}

TEST(TotalsTest, ComparesKeyByKey) {
  EXPECT_TRUE(SameTotals({{"a", 1}, {"zero", 0}}, {{"a", 1}}));
  EXPECT_FALSE(SameTotals({{"a", 1}}, {}));
  EXPECT_TRUE(Has(SameTotals({{"a", 1}}, {{"a", -2}, {"b", 1}}).message(), "\"a\" is -2, not 1"));
}

}  // namespace
}  // namespace lethe::test
