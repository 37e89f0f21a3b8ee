// The filter command between pipes, as a program's user has it.
#include "src/cli/commands/filter_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/cli/terminal/exit_code.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

FilterCommandOptions Options(const std::string& id) {
  FilterCommandOptions options;
  options.id = IdSpec::Parse(id).value();
  options.stage.horizon = absl::Hours(1);
  options.stage.target_fpp = 1e-9;
  options.stage.memory_limit_bytes = int64_t{256} << 20;
  return options;
}

// A running command with a pipe on either side.
class Running {
 public:
  explicit Running(const FilterCommandOptions& options) {
    EXPECT_NE(signal(SIGPIPE, SIG_IGN), SIG_ERR);
    EXPECT_EQ(pipe2(in_, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out_, O_CLOEXEC), 0);
    thread_ = std::thread([this, options] {
      status_ = RunFilter(options, in_[0], out_[1], summary_);
      close(in_[0]);
      close(out_[1]);
    });
  }
  ~Running() {
    End().IgnoreError();
    if (out_[0] >= 0) close(out_[0]);
  }

  // Until the command has ended, at most.
  void Write(absl::string_view text) const {
    for (ssize_t written = 0; !text.empty() && (written = write(in_[1], text.data(), text.size())) > 0;) {
      text.remove_prefix(static_cast<size_t>(written));
    }
  }
  // Waits for so many bytes of output, or for all there will be.
  std::string Read(size_t size) const {
    std::string text(size, '\0');
    size_t done = 0;
    for (ssize_t got = 0; done < size && (got = read(out_[0], &text[done], size - done)) > 0;) {
      done += static_cast<size_t>(got);
    }
    text.resize(done);
    return text;
  }
  void CloseOutput() {
    close(out_[0]);
    out_[0] = -1;
  }
  void CloseInput() {
    if (in_[1] >= 0) close(in_[1]);
    in_[1] = -1;
  }
  absl::Status End() {
    CloseInput();
    if (thread_.joinable()) thread_.join();
    return status_;
  }
  std::string summary() const { return summary_.str(); }

 private:
  int in_[2] = {-1, -1};
  int out_[2] = {-1, -1};
  absl::Status status_;
  std::ostringstream summary_;
  std::thread thread_;
};

struct Outcome {
  std::string output;
  std::string summary;
  absl::Status status;
};

Outcome Filter(const FilterCommandOptions& options, const std::string& input) {
  Running command(options);
  std::thread feeder([&] {
    command.Write(input);
    command.CloseInput();
  });
  Outcome outcome;
  outcome.output = command.Read(input.size() * 4 + 1000);  // up to the end
  feeder.join();
  outcome.status = command.End();
  outcome.summary = command.summary();
  return outcome;
}

TEST(FilterCommandTest, UniqueLinesPassInOrderAsTheyAre) {
  const Outcome outcome =
      Filter(Options("json:/id"),
             "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\"}\r\n{ \"id\" : \"a\" }\n{\"id\":\"c\"}\n"
             "{\"id\":\"b\"}\n{\"x\":1}\n\n{\"x\":1}\nnot json\n{\"id\":\"d\"}");
  EXPECT_OK(outcome.status);
  EXPECT_EQ(outcome.output,
            "{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\"}\r\n{\"id\":\"c\"}\n"
            "{\"x\":1}\n\n{\"x\":1}\nnot json\n{\"id\":\"d\"}");
  EXPECT_THAT(outcome.summary, HasSubstr("lethe filter: 10 records in "));
  EXPECT_THAT(outcome.summary, HasSubstr("unique                 4  passed"));
  EXPECT_THAT(outcome.summary, HasSubstr("duplicates             2  dropped"));
  EXPECT_THAT(outcome.summary,
              HasSubstr("missing id             2  passed, first on line 6: json:/id is not there"));
  EXPECT_THAT(outcome.summary,
              HasSubstr("malformed              2  passed, first on line 7: the value is not JSON"));
  EXPECT_THAT(outcome.summary, HasSubstr("target 1e-09"));
}

TEST(FilterCommandTest, TheSummaryCanBeJson) {
  FilterCommandOptions options = Options("json:/id");
  options.format = ReportFormat::kJson;
  const std::string summary = Filter(options, "{\"id\":1}\n{\"id\":1}\n{\"id\":2}\n{}\nx\n").summary;
  EXPECT_THAT(summary, HasSubstr("{\"records\":5,\"unique\":2,\"duplicates\":1,\"missing_id\":1,"
                                 "\"malformed\":1,\"missing_time\":0,\"seconds\":"));
  EXPECT_EQ(summary.find('\n'), summary.size() - 1);
}

// Files in a folder of their own.
class FilterFilesTest : public testing::Test {
 protected:
  FilterFilesTest() { std::filesystem::create_directories(folder_); }
  ~FilterFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-filter-files-", getpid());
};

TEST_F(FilterFilesTest, AreReadOneAfterTheOtherAsOneStream) {
  FilterCommandOptions options = Options("value");
  options.files = {File("a", "x\ny"), File("b", ""), File("c", "y\nz\nx\n")};
  const Outcome outcome = Filter(options, "not read\n");
  EXPECT_OK(outcome.status);
  EXPECT_EQ(outcome.output, "x\ny\nz\n") << "a last line without a newline gets one";
}

TEST_F(FilterFilesTest, MayBeCompressed) {
  const std::string plain = File("events", "a\nb\na\n");
  ASSERT_EQ(std::system(absl::StrCat("gzip -k ", plain).c_str()), 0);
  FilterCommandOptions options = Options("value");
  options.files = {plain + ".gz", plain};
  EXPECT_EQ(Filter(options, "").output, "a\nb\n");
}

TEST_F(FilterFilesTest, OneThatCannotBeReadIsRefusedBeforeAnythingIsWritten) {
  FilterCommandOptions options = Options("value");
  options.files = {File("a", "x\n"), (folder_ / "missing").string()};
  const Outcome outcome = Filter(options, "");
  EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("missing: cannot be read: No such file")));
  EXPECT_EQ(outcome.output, "");
}

TEST_F(FilterFilesTest, OddLinesAreNamedWithTheirFile) {
  FilterCommandOptions options = Options("json:/id");
  options.files = {File("a", "{\"id\":1}\n"), File("b", "{\"id\":2}\n{}\n")};
  EXPECT_THAT(Filter(options, "").summary, HasSubstr(absl::StrCat("first on line 2 of ", options.files[1])));
}

TEST(FilterCommandTest, LinesWithoutAnIdAreHandledAsAsked) {
  using WithoutId = FilterCommandOptions::WithoutId;
  const std::string input = "{\"id\":1}\n{}\n{\"id\n{\"id\":2}\n";
  FilterCommandOptions options = Options("json:/id");
  EXPECT_EQ(Filter(options, input).output, input);
  options.on_missing_id = WithoutId::kDrop;
  EXPECT_EQ(Filter(options, input).output, "{\"id\":1}\n{\"id\n{\"id\":2}\n");
  options.on_malformed = WithoutId::kDrop;
  const Outcome dropped = Filter(options, input);
  EXPECT_EQ(dropped.output, "{\"id\":1}\n{\"id\":2}\n");
  EXPECT_THAT(dropped.summary, HasSubstr("missing id             1  dropped, first on line 2: "));
  options.on_malformed = WithoutId::kFail;
  const Outcome failed = Filter(options, input);
  EXPECT_THAT(failed.status, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("line 3: ")));
  EXPECT_THAT(failed.status.message(), HasSubstr("--on-malformed"));
  EXPECT_EQ(failed.output, "{\"id\":1}\n") << "what came before it is written";
}

int CodeOf(const absl::Status& status) {
  std::ostringstream err;
  return ReportError(status, err);
}

TEST(FilterCommandTest, AnIdThatNoLineHasEndsWithACodeOfItsOwn) {
  FilterCommandOptions options = Options("json:/ID");
  options.quiet = true;
  const Outcome outcome = Filter(options, "{\"id\":1}\n{\"id\":1}\nbroken\n");
  EXPECT_EQ(outcome.output, "{\"id\":1}\n{\"id\":1}\nbroken\n");
  EXPECT_EQ(CodeOf(outcome.status), kExitNoId) << outcome.status;
  EXPECT_EQ(CodeOf(Filter(options, "{\"id\":1}\n{\"ID\":1}\n").status), kExitOk);
  EXPECT_EQ(CodeOf(Filter(options, "").status), kExitOk);
}

// All of them would be of one moment: within the horizon, whatever it is.
TEST(FilterCommandTest, ATimeThatNoLineHasEndsWithACodeOfItsOwn) {
  FilterCommandOptions options = Options("json:/id");
  options.time = Field::Parse("json:/t").value();
  const std::string usable = "{\"id\":1,\"t\":\"2026-01-31T12:00:00Z\"}\n";
  for (const char* time : {"", ",\"t\":\"2026-01-31T12:00:00\"", ",\"t\":\"31/Jan/2026:12:00:00\""}) {
    const std::string line = absl::StrCat("{\"id\":1", time, "}\n");
    const Outcome outcome = Filter(options, line + line);
    EXPECT_EQ(CodeOf(outcome.status), kExitNoId) << time << outcome.status;
    const Outcome some = Filter(options, line + usable);
    EXPECT_EQ(CodeOf(some.status), kExitOk) << time;
    EXPECT_THAT(some.summary, HasSubstr("no time"));
  }
  EXPECT_EQ(CodeOf(Filter(options, "").status), kExitOk);
  EXPECT_EQ(CodeOf(Filter(options, usable).status), kExitOk);
}

TEST(FilterCommandTest, QuietPrintsNoSummary) {
  FilterCommandOptions options = Options("value");
  options.quiet = true;
  EXPECT_EQ(Filter(options, "a\na\n").summary, "");
}

TEST(FilterCommandTest, WholeLinesAsIds) {
  EXPECT_EQ(Filter(Options("value"), "a\nb\na\n\n\nb\r\nb").output, "a\nb\n\n\nb\r\n");
}

TEST(FilterCommandTest, NothingInNothingOut) {
  const Outcome outcome = Filter(Options("value"), "");
  EXPECT_OK(outcome.status);
  EXPECT_EQ(outcome.output, "");
  EXPECT_THAT(outcome.summary, HasSubstr("lethe filter: 0 records"));
}

TEST(FilterCommandTest, TaggedDuplicatesStay) {
  FilterCommandOptions options = Options("json:/id");
  options.on_duplicate = FilterCommandOptions::OnDuplicate::kTag;
  const Outcome outcome = Filter(options, "{\"id\":1}\n \t{ \"id\":1}\r\n{\"id\":1}");
  EXPECT_EQ(outcome.output,
            "{\"id\":1}\n \t{\"lethe.verdict\":\"duplicate\", \"id\":1}\r\n"
            "{\"lethe.verdict\":\"duplicate\",\"id\":1}");
  EXPECT_THAT(outcome.summary, HasSubstr("duplicates             2  passed, tagged"));
  options.id = IdSpec::Parse("value").value();
  EXPECT_EQ(Filter(options, "a\na\n{}\n{}\n{ }\n{ }\n\n\n \n \n").output,
            "a\nlethe.verdict=duplicate\ta\n{}\n{\"lethe.verdict\":\"duplicate\"}\n"
            "{ }\n{\"lethe.verdict\":\"duplicate\" }\n\n\n \nlethe.verdict=duplicate\t \n");
  options.id = IdSpec::Parse("json:/0").value();
  EXPECT_EQ(Filter(options, "[1]\n[1,{}]\n").output, "[1]\nlethe.verdict=duplicate\t[1,{}]\n");
}

// A tagged object is an object still, and says so.
TEST(FilterCommandTest, TaggedObjectsAreJson) {
  FilterCommandOptions options = Options("json:/id");
  options.on_duplicate = FilterCommandOptions::OnDuplicate::kTag;
  const std::string output = Filter(options, "{\"id\":\"x\",\"n\":[{}]}\n{\"id\":\"x\",\"n\":[{}]}\n").output;
  RecordReader reader({.id = IdSpec::Parse("json:/lethe.verdict").value()});
  const std::string second = output.substr(output.find('\n') + 1);
  EXPECT_EQ(reader.Read({.key = std::nullopt, .value = second}).id, "sduplicate");
}

// tail -f: what can be told is told at once, though more may come.
TEST(FilterCommandTest, OutputIsNotWithheldWhileTheInputPauses) {
  Running command(Options("value"));
  command.Write("a\n");
  EXPECT_EQ(command.Read(2), "a\n");
  command.Write("a\nb\nhalf");
  EXPECT_EQ(command.Read(2), "b\n");
  command.Write(" a line\n");
  EXPECT_EQ(command.Read(12), "half a line\n");
  EXPECT_OK(command.End());
}

TEST(FilterCommandTest, EndsWellWhenNobodyReadsTheOutput) {
  Running command(Options("value"));
  command.Write("a\n");
  EXPECT_EQ(command.Read(2), "a\n");
  command.CloseOutput();
  command.Write("b\n");
  EXPECT_OK(command.End());
  EXPECT_THAT(command.summary(), HasSubstr("2 records"));
}

TEST(FilterCommandTest, AFullDeviceIsAnError) {
  int in[2];
  ASSERT_EQ(pipe2(in, O_CLOEXEC), 0);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(write(in[1], "a\n", 2), 2);
  close(in[1]);
  std::ostringstream summary;
  const absl::Status status = RunFilter(Options("value"), in[0], full, summary);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(summary.str(), HasSubstr("1 records"));
  close(full);
  close(in[0]);
}

TEST(FilterCommandTest, DamagedInputEndsWithTheReasonAndASummary) {
  const Outcome outcome = Filter(Options("value"), std::string("\x1f\x8b nonsense"));
  EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("reading standard input")));
  EXPECT_THAT(outcome.summary, HasSubstr("0 records"));
}

TEST(FilterCommandTest, RefusesWhatALineDoesNotHave) {
  std::ostringstream summary;
  for (const char* id :
       {"key", "header:id", "json:/a+key", "key.json:/id", "framed.json:/id", "protobuf:/1", "avro:/id"}) {
    const absl::Status status = RunFilter(Options(id), -1, -1, summary);
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a line has no key and no headers")));
  }
  FilterCommandOptions options = Options("json:/id");
  options.time = Field::Parse("header:time").value();
  EXPECT_THAT(RunFilter(options, -1, -1, summary).message(), HasSubstr("time 'header:time'"));
  options = Options("json:/id");
  options.stage.target_fpp = 2;
  EXPECT_THAT(RunFilter(options, -1, -1, summary), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(RunFilter(FilterCommandOptions(), -1, -1, summary),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(summary.str(), "");
}

// With a time in the records, an id is forgotten when the records say so, whatever the clock says; lines
// without an id move time too.
TEST(FilterCommandTest, TimeIsTheRecords) {
  FilterCommandOptions options = Options("json:/id");
  options.time = Field::Parse("json:/t").value();
  options.time_unit = TimeUnit::kMilliseconds;  // of 1970
  std::string early;
  std::string late;
  // Lines without an id, which move time and nothing else.
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&early, "{\"t\":", i, "}\n");
    absl::StrAppend(&late, "{\"t\":\"1970-01-05T00:00:00.", 100 + i, "Z\"}\n");
  }
  const std::string same = "{\"id\":\"same\"}\n";
  for (const AnyEngine& engine : {AnyEngine(Engine::kPublished), AnyEngine(Engine::kExact),
                                  AnyEngine(Engine::kCompact), AnyEngine(Reference::kRecycled)}) {
    options.stage.engine = engine.own;
    options.reference = engine.reference;
    options.stage.target_fpp = 1e-6;
    EXPECT_EQ(Filter(options, early + same + same).output, early + same) << EngineName(engine);
    EXPECT_EQ(Filter(options, early + same + late + same).output, early + same + late + same)
        << EngineName(engine);
  }
}

// Events that are one second apart; each id comes again after half of them.
std::string DayInUnit(int lines, int64_t first, int64_t step) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    absl::StrAppend(&text, "{\"id\":", i % (lines / 2), ",\"t\":", first + i * step, "}\n");
  }
  return text;
}

// Seconds taken for milliseconds are January 1970, where a horizon of an hour is one of 41 days: an id that
// comes again after two hours would be dropped.
TEST(FilterCommandTest, TimesInAnotherUnitAreRefusedBeforeTheyCostALine) {
  FilterCommandOptions options = Options("json:/id");
  options.time = Field::Parse("json:/t").value();
  const struct {
    const char* unit;
    int64_t first, step;
  } kCases[] = {{"--time-unit s", 1'700'000'000, 1},
                {"--time-unit us", 1'700'000'000'000'000, 1'000'000},
                {"--time-unit ns", 1'700'000'000'000'000'000, 1'000'000'000}};
  for (const auto& [unit, first, step] : kCases) {
    for (const int lines : {14'400, 10}) {
      const std::string text = DayInUnit(lines, first, step);
      const Outcome outcome = Filter(options, text);
      EXPECT_FALSE(outcome.status.ok()) << unit << " " << lines;
      EXPECT_THAT(outcome.status.message(), HasSubstr(unit));
      EXPECT_THAT(outcome.status.message(), HasSubstr("json:/t"));
      std::ostringstream err;
      EXPECT_EQ(ReportError(outcome.status, err), kExitNoId) << unit;
      EXPECT_EQ(outcome.output, text.substr(0, outcome.output.size())) << "a line before the error was lost";
    }
  }
}

TEST(FilterCommandTest, TimesInAUnitThatTheUserKnowsAreTaken) {
  FilterCommandOptions options = Options("json:/id");
  options.time = Field::Parse("json:/t").value();
  const struct {
    TimeUnit unit;
    int64_t first, step;
  } kCases[] = {{TimeUnit::kSeconds, 1'700'000'000, 1},
                {TimeUnit::kMilliseconds, 1'700'000'000'000, 1000},
                {TimeUnit::kMicroseconds, 1'700'000'000'000'000, 1'000'000},
                {TimeUnit::kNanoseconds, 1'700'000'000'000'000'000, 1'000'000'000}};
  for (const auto& [unit, first, step] : kCases) {
    options.time_unit = unit;
    const std::string text = DayInUnit(14'400, first, step);
    const Outcome outcome = Filter(options, text);
    EXPECT_OK(outcome.status);
    EXPECT_EQ(outcome.output, text) << "an id comes again after two hours, and the horizon is one";
  }
  options.time = std::nullopt;
  EXPECT_THAT(Filter(options, "{}\n").status, StatusIs(absl::StatusCode::kInvalidArgument))
      << "no time, but a unit";
}

// A few wrong times, or texts of the last century, are no wrong unit.
TEST(FilterCommandTest, TimesThatAreMostlyRightAreTaken) {
  FilterCommandOptions options = Options("json:/id");
  options.time = Field::Parse("json:/t").value();
  std::string text = DayInUnit(1000, 1'700'000'000'000, 1000);
  for (int i = 0; i < 49; ++i)
    absl::StrAppend(&text, "{\"id\":\"w", i, "\",\"t\":", 1'700'000'000 + i, "}\n");
  EXPECT_OK(Filter(options, text).status);
  text.clear();
  for (int i = 0; i < 500; ++i) absl::StrAppend(&text, "{\"id\":", i, ",\"t\":\"1995-07-01T00:00:01Z\"}\n");
  EXPECT_OK(Filter(options, text).status);
}

// FilterCommand in a process of its own, with a pipe on either side.
class Child {
 public:
  explicit Child(const FilterCommandOptions& options) {
    EXPECT_EQ(pipe2(in_, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out_, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(err_, O_CLOEXEC), 0);
    std::fflush(nullptr);  // what the child would say again
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in_[0], STDIN_FILENO);
      dup2(out_[1], STDOUT_FILENO);
      dup2(err_[1], STDERR_FILENO);
      _exit(FilterCommand(options));
    }
    close(in_[0]);
    close(out_[1]);
    close(err_[1]);
  }
  ~Child() {
    for (const int fd : {in_[1], out_[0], err_[0]}) close(fd);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Write(absl::string_view text) const {
    EXPECT_EQ(write(in_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // So many bytes of its output, or all that comes.
  std::string Output(size_t bytes) const { return ReadFrom(out_[0], bytes); }
  std::string Errors() const { return ReadFrom(err_[0], SIZE_MAX); }
  void Interrupt() const { EXPECT_EQ(kill(pid_, SIGINT), 0); }
  int ExitCode() const {
    int state = 0;
    EXPECT_EQ(waitpid(pid_, &state, 0), pid_);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
  }

 private:
  static std::string ReadFrom(int fd, size_t bytes) {
    std::string text;
    char c;
    while (text.size() < bytes && read(fd, &c, 1) == 1) text += c;
    return text;
  }

  int in_[2];
  int out_[2];
  int err_[2];
  pid_t pid_;
};

// What was read is out, half a line is not, and the summary is there.
TEST(FilterCommandTest, CtrlCEndsInOrder) {
  const Child child(Options("value"));
  child.Write("a\nb\na\nhalf");
  EXPECT_EQ(child.Output(4), "a\nb\n");
  child.Interrupt();
  EXPECT_EQ(child.ExitCode(), 130);
  EXPECT_EQ(child.Output(SIZE_MAX), "");
  const std::string summary = child.Errors();
  EXPECT_THAT(summary, HasSubstr("lethe filter: 3 records in "));
  EXPECT_THAT(summary, HasSubstr("duplicates             1  dropped"));
}

// Against a set that forgets nothing, in pieces of any size.
TEST(FilterCommandTest, RandomLinesAgreeWithASet) {
  std::mt19937_64 random(TestSeed());
  std::string input;
  std::string expected;
  std::set<uint64_t> seen;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t id = random() % 60'000;
    std::string line =
        absl::StrCat("{\"n\":", i, ",\"id\":", id, ",\"pad\":\"", std::string(random() % 100, 'p'), "\"}\n");
    if (random() % 50 == 0) line = absl::StrCat("{\"n\":", i, "}\n");
    const bool has_id = absl::StrContains(line, "\"id\"");
    input += line;
    if (!has_id || seen.insert(id).second) expected += line;
  }
  const Outcome outcome = Filter(Options("json:/id"), input);
  EXPECT_OK(outcome.status);
  EXPECT_EQ(outcome.output == expected, true) << outcome.summary;
}

// Each engine finds the duplicates that follow at once; those that promise less than a filter say so.
TEST(FilterCommandTest, EveryEngineFiltersAndNamesItsLimits) {
  for (const absl::string_view name : {"compact", "published", "exact", "bloom", "recycled", "opposite"}) {
    FilterCommandOptions options = Options("value");
    const AnyEngine engine = ParseEngine(name).value();
    options.stage.engine = engine.own;
    options.reference = engine.reference;
    options.stage.target_fpp = 1e-6;
    options.stage.hash_seed = 1;  // three slots of `opposite`
    // So long that no multiple of it, on which `recycled` forgets, falls between two lines.
    options.stage.horizon = absl::Hours(24 * 365 * 50);
    const Outcome outcome = Filter(options, "a\nb\na\nc\nb\n");
    EXPECT_OK(outcome.status) << name;
    EXPECT_EQ(outcome.output, "a\nb\nc\n") << name;
    const std::string warning =
        absl::StrCat("lethe filter: engine ", name, ": ", BrokenPromise(engine), "\n");
    EXPECT_EQ(absl::StrContains(outcome.summary, warning), !BrokenPromise(engine).empty());
  }
}

TEST(FilterCommandTest, TheSummaryNamesTheEffectOfTheMemoryLimit) {
  std::string lines;
  for (int i = 0; i < 20'000; ++i) absl::StrAppend(&lines, i, "\n");
  FilterCommandOptions options = Options("value");
  options.stage.memory_limit_bytes = 64 << 10;
  options.stage.audit_share = 0;
  EXPECT_THAT(Filter(options, lines).summary,
              HasSubstr("duplicates may have passed within the horizon; raise it"));
}

}  // namespace
}  // namespace lethe
