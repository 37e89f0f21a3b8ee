// Help, the completion for bash and the man page, judged by those who read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/cli/command_line.h"
#include "src/cli/terminal/exit_code.h"

namespace lethe {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

// What a command prints to both of its outputs, and its exit code.
std::pair<std::string, int> Shell(const std::string& command) {
  FILE* const pipe = popen(absl::StrCat("{ ", command, "\n} 2>&1").c_str(), "r");
  std::string out;
  char buffer[4096];
  for (size_t size; (size = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, size);
  return {out, WEXITSTATUS(pclose(pipe))};
}

bool Has(const std::string& program) { return Shell(absl::StrCat("command -v ", program)).second == 0; }

class ManualTest : public testing::Test {
 protected:
  void SetUp() override {
    share_ = fs::temp_directory_path() / absl::StrCat("lethe-manual-test-", getpid());
    fs::create_directories(share_ / "man");
    ASSERT_EQ(Run({"help", "completion"}), kExitOk) << err_.str();
    std::ofstream(share_ / "completion") << out_.str();
  }
  void TearDown() override { fs::remove_all(share_); }

  int Run(const std::vector<std::string>& args) {
    out_.str("");
    err_.str("");
    return RunCommandLine(args, commands_, out_, err_);
  }

  // The words that bash offers for the last one.
  std::vector<std::string> Bash(const std::vector<std::string>& words) {
    std::string list;
    for (const std::string& word : words) absl::StrAppend(&list, " '", word, "'");
    const auto [out, code] = Shell(absl::StrCat(
        "bash --norc -c 'source ", (share_ / "completion").string(),
        "; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _lethe; echo \"${COMPREPLY[@]}\"' bash lethe", list));
    EXPECT_EQ(code, 0) << out;
    return absl::StrSplit(absl::StripAsciiWhitespace(out), ' ', absl::SkipEmpty());
  }

  std::ostringstream out_, err_;
  fs::path share_;
  const Commands commands_ = {
      [](const RunConfig&) { return 1; },
      [](const FilterCommandOptions&) { return 1; },
      [](const DemoOptions&) { return 1; },
      [](const PlanCommandOptions&) { return 1; },
      [](const InspectCommandOptions&) { return 1; },
      [](const absl::StatusOr<RunConfig>&, const CheckCommandOptions&) { return 1; },
      [](const SurveyCommandOptions&) { return 1; },
      [](const VerifyCommandOptions&) { return 1; },
      [](const ReconcileCommandOptions&) { return 1; },
      [](const CountersCommandOptions&) { return 1; },
  };
};

TEST_F(ManualTest, BashCompletesCommandsFlagsAndValues) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(Bash({"su"}), (Words{"survey"}));
  EXPECT_EQ(Bash({"--v"}), (Words{"--version"}));
  EXPECT_EQ(Bash({"run", "--commit"}), (Words{"--commit-interval"}));
  EXPECT_EQ(Bash({"run", "--start", ""}), (Words{"earliest", "latest"}));
  EXPECT_EQ(Bash({"run", "--http", "o"}), (Words{"off"}));
  EXPECT_EQ(Bash({"run", "--horizon", ""}), (Words{}));
  EXPECT_EQ(Bash({"help", "exit"}), (Words{"exit-codes"}));
  EXPECT_EQ(Bash({"inspect", (share_ / "ma").string()}), (Words{(share_ / "man").string()}));
  EXPECT_EQ(Bash({"run", "--config", (share_ / "ma").string()}), (Words{(share_ / "man").string()}));
}

TEST_F(ManualTest, CompletesEachOfSeveralFiles) {
  EXPECT_EQ(Bash({"filter", "a", (share_ / "ma").string()}),
            (std::vector<std::string>{(share_ / "man").string()}));
}

TEST_F(ManualTest, ThePageIsWellFormedAndListsTheCommands) {
  ASSERT_TRUE(Has("mandoc"));
  // The page is the same at each build, so it has no date.
  const auto [warnings, code] =
      Shell("mandoc -T lint -W warning " LETHE_MAN_PAGE " | grep -v 'missing date'");
  EXPECT_EQ(warnings, "");
  std::ifstream file(LETHE_MAN_PAGE);
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(Run({"--help"}), kExitOk);
  int commands = 0;
  for (const absl::string_view line : absl::StrSplit(out_.str(), '\n')) {
    // "  name        meaning"
    if (line.size() < 15 || line[1] != ' ' || line[2] == ' ' || line[13] != ' ' || line[14] == ' ') continue;
    const absl::string_view name = absl::StripAsciiWhitespace(line.substr(0, 14));
    EXPECT_THAT(page, HasSubstr(absl::StrCat("\n.TP\n.B ", name, "\n"))) << name;
    ++commands;
  }
  EXPECT_EQ(commands, 12);
}

TEST_F(ManualTest, HelpExplainsTopicsAndCommands) {
  EXPECT_EQ(Run({"help"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("Before the first run:"));
  EXPECT_EQ(Run({"help", "exit-codes"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("2    The command line"));
  EXPECT_EQ(Run({"help", "metrics"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("\nlethe_lag_records\n"));
  EXPECT_EQ(Run({"help", "run"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("--commit-interval DURATION"));
  EXPECT_EQ(Run({"help", "rnu"}), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("did you mean run?"));
}

TEST_F(ManualTest, HelpFitsATerminal) {
  Run({"--help"});
  for (absl::string_view line : absl::StrSplit(out_.str(), '\n')) {
    const bool is_example = absl::StartsWith(line, "      ");  // to be copied, not broken
    EXPECT_TRUE(is_example || line.size() <= 80) << line;
  }
}

}  // namespace
}  // namespace lethe
