// What the program writes of itself, judged by those who read it: man, and the shells.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/cli/command_line.h"
#include "src/cli/terminal/exit_code.h"

namespace lethe {
namespace {

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
    ASSERT_EQ(Run({"manual", share_.string()}), kExitOk) << err_.str();
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
        "bash --norc -c 'source ", (share_ / "bash-completion/completions/lethe").string(),
        "; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _lethe; echo \"${COMPREPLY[@]}\"' bash lethe", list));
    EXPECT_EQ(code, 0) << out;
    return absl::StrSplit(absl::StripAsciiWhitespace(out), ' ', absl::SkipEmpty());
  }

  std::ostringstream out_, err_;
  fs::path share_;
  const Commands commands_ = {
      [](const RunConfig&, const ReloadConfig&) { return 1; },
      [](const FilterCommandOptions&) { return 1; },
      [](const DemoOptions&) { return 1; },
      [](const PlanCommandOptions&) { return 1; },
      [](const InspectCommandOptions&) { return 1; },
      [](const TopCommandOptions&) { return 1; },
      [](const absl::StatusOr<RunConfig>&, const CheckCommandOptions&) { return 1; },
      [](const SurveyCommandOptions&) { return 1; },
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
  EXPECT_EQ(Bash({"completion", "z"}), (Words{"zsh"}));
  EXPECT_EQ(Bash({"help", "exit"}), (Words{"exit-codes"}));
  EXPECT_EQ(Bash({"inspect", (share_ / "ma").string()}), (Words{(share_ / "man").string()}));
  EXPECT_EQ(Bash({"run", "--config", (share_ / "ma").string()}), (Words{(share_ / "man").string()}));
}

TEST_F(ManualTest, CompletesEachOfSeveralFiles) {
  EXPECT_EQ(Bash({"filter", "a", (share_ / "ma").string()}),
            (std::vector<std::string>{(share_ / "man").string()}));
  EXPECT_EQ(Run({"completion", "zsh"}), kExitOk);
  EXPECT_TRUE(absl::StrContains(out_.str(), "'*:FILE:_files'")) << out_.str();
}

TEST_F(ManualTest, ShellsTakeTheirScripts) {
  const std::pair<std::string, std::string> shells[] = {{"bash", "bash-completion/completions/lethe"},
                                                        {"zsh", "zsh/site-functions/_lethe"},
                                                        {"fish", "fish/vendor_completions.d/lethe.fish"}};
  for (const auto& [shell, script] : shells) {
    if (!Has(shell)) GTEST_SKIP() << shell << " is not installed";
    const auto [out, code] = Shell(absl::StrCat(shell, " -n ", (share_ / script).string()));
    EXPECT_EQ(code, 0) << shell << ": " << out;
    EXPECT_EQ(out, "") << shell;
    EXPECT_EQ(Run({"completion", shell}), kExitOk);
    std::stringstream text;
    text << std::ifstream(share_ / script).rdbuf();
    EXPECT_EQ(out_.str(), text.str());
  }
}

TEST_F(ManualTest, FishCompletesToo) {
  if (!Has("fish")) GTEST_SKIP() << "fish is not installed";
  const std::string script = (share_ / "fish/vendor_completions.d/lethe.fish").string();
  const auto [out, code] = Shell(absl::StrCat("HOME=", share_.string(), " fish --no-config -c 'source ",
                                              script, "; complete -C \"lethe run --start \"'"));
  EXPECT_TRUE(absl::StartsWith(out, "earliest\t") && absl::StrContains(out, "\nlatest\t")) << out;
  EXPECT_EQ(code, 0);
}

TEST_F(ManualTest, ManTakesItsPages) {
  if (!Has("mandoc")) GTEST_SKIP() << "mandoc is not installed";
  int pages = 0;
  for (const auto& entry : fs::directory_iterator(share_ / "man/man1")) {
    ++pages;
    const auto [out, code] = Shell(absl::StrCat("mandoc -T lint -W warning ", entry.path().string(),
                                                // The pages are the same at each build, so they have no date.
                                                " | grep -v 'missing date'"));
    EXPECT_EQ(out, "");
    const auto [text, ended] =
        Shell(absl::StrCat("mandoc -T utf8 -O width=100 ", entry.path().string(), " | col -b"));
    EXPECT_TRUE(absl::StrContains(text, "EXIT STATUS")) << text;
  }
  EXPECT_EQ(pages, 15);
  const auto [text, code] =
      Shell(absl::StrCat("mandoc -T ascii ", (share_ / "man/man1/lethe-run.1").string(), " | col -b"));
  EXPECT_TRUE(absl::StrContains(text, "--commit-interval DURATION")) << text;
  EXPECT_TRUE(absl::StrContains(text, "lethe run --config lethe.yaml --horizon 7d")) << text;
}

TEST_F(ManualTest, HelpExplainsTopicsAndCommands) {
  EXPECT_EQ(Run({"help"}), kExitOk);
  EXPECT_TRUE(absl::StrContains(out_.str(), "Before the first run:")) << out_.str();
  EXPECT_EQ(Run({"help", "exit-codes"}), kExitOk);
  EXPECT_TRUE(absl::StrContains(out_.str(), "2    The command line")) << out_.str();
  EXPECT_EQ(Run({"help", "run"}), kExitOk);
  EXPECT_TRUE(absl::StrContains(out_.str(), "--commit-interval DURATION")) << out_.str();
  EXPECT_EQ(Run({"help", "rnu"}), kExitUsage);
  EXPECT_TRUE(absl::StrContains(err_.str(), "did you mean run?")) << err_.str();
  EXPECT_EQ(Run({"completion", "tcsh"}), kExitUsage);
  EXPECT_TRUE(absl::StrContains(err_.str(), "expected bash, zsh or fish")) << err_.str();
  EXPECT_EQ(Run({"manual"}), kExitUsage);
  EXPECT_EQ(Run({"manual", "/dev/null/x"}), kExitFailed);
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
