// What the documents show is what there is: their configurations load.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "src/cli/command_line.h"
#include "src/cli/commands/plan_command.h"
#include "src/cli/config/config.h"
#include "src/cli/terminal/exit_code.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Readme() { return ReadFile(LETHE_SOURCE_DIR "/README.md"); }
std::string Operations() { return ReadFile(LETHE_SOURCE_DIR "/connectors/OPERATIONS.md"); }

// The fenced blocks of one language.
std::vector<std::string> Blocks(const std::string& page, const std::string& language) {
  std::vector<std::string> blocks;
  const std::string fence = absl::StrCat("```", language, "\n");
  for (size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at)) {
    at += fence.size();
    blocks.push_back(page.substr(at, page.find("```", at) - at));
  }
  return blocks;
}

TEST(Readme, ItsConfigurationLoads) {
  const std::vector<std::string> blocks = Blocks(Readme(), "yaml");
  ASSERT_EQ(blocks.size(), 1u);
  const absl::StatusOr<RunConfig> config = MakeRunConfig(ConfigText{"README.md", blocks[0]}, {});
  EXPECT_OK(config);
}

// The page of operations has the full configuration, then parts of one.
TEST(Operations, ItsConfigurationsLoad) {
  setenv("KAFKA_PASSWORD", "secret", 1);
  setenv("REDIS_PASSWORD", "secret", 1);
  setenv("REGISTRY_PASSWORD", "secret", 1);
  std::vector<std::string> blocks = Blocks(Operations(), "yaml");
  ASSERT_EQ(blocks.size(), 2u);
  blocks[1] =
      absl::StrCat("brokers: localhost:9092\ninput: orders\noutput: orders-unique\nid: key\n", blocks[1]);
  for (const std::string& block : blocks) {
    const absl::StatusOr<RunConfig> config = MakeRunConfig(ConfigText{"OPERATIONS.md", block}, {});
    EXPECT_OK(config);
  }
}

TEST(Operations, ItsFullConfigurationHasEveryKeyAndTheDefaults) {
  const std::string full = Blocks(Operations(), "yaml").at(0);
  const absl::StatusOr<std::vector<ConfigEntry>> entries = ParseConfigText({"OPERATIONS.md", full});
  ASSERT_OK(entries);
  for (const Setting<RunConfig>& setting : RunSettings()) {
    const auto entry = std::find_if(entries->begin(), entries->end(),
                                    [&](const ConfigEntry& e) { return e.Path() == setting.key; });
    ASSERT_NE(entry, entries->end()) << setting.key << " is not in the full configuration of OPERATIONS.md";
    const bool depends = setting.key == "group" || setting.key == "instance" || setting.key == "memory" ||
                         setting.key == "static_membership" || setting.key == "max_future" ||
                         setting.key == "http_counters" || setting.key == "on_undeliverable";
    if (!setting.fallback.empty() && !depends) {
      EXPECT_EQ(entry->text, setting.fallback) << setting.key;
    }
  }
}

TEST(Readme, ItNamesTheReadersDuty) { EXPECT_THAT(Readme(), HasSubstr("`isolation.level=read_committed`")); }

// A newcomer sees in the first screen how to run it and how to test it; then how to use it, then figures.
TEST(Readme, ItBeginsWithHowToRunAndTestIt) {
  const std::vector<std::string> lines = absl::StrSplit(Readme(), '\n');
  const std::string screen = absl::StrJoin(lines.begin(), lines.begin() + 15, "\n");
  EXPECT_THAT(screen, HasSubstr("\nmake demo"));
  EXPECT_THAT(screen, HasSubstr("\nmake test"));
  EXPECT_THAT(screen, HasSubstr("dashboards/page.png"));
  EXPECT_LT(Readme().find("\n## Quick start"), Readme().find("\n## How fast it is"));
}

// `memory` of the configuration holds the events that its comment says, with its horizon and fpp.
TEST(Readme, ItsMemoryIsForTheEventsThatItSays) {
  const std::string page = Readme();
  const RunConfig config = MakeRunConfig(ConfigText{"README.md", Blocks(page, "yaml").at(0)}, {}).value();
  const absl::StatusOr<Plan> plan = MakePlan({.horizon = config.daemon.stage.horizon,
                                              .target_fpp = config.daemon.stage.target_fpp,
                                              .memory_bytes = config.daemon.stage.memory_limit_bytes});
  ASSERT_OK(plan);
  const std::string said =
      absl::StrCat("for ", static_cast<int64_t>(plan->ids / 1e7) * 10, " million events within the horizon");
  EXPECT_THAT(page, HasSubstr(said));
}

// What `lethe plan` is shown to print, it prints.
TEST(Operations, ItsPlanIsThatOfTheProgram) {
  Commands commands;
  commands.plan = [](const PlanCommandOptions& options) {
    EXPECT_OK(RunPlan(options, std::cout));
    return kExitOk;
  };
  int plans = 0;
  for (const std::string& block : Blocks(Operations(), "text")) {
    absl::string_view shown = block;
    if (!absl::ConsumePrefix(&shown, "$ lethe plan ")) continue;
    ++plans;
    std::vector<std::string> args = absl::StrSplit(shown.substr(0, shown.find('\n')), ' ');
    args.insert(args.begin(), "plan");
    testing::internal::CaptureStdout();
    RunCommandLine(args, commands, std::cout, std::cout);
    EXPECT_EQ(testing::internal::GetCapturedStdout(), shown.substr(shown.find('\n') + 1));
  }
  EXPECT_EQ(plans, 1);
}

// A command as a shell splits it: up to a comment, a pipe or a redirection.
std::vector<std::string> Words(absl::string_view command) {
  std::vector<std::string> words(1);
  bool is_quoted = false;
  for (const char c : command) {
    if (c == '\'') {
      is_quoted = !is_quoted;
    } else if (is_quoted) {
      words.back() += c;
    } else if (c == '#' || c == '|' || c == '>') {
      break;
    } else if (c != ' ') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// The arguments of each `lethe ...` in the shell's blocks of a page.
std::vector<std::vector<std::string>> LetheCommands(const std::string& page) {
  std::vector<std::vector<std::string>> commands;
  for (const std::string& block : Blocks(page, "sh")) {
    const std::string joined = absl::StrReplaceAll(block, {{"\\\n", " "}});
    for (const absl::string_view line : absl::StrSplit(joined, '\n')) {
      const size_t pipe = line.find("| lethe ");
      const std::vector<std::string> words = Words(pipe == line.npos ? line : line.substr(pipe + 2));
      if (!words.empty() && words[0] == "lethe") commands.emplace_back(words.begin() + 1, words.end());
    }
  }
  return commands;
}

// The program takes each command that the pages show; those with lethe.yaml get the README's.
TEST(Readme, TheProgramTakesTheCommandsOfThePages) {
  const std::string file = absl::StrCat(testing::TempDir(), "readme_test_lethe.yaml");
  std::ofstream(file) << Blocks(Readme(), "yaml").at(0);
  int taken = 0;
  const auto take = [&](const auto&...) {
    ++taken;
    return kExitOk;
  };
  Commands commands;
  commands.run = take;
  commands.filter = take;
  commands.check = [&](const absl::StatusOr<RunConfig>& config, const CheckCommandOptions&) {
    EXPECT_OK(config);
    return take();
  };
  commands.survey = take;
  commands.verify = take;
  commands.reconcile = take;
  setenv("KAFKA_PASSWORD", "secret", 1);
  int shown = 0;
  for (const char* page : {"/README.md", "/connectors/OPERATIONS.md", "/connectors/README.md"}) {
    for (std::vector<std::string> args : LetheCommands(ReadFile(absl::StrCat(LETHE_SOURCE_DIR, page)))) {
      std::replace(args.begin(), args.end(), std::string("lethe.yaml"), file);
      std::ostringstream err;
      EXPECT_EQ(RunCommandLine(args, commands, std::cout, err), kExitOk)
          << absl::StrJoin(args, " ") << err.str();
      ++shown;
    }
  }
  std::filesystem::remove(file);
  EXPECT_EQ(taken, shown);
  EXPECT_GE(shown, 5);
}

// Where pages are shown, pictures run nothing and fetch nothing.
TEST(Readme, ItsPictureStandsForItself) {
  const std::string picture = ReadFile(LETHE_SOURCE_DIR "/dashboards/how.svg");
  for (const std::string part : {"<script", "href", "@import", "<foreignObject", "url(http"}) {
    EXPECT_THAT(picture, Not(HasSubstr(part)));
  }
  EXPECT_THAT(picture, HasSubstr("<title")) << "for who does not see it";
  EXPECT_THAT(picture, HasSubstr("prefers-color-scheme: dark"));
}

// How many tests the tables of a page name in their last column, as `program_test` Name. Each is there.
int ExistingTests(const std::string& page) {
  std::string program;
  int named = 0;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (!absl::StartsWith(line, "| ")) continue;
    const std::vector<absl::string_view> cells = absl::StrSplit(line, " | ");
    if (cells.size() != 3) continue;
    for (const absl::string_view word : absl::StrSplit(cells[2], absl::ByAnyChar(" ,|"), absl::SkipEmpty())) {
      if (absl::StartsWith(word, "`") && absl::EndsWith(word, "_test`")) {
        const std::string name = absl::StrCat(word.substr(1, word.size() - 2), ".cc");
        std::string path;
        for (const char* folder : {"unit/", "program/", "integration/"}) {
          path = absl::StrCat(LETHE_SOURCE_DIR "/tests/", folder, name);
          if (std::filesystem::exists(path)) break;
        }
        program = ReadFile(path);
      } else if (word.size() > 10 && absl::ascii_isupper(static_cast<unsigned char>(word[0]))) {
        EXPECT_THAT(program, HasSubstr(absl::StrCat(", ", word, ")"))) << word;
        ++named;
      }
    }
  }
  return named;
}

TEST(Readme, TheTestsThatShowTheGuaranteesExist) {
  EXPECT_GE(ExistingTests(Readme()), 15);
  EXPECT_GT(ExistingTests(ReadFile(LETHE_SOURCE_DIR "/connectors/README.md")), 25);
}

// Each line of the README's guarantees and limits names a test.
TEST(Readme, EachGuaranteeAndLimitNamesATest) {
  int lines = 0;
  bool is_claim = false;
  for (const absl::string_view line : absl::StrSplit(Readme(), '\n')) {
    if (absl::StartsWith(line, "## ")) is_claim = line == "## Guarantees" || line == "## Limits";
    if (!is_claim || !absl::StartsWith(line, "| ") || absl::StartsWith(line, "| ---")) continue;
    if (absl::EndsWith(line, " | test |")) continue;  // the head
    ++lines;
    EXPECT_THAT(line, HasSubstr("_test` "));
  }
  EXPECT_GE(lines, 12);
}

// All tests of the project: "Suite, Name".
std::string TestNames() {
  std::string names;
  for (const char* folder : {"unit", "program", "integration"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(absl::StrCat(LETHE_SOURCE_DIR "/tests/", folder))) {
      for (const absl::string_view line : absl::StrSplit(ReadFile(entry.path().string()), '\n')) {
        if (absl::StartsWith(line, "TEST")) absl::StrAppend(&names, line.substr(line.find('(') + 1), "\n");
      }
    }
  }
  return names;
}

// Whether a test is named by a rule, as Rule1..., Rules3And15... are.
bool IsOfRule(absl::string_view name, int rule) {
  if (!absl::ConsumePrefix(&name, "Rules") && !absl::ConsumePrefix(&name, "Rule")) return false;
  for (const absl::string_view word : absl::StrSplit(name, "And")) {
    int number = 0;
    if (absl::SimpleAtoi(word.substr(0, word.find_first_not_of("0123456789")), &number) && number == rule) {
      return true;
    }
  }
  return false;
}

// Each rule of exactly-once has tests that carry its number.
TEST(Readme, EachRuleHasTests) {
  const std::vector<std::string> tests = absl::StrSplit(TestNames(), '\n');
  int rules = 0;
  int last = 0;  // numbers rise; some are of the design alone
  const std::string page = ReadFile(LETHE_SOURCE_DIR "/connectors/kafka/EXACTLY_ONCE.md");
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    int rule = 0;
    if (!absl::SimpleAtoi(line.substr(0, line.find(". **")), &rule)) continue;
    EXPECT_GT(rule, std::exchange(last, rule));
    ++rules;
    EXPECT_TRUE(std::any_of(tests.begin(), tests.end(),
                            [&](const std::string& test) {
                              const std::pair<std::string, std::string> name =
                                  absl::StrSplit(test, absl::MaxSplits(", ", 1));
                              return IsOfRule(name.second, rule);
                            }))
        << "no test has the name of rule " << rule;
  }
  EXPECT_EQ(rules, 27);
}

// The tests beside those, by rule, are there: a suite, or one test of it.
TEST(Readme, TheFurtherTestsOfTheRulesExist) {
  const std::vector<std::string> tests = absl::StrSplit(TestNames(), '\n');
  int rows = 0;
  for (const absl::string_view line : absl::StrSplit(ReadFile(LETHE_SOURCE_DIR "/tests/README.md"), '\n')) {
    const std::vector<std::string> cells = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (cells.size() != 2 || !absl::StartsWith(line, "- ") ||
        !absl::ascii_isdigit(static_cast<unsigned char>(line[2]))) {
      continue;
    }
    ++rows;
    const std::vector<std::string> parts = absl::StrSplit(cells[1], '`');
    for (size_t i = 1; i < parts.size(); i += 2) {  // what is between `
      const std::pair<std::string, std::string> name = absl::StrSplit(parts[i], absl::MaxSplits('.', 1));
      const std::string wanted = absl::StrCat(name.first, ", ", name.second, name.second.empty() ? "" : ")");
      EXPECT_TRUE(std::any_of(tests.begin(), tests.end(), [&](const std::string& test) {
        return absl::StartsWith(test, wanted);
      })) << parts[i];
    }
  }
  EXPECT_GE(rows, 10);
}

}  // namespace
}  // namespace lethe
