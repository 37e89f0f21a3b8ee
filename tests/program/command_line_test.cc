#include "src/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "src/cli/config/removed.h"
#include "src/cli/config/setting.h"
#include "src/cli/terminal/exit_code.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A program whose commands only note what they were told.
class CommandLineTest : public testing::Test {
 protected:
  int Run(const std::vector<std::string>& args) {
    out_.str("");
    err_.str("");
    run_.reset();
    filter_.reset();
    demo_.reset();
    plan_.reset();
    inspect_.reset();
    check_.reset();
    checked_.reset();
    survey_.reset();
    verify_.reset();
    reconcile_.reset();
    counters_.reset();
    return RunCommandLine(args, commands_, out_, err_, columns_);
  }
  int RunWith(std::vector<std::string> more) {
    std::vector<std::string> args = {"run", "--brokers",    "b:9092", "--input",
                                     "in",  "--output=out", "--id",   "key"};
    args.insert(args.end(), more.begin(), more.end());
    return Run(args);
  }
  bool NothingRan() const {
    return !run_ && !filter_ && !demo_ && !plan_ && !inspect_ && !check_ && !survey_ && !verify_ &&
           !reconcile_ && !counters_;
  }

  std::ostringstream out_, err_;
  int columns_ = 80;
  std::optional<RunConfig> run_;
  std::optional<FilterCommandOptions> filter_;
  std::optional<DemoOptions> demo_;
  std::optional<PlanCommandOptions> plan_;
  std::optional<InspectCommandOptions> inspect_;
  std::optional<absl::StatusOr<RunConfig>> checked_;
  std::optional<CheckCommandOptions> check_;
  std::optional<SurveyCommandOptions> survey_;
  std::optional<VerifyCommandOptions> verify_;
  std::optional<ReconcileCommandOptions> reconcile_;
  std::optional<CountersCommandOptions> counters_;
  Commands commands_ = {
      [this](const RunConfig& config) { return run_ = config, 17; },
      [this](const FilterCommandOptions& options) { return filter_ = options, 18; },
      [this](const DemoOptions& options) { return demo_ = options, 19; },
      [this](const PlanCommandOptions& options) { return plan_ = options, 20; },
      [this](const InspectCommandOptions& options) { return inspect_ = options, 21; },
      [this](const absl::StatusOr<RunConfig>& config, const CheckCommandOptions& options) {
        checked_ = config;
        check_ = options;
        return 23;
      },
      [this](const SurveyCommandOptions& options) { return survey_ = options, 24; },
      [this](const VerifyCommandOptions& options) { return verify_ = options, 27; },
      [this](const ReconcileCommandOptions& options) { return reconcile_ = options, 25; },
      [this](const CountersCommandOptions& options) { return counters_ = options, 26; },
  };
};

TEST_F(CommandLineTest, HelpListsCommandsAndExitCodes) {
  EXPECT_EQ(Run({"--help"}), kExitOk);
  EXPECT_EQ(err_.str(), "");
  for (const char* text : {"run ", "filter ", "demo ", "plan ", "inspect ", "check ", "--version",
                           "Exit codes: 0 ", "1 it failed", "2 the command"}) {
    EXPECT_THAT(out_.str(), HasSubstr(text));
  }
}

TEST_F(CommandLineTest, AbsentFilesAreNotListed) {
  commands_.demo = nullptr;
  EXPECT_EQ(Run({"--help"}), kExitOk);
  EXPECT_THAT(out_.str(), Not(HasSubstr("demo")));
  EXPECT_EQ(Run({"demo"}), kExitUsage);
}

TEST_F(CommandLineTest, EachCommandHasHelpWithAnExample) {
  for (const std::string command :
       {"survey", "run", "filter", "demo", "plan", "inspect", "check", "verify", "reconcile", "counters"}) {
    EXPECT_EQ(Run({command, "--help"}), kExitOk);
    EXPECT_THAT(out_.str(), HasSubstr("Example:"));
    EXPECT_THAT(out_.str(), HasSubstr(absl::StrCat("lethe ", command, " --")));
    EXPECT_TRUE(NothingRan());
  }
}

TEST_F(CommandLineTest, HelpOfRunNamesEverySettingWithItsDefault) {
  columns_ = 1000;
  Run({"run", "--help"});
  for (const Setting<RunConfig>& setting : RunSettings()) {
    const std::string end = setting.required           ? " (required)"
                            : setting.fallback.empty() ? ""
                                                       : absl::StrCat(" [", setting.fallback, "]");
    EXPECT_THAT(out_.str(), HasSubstr(absl::StrCat(FlagOf(setting.key), " ", setting.type))) << setting.key;
    EXPECT_THAT(out_.str(), HasSubstr(absl::StrCat(setting.meaning, end, "\n"))) << setting.key;
  }
}

TEST_F(CommandLineTest, VersionIsTheProjects) {
  EXPECT_EQ(Run({"--version"}), kExitOk);
  EXPECT_EQ(out_.str(), "lethe " LETHE_VERSION "\n");
  EXPECT_EQ(Run({"version"}), kExitOk);
  EXPECT_THAT(out_.str(), StartsWith("lethe " LETHE_VERSION "\nlibrdkafka "));
  EXPECT_THAT(out_.str(), HasSubstr("sasl_scram"));
}

// No line is longer than the terminal is wide, and all words are there, none of them broken.
TEST_F(CommandLineTest, HelpWrapsBetweenWordsAtTheTerminalsWidth) {
  const auto words = [&] {
    std::string text = out_.str();
    for (char& c : text) c = c == '\n' || c == '\\' ? ' ' : c;
    return std::vector<std::string>(absl::StrSplit(text, ' ', absl::SkipEmpty()));
  };
  for (const std::vector<std::string>& args : {std::vector<std::string>{"--help"},
                                               {"survey", "--help"},
                                               {"plan", "--help"},
                                               {"demo", "--help"},
                                               {"check", "--help"},
                                               {"run", "--help"},
                                               {"filter", "--help"},
                                               {"inspect", "--help"},
                                               {"verify", "--help"},
                                               {"reconcile", "--help"},
                                               {"help", "--help"},
                                               {"help", "exit-codes"},
                                               {"version", "--help"}}) {
    columns_ = 1000;
    EXPECT_EQ(Run(args), kExitOk);
    const std::vector<std::string> whole = words();
    for (const int columns : {44, 80, 132}) {
      columns_ = columns;
      EXPECT_EQ(Run(args), kExitOk);
      EXPECT_EQ(words(), whole) << args.front() << " at " << columns;
      for (const absl::string_view line : absl::StrSplit(out_.str(), '\n')) {
        // A flag and its type are one thing, as is a command up to a place where it may be broken.
        const bool may_be_longer = columns < 60;
        EXPECT_TRUE(may_be_longer || line.size() <= static_cast<size_t>(columns))
            << args.front() << ": " << line;
      }
    }
  }
}

TEST_F(CommandLineTest, OneFlagPrintsJsonInAllCommandsAndTheFormerOnesStillDo) {
  const std::vector<std::string> survey = {"survey", "--brokers", "b:1", "--input", "in"};
  for (const char* flag : {"--format", "--output"}) {
    EXPECT_EQ(Run({"plan", "--rate", "1", flag, "json"}), 20);
    EXPECT_EQ(plan_->format, ReportFormat::kJson);
    EXPECT_EQ(Run({"inspect", flag, "json", "a"}), 21);
    EXPECT_EQ(inspect_->format, ReportFormat::kJson);
    std::vector<std::string> args = survey;
    args.insert(args.end(), {flag, "json"});
    EXPECT_EQ(Run(args), 24);
    EXPECT_EQ(survey_->format, ReportFormat::kJson);
    EXPECT_EQ(
        Run({"reconcile", "--brokers", "b:1", "--topic", "t", "--id", "key", "--peer", "x", flag, "json"}),
        25);
    EXPECT_EQ(reconcile_->format, ReportFormat::kJson);
  }
  for (const char* flag : {"--format", "--summary"}) {
    EXPECT_EQ(Run({"filter", "--id", "value", flag, "json"}), 18);
    EXPECT_EQ(filter_->format, ReportFormat::kJson);
  }
  EXPECT_EQ(Run({"plan", "--format", "json", "--output", "json"}), kExitUsage);
}

TEST_F(CommandLineTest, FilterTakesFiles) {
  EXPECT_EQ(Run({"filter", "--id", "value", "--quiet", "a", "b.gz", "--on-missing-id", "fail",
                 "--on-malformed", "drop"}),
            18);
  EXPECT_EQ(filter_->files, (std::vector<std::string>{"a", "b.gz"}));
  EXPECT_TRUE(filter_->quiet);
  EXPECT_EQ(filter_->on_missing_id, FilterCommandOptions::WithoutId::kFail);
  EXPECT_EQ(filter_->on_malformed, FilterCommandOptions::WithoutId::kDrop);
  EXPECT_EQ(Run({"filter", "--id", "value"}), 18);
  EXPECT_TRUE(filter_->files.empty());
}

TEST_F(CommandLineTest, CommandsGetWhatWasAskedForAndGiveTheExitCode) {
  EXPECT_EQ(RunWith({"--horizon", "2h", "--kafka", "retries=1", "--kafka", "client.rack=2", "--exit-at-end"}),
            17);
  ASSERT_TRUE(run_.has_value());
  EXPECT_EQ(run_->daemon.output, "out");
  EXPECT_EQ(run_->daemon.stage.horizon, absl::Hours(2));
  EXPECT_EQ(run_->daemon.process.properties, (std::vector<Property>{{"retries", "1"}, {"client.rack", "2"}}));
  EXPECT_TRUE(run_->daemon.process.exit_at_end);

  EXPECT_EQ(Run({"filter", "--id", "json:/id", "--horizon", "1h", "--fpp", "1e-4", "--memory", "64MiB",
                 "--on-duplicate", "tag", "--time", "json:/at", "--summary", "json"}),
            18);
  ASSERT_TRUE(filter_.has_value());
  EXPECT_EQ(filter_->id.ToString(), "json:/id");
  EXPECT_EQ(filter_->time->ToString(), "json:/at");
  EXPECT_EQ(filter_->stage.horizon, absl::Hours(1));
  EXPECT_EQ(filter_->stage.target_fpp, 1e-4);
  EXPECT_EQ(filter_->stage.memory_limit_bytes, 64 << 20);
  EXPECT_EQ(filter_->on_duplicate, FilterCommandOptions::OnDuplicate::kTag);
  EXPECT_EQ(filter_->format, ReportFormat::kJson);

  EXPECT_EQ(Run({"demo", "--events", "5", "--rate", "10", "--brokers", "b", "--kill", "2", "--seed",
                 "18446744073709551615", "--serve"}),
            19);
  ASSERT_TRUE(demo_.has_value());
  EXPECT_EQ(demo_->events, 5);
  EXPECT_EQ(demo_->rate, 10);
  EXPECT_EQ(demo_->brokers, "b");
  EXPECT_EQ(demo_->kill, 2);
  EXPECT_EQ(demo_->seed, UINT64_MAX);
  EXPECT_TRUE(demo_->serve);
  EXPECT_FALSE(demo_->adapt);
  EXPECT_EQ(Run({"demo", "--adapt", "--day", "20s", "--port", "9000"}), 19);
  ASSERT_TRUE(demo_.has_value());
  EXPECT_TRUE(demo_->adapt);
  EXPECT_EQ(demo_->day, absl::Seconds(20));
  EXPECT_EQ(demo_->port, 9000);

  EXPECT_EQ(Run({"plan", "--rate", "2.5e4", "--horizon", "1h", "--fpp", "1e-4", "--output", "json"}), 20);
  ASSERT_TRUE(plan_.has_value());
  EXPECT_EQ(plan_->request.rate, 25000);
  EXPECT_EQ(plan_->request.horizon, absl::Hours(1));
  EXPECT_EQ(plan_->request.target_fpp, 1e-4);
  EXPECT_EQ(plan_->request.memory_bytes, std::nullopt);
  EXPECT_EQ(plan_->format, ReportFormat::kJson);
  EXPECT_EQ(Run({"plan", "--memory", "64MiB"}), 20);
  EXPECT_EQ(plan_->request.memory_bytes, 64 << 20);
  EXPECT_EQ(plan_->request.rate, std::nullopt);
  EXPECT_EQ(plan_->format, ReportFormat::kText);
  EXPECT_EQ(Run({"inspect", "--output", "json", "a.snapshot"}), 21);
  ASSERT_TRUE(inspect_.has_value());
  EXPECT_EQ(inspect_->path, "a.snapshot");
  EXPECT_EQ(inspect_->format, ReportFormat::kJson);
  EXPECT_EQ(Run({"inspect", "b.snapshot"}), 21);
  EXPECT_EQ(inspect_->format, ReportFormat::kText);
}

TEST_F(CommandLineTest, CountersTakesItsFlags) {
  EXPECT_EQ(Run({"counters", "--brokers", "b:1", "--topic", "likes"}), 26);
  ASSERT_TRUE(counters_.has_value());
  EXPECT_EQ(counters_->topic, "likes");
  EXPECT_FALSE(counters_->top || counters_->follow);
  EXPECT_EQ(counters_->output, CountersCommandOptions::Output::kTable);
  EXPECT_EQ(Run({"counters", "--brokers", "b:1", "--topic", "likes", "--top", "20", "--format", "csv",
                 "--follow", "--kafka", "a=b"}),
            26);
  EXPECT_EQ(counters_->top, 20);
  EXPECT_TRUE(counters_->follow);
  EXPECT_EQ(counters_->output, CountersCommandOptions::Output::kCsv);
  EXPECT_EQ(counters_->properties.values, (std::vector<Property>{{"a", "b"}}));
  EXPECT_EQ(Run({"counters", "--brokers", "b:1", "--topic", "likes", "--top", "0"}), kExitUsage);
  EXPECT_EQ(Run({"counters", "--brokers", "b:1"}), kExitUsage);
}

TEST_F(CommandLineTest, SurveyTakesItsFlags) {
  EXPECT_EQ(Run({"survey", "--brokers", "b:1", "--input", "in"}), 24);
  ASSERT_TRUE(survey_.has_value());
  EXPECT_FALSE(survey_->id || survey_->records || survey_->last || survey_->all_records);
  EXPECT_EQ(survey_->memory_bytes, 256 << 20);
  EXPECT_EQ(Run({"survey", "--brokers", "b:1", "--input", "in", "--id", "key", "--records", "5000", "--last",
                 "2h", "--memory", "32MiB", "--output", "json", "--kafka", "a=b"}),
            24);
  EXPECT_EQ(survey_->id->ToString(), "key");
  EXPECT_EQ(survey_->records, 5000);
  EXPECT_EQ(survey_->last, absl::Hours(2));
  EXPECT_EQ(survey_->memory_bytes, 32 << 20);
  EXPECT_EQ(survey_->format, ReportFormat::kJson);
  EXPECT_EQ(survey_->properties.values, (std::vector<Property>{{"a", "b"}}));
  EXPECT_EQ(Run({"survey", "--brokers", "b:1", "--input", "in", "--records", "all"}), 24);
  EXPECT_TRUE(survey_->all_records);
}

TEST_F(CommandLineTest, VerifyTakesAStretchAndAShare) {
  EXPECT_EQ(Run({"verify", "--config", "lethe.yaml"}), 27);
  EXPECT_NEAR(absl::ToDoubleHours(absl::Now() - verify_->since), 2, 0.1);
  EXPECT_EQ(verify_->share, std::nullopt);
  EXPECT_EQ(Run({"verify", "--config", "lethe.yaml", "--since", "3d", "--share", "0.25", "--topic", "orders",
                 "--memory", "1GiB", "--format", "json", "--textfile", "a.prom"}),
            27);
  EXPECT_NEAR(absl::ToDoubleHours(absl::Now() - verify_->since), 72, 0.1);
  EXPECT_EQ(verify_->share, 0.25);
  EXPECT_EQ(verify_->topic, "orders");
  EXPECT_EQ(verify_->memory_bytes, 1 << 30);
  EXPECT_EQ(verify_->format, ReportFormat::kJson);
  EXPECT_EQ(verify_->textfile, "a.prom");
  Run({"verify", "--config", "lethe.yaml", "--since", "all"});
  EXPECT_EQ(verify_->since, absl::InfinitePast());
  Run({"verify", "--config", "lethe.yaml", "--since", "2026-11-22T18:00:00Z"});
  EXPECT_EQ(absl::ToUnixSeconds(verify_->since), 1'795'370'400);
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--since", "soon"},
                                                {"--share", "0"},
                                                {"--share", "1.1"},
                                                {"--memory", "1KiB"}}) {
    EXPECT_EQ(Run({"verify", "--config", "lethe.yaml", wrong[0], wrong[1]}), kExitUsage) << wrong[1];
  }
  EXPECT_EQ(Run({"verify"}), kExitUsage);
}

TEST_F(CommandLineTest, ReconcileTakesTheFlagsOfItsSide) {
  const std::vector<std::string> side = {"reconcile", "--brokers", "b:1", "--topic", "t", "--id", "key"};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = side;
    args.insert(args.end(), more.begin(), more.end());
    return Run(args);
  };
  EXPECT_EQ(run({"--peer", "ssh b lethe", "--last", "2h", "--settle", "5m", "--copy", "to-peer", "--method",
                 "table", "--memory", "32MiB", "--timeout", "10s", "--kafka", "a=b"}),
            25);
  ASSERT_TRUE(reconcile_.has_value());
  EXPECT_EQ(reconcile_->peer, "ssh b lethe");
  EXPECT_FALSE(reconcile_->serves);
  EXPECT_EQ(reconcile_->window.last, absl::Hours(2));
  EXPECT_EQ(reconcile_->window.settle, absl::Minutes(5));
  EXPECT_EQ(reconcile_->copy, ReconcileCommandOptions::Copy::kToPeer);
  EXPECT_EQ(reconcile_->method, ReconcileMethod::kLookupTable);
  EXPECT_EQ(reconcile_->memory_bytes, 32 << 20);
  EXPECT_EQ(reconcile_->timeout, absl::Seconds(10));
  EXPECT_EQ(reconcile_->properties.values, (std::vector<Property>{{"a", "b"}}));
  EXPECT_EQ(run({"--peer", "x", "--since", "2026-11-22T18:00:00Z", "--until", "2026-11-22T19:00:00Z"}), 25);
  EXPECT_EQ(*reconcile_->window.until - *reconcile_->window.since, absl::Hours(1));
  EXPECT_EQ(run({"--serve"}), 25);
  EXPECT_TRUE(reconcile_->serves);
  EXPECT_EQ(reconcile_->copy, std::nullopt);
  EXPECT_EQ(run({"--serve", "--copy", "from-peer"}), 25);
  EXPECT_EQ(reconcile_->copy, ReconcileCommandOptions::Copy::kFromPeer);
  // The window is the initiator's to say, so that the two cannot differ in it.
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--last", "1h"},
                                               {"--since", "2026-11-22T18:00:00Z"},
                                               {"--until", "2026-11-22T18:00:00Z"},
                                               {"--settle", "1m"},
                                               {"--method", "table"},
                                               {"--peer", "x"}}) {
    std::vector<std::string> args = {"--serve"};
    args.insert(args.end(), more.begin(), more.end());
    EXPECT_EQ(run(args), kExitUsage) << more[0];
    EXPECT_THAT(err_.str(), HasSubstr(more[0]));
  }
  EXPECT_EQ(run({}), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("missing --peer"));
  EXPECT_EQ(run({"--peer", "x", "--since", "2026-11-22T18:00:00Z", "--last", "1h"}), kExitUsage);
  EXPECT_EQ(run({"--peer", "x", "--since", "yesterday"}), kExitUsage);
  EXPECT_EQ(run({"--peer", "x", "--copy", "no"}), kExitUsage);
  EXPECT_TRUE(NothingRan());
}

TEST_F(CommandLineTest, ReadsTheFileAndLetsFlagsWin) {
  const std::string path =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-cli-test-", getpid(), ".yaml");
  std::ofstream(path) << "brokers: b\ninput: in\noutput: out\nid: key\nlanes: 2\nhttp: off\n";
  EXPECT_EQ(Run({"run", "--config", path, "--lanes", "3"}), 17);
  ASSERT_TRUE(run_.has_value());
  EXPECT_EQ(run_->daemon.process.lanes, 3);
  EXPECT_EQ(run_->http, "off");
  std::filesystem::remove(path);
  EXPECT_EQ(Run({"run", "--config", path}), kExitUsage);
  EXPECT_TRUE(NothingRan());
}

TEST_F(CommandLineTest, CheckTakesWhatRunTakesAndHearsOfAWrongConfiguration) {
  EXPECT_EQ(Run({"check", "--brokers", "b", "--input", "in", "--output", "out", "--id", "key", "--kafka",
                 "retries=1", "--format", "json"}),
            23);
  ASSERT_TRUE(checked_.has_value() && checked_->ok());
  EXPECT_EQ((*checked_)->daemon.process.properties, (std::vector<Property>{{"retries", "1"}}));
  EXPECT_EQ(check_->format, ReportFormat::kJson);
  EXPECT_EQ(Run({"check", "--brokers", "b"}), 23);
  EXPECT_FALSE(checked_->ok());
  EXPECT_EQ(Run({"check", "--format", "xml"}), kExitUsage);
}

TEST_F(CommandLineTest, PrintsTheConfigurationInsteadOfRunning) {
  EXPECT_EQ(RunWith({"--print-config", "--horizon", "2h", "--kafka", "sasl.password=hunter2"}), kExitOk);
  EXPECT_TRUE(NothingRan());
  EXPECT_THAT(out_.str(), HasSubstr("horizon: 2h  # --horizon\n"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("hunter2")));
  EXPECT_EQ(Run({"run", "--print-config"}), kExitUsage);
}

// seq 1 1000000 | lethe filter --id value --engine published
TEST_F(CommandLineTest, ThePublishedFilterKeepsItsTargetAndSaysThatItsWindowIsShorter) {
  std::string lines;
  for (int i = 1; i <= 1'000'000; ++i) absl::StrAppend(&lines, i, "\n");
  const std::vector<std::string> too_little = {"--memory", "1MiB"};
  for (const std::vector<std::string>& with :
       {std::vector<std::string>(), {"--memory", "64MiB", "--horizon", "1h"}, too_little}) {
    std::vector<std::string> args = {"filter", "--id", "value", "--engine", "published", "--format", "json"};
    args.insert(args.end(), with.begin(), with.end());
    ASSERT_EQ(Run(args), 18);
    std::FILE* const input = std::tmpfile();
    std::FILE* const output = std::tmpfile();
    // What does not fit is slow.
    const size_t bytes = with == too_little ? lines.size() / 8 : lines.size();
    ASSERT_EQ(std::fwrite(lines.data(), 1, bytes, input), bytes);
    std::rewind(input);
    std::ostringstream summary;
    ASSERT_OK(RunFilter(*filter_, fileno(input), fileno(output), summary));
    const auto figures = nlohmann::json::parse(summary.str());
    // At most one false positive is expected; more than nine in less than a run of a million.
    EXPECT_LE(figures["duplicates"].get<int>(), 9) << summary.str();
    EXPECT_EQ(figures["memory_limit_hits"].get<int>() > 0, with == too_little) << summary.str();
    std::fclose(input);
    std::fclose(output);
  }
}

TEST_F(CommandLineTest, WhatWasRemovedIsNamedWithItsLastVersionAndWhatToDo) {
  const std::string path =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-removed-test-", getpid(), ".yaml");
  ASSERT_FALSE(AllRemoved().empty());
  for (const Removed& removed : AllRemoved()) {
    absl::string_view name = removed.name;
    if (absl::ConsumePrefix(&name, "lethe ")) {
      EXPECT_EQ(Run({std::string(name)}), kExitUsage) << name;
    } else {
      const std::vector<std::string> parts = absl::StrSplit(removed.name, ": ");
      const std::string value = parts.size() > 1 ? parts[1] : "x";
      name = name.substr(0, parts[0].size());
      EXPECT_EQ(RunWith({FlagOf(name), value}), kExitUsage) << name;
      EXPECT_THAT(err_.str(), HasSubstr(removed.instead));
      std::ofstream(path) << "brokers: b\n" << name << ": " << value << "\n";
      EXPECT_EQ(Run({"run", "--config", path}), kExitUsage) << name;
      EXPECT_THAT(err_.str(), HasSubstr(absl::StrCat(path, ":2")));
    }
    for (const absl::string_view part : {name, removed.last_version, removed.instead}) {
      EXPECT_THAT(err_.str(), HasSubstr(part));
    }
  }
  std::filesystem::remove(path);
  EXPECT_TRUE(NothingRan());
}

TEST_F(CommandLineTest, WrongUseIsReportedAndRunsNothing) {
  const struct {
    std::vector<std::string> args;
    std::string error;
  } cases[] = {
      {{"rnu"}, "lethe: unknown command rnu; did you mean run?"},
      {{"--hlep"}, "lethe: unknown flag --hlep; did you mean --help?"},
      {{"--input", "x", "run"}, "lethe run: --input belongs behind the command"},
      {{"run", "--inptu", "x"}, "lethe run: unknown flag --inptu; did you mean --input?"},
      {{"run", "-x"}, "lethe run: unknown flag -x"},
      {{"run", "--input", "a", "--input", "b"}, "lethe run: --input: given 2 times"},
      {{"run", "--input"}, "lethe run: --input: 1 required TOPIC[,TOPIC...] missing"},
      {{"run", "--input", "in"},
       "lethe run: missing --brokers, for example localhost:9092; --output, for example orders-unique; --id, "
       "for "
       "example json:/order/id"},
      {{"run", "filter"}, "lethe run: one command at a time"},
      {{"run", "lethe.yaml"},
       "lethe run: unexpected argument without a flag; a value follows its flag, and a "
       "value with spaces needs quotes"},
      {{"filter"}, "lethe filter: missing --id, for example json:/id"},
      {{"filter", "--id", "value", "--on-duplicate", "keep"},
       "lethe filter: --on-duplicate: \"keep\" is not valid: expected drop or tag"},
      {{"demo", "--events", "0"},
       "lethe demo: --events: \"0\" is not valid: expected a whole number from 1 to 1000000000000"},
      {{"plan", "--rate", "-1"},
       "lethe plan: --rate: \"-1\" is not valid: expected a number above 0, such as 20000, 20k/s or 5M/d"},
      {{"plan", "--output", "xml"}, "lethe plan: --format: \"xml\" is not valid: expected text or json"},
      {{"inspect"}, "lethe inspect: missing SNAPSHOT, for example orders-0.snapshot"},
      {{"inspect", "a", "b"},
       "lethe inspect: unexpected argument without a flag; a value follows its flag, and a "
       "value with spaces needs quotes"},
      {{"inspect", "--output", "xml", "a"},
       "lethe inspect: --format: \"xml\" is not valid: expected text or json"},
      {{"survey", "--brokers", "b:1", "--input", "in", "--records", "0"},
       "lethe survey: --records: \"0\" is not valid: expected a whole number of at least 1, or all"},
      {{"survey", "--brokers", "b:1", "--input", "in", "--memory", "1MiB"},
       "lethe survey: --memory: \"1MiB\" is not valid: expected a size of 16MiB or more"},
      {{"demo", "--adapt", "--kill", "2"},
       "lethe demo: --adapt has a load of its own, and no kills: leave out --rate, --kill and --format"},
      {{"demo", "--adapt", "--day", "0s"},
       "lethe demo: --day: \"0s\" is not valid: expected a duration of 1s or more"},
      {{"demo", "--serve=yes"}, "lethe demo: serve was given a disallowed flag override"},
  };
  for (const auto& [args, error] : cases) {
    EXPECT_EQ(Run(args), kExitUsage) << error;
    EXPECT_EQ(err_.str().substr(0, err_.str().find('\n')), error);
    EXPECT_THAT(err_.str(), HasSubstr(" --help.\n"));
    EXPECT_EQ(out_.str(), "");
    EXPECT_TRUE(NothingRan());
  }
  EXPECT_EQ(Run({}), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("Usage: lethe"));
}

TEST_F(CommandLineTest, NoErrorShowsASecret) {
  const std::vector<std::string> tails[] = {
      {"--kafka", "sasl.password", "hunter2"},
      {"--kafka-x=sasl.password=hunter2"},
      {"--exit-at-end=hunter2"},
      {"--kafka", "group.id=hunter2"},
      {"--", "hunter2"},
      {"--kafka", "a=b", "hunter2"},
  };
  for (const std::vector<std::string>& tail : tails) {
    EXPECT_EQ(RunWith(tail), kExitUsage);
    EXPECT_THAT(err_.str(), Not(HasSubstr("hunter2")));
    EXPECT_TRUE(NothingRan());
  }
}

TEST_F(CommandLineTest, ReportedErrorsHaveTheirExitCode) {
  std::ostringstream err;
  EXPECT_EQ(ReportError(absl::InvalidArgumentError("a"), err), kExitUsage);
  EXPECT_EQ(ReportError(absl::UnavailableError("b"), err), kExitFailed);
  EXPECT_EQ(err.str(), "lethe: a\nlethe: b\n");
}

}  // namespace
}  // namespace lethe
