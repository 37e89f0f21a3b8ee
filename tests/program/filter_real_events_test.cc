// Real events, as a client sends them that retries: the filter command gives back each one once, exactly.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/cli/commands/filter_command.h"
#include "tests/support/real_events_file.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class FilterRealEventsTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const test::RealEventsFile source = test::FindRealEvents(LETHE_SOURCE_DIR);
    std::string path = absl::StrCat(::testing::TempDir(), "lethe_real_XXXXXX");
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
    const std::string command = absl::StrCat(
        "python3 '", source.with_retries.string(), "' '", source.events.string(), "' --seed ", GetParam(),
        " --rate 0.1 --expect '", folder_, "/truth.json' > '", folder_, "/stream.ndjson'");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    truth_ = ReadFile(folder_ + "/truth.json");
    stream_ = ReadFile(folder_ + "/stream.ndjson");
  }
  void TearDown() override {
    for (const char* name : {"/truth.json", "/stream.ndjson", "/out.ndjson"})
      unlink((folder_ + name).c_str());
    rmdir(folder_.c_str());
  }

  int64_t Truth(const std::string& name) {
    RecordReader reader({.id = IdSpec::Parse("json:/" + name).value()});
    const RecordFields& fields = reader.Read({.key = std::nullopt, .value = truth_});
    int64_t number = -1;
    EXPECT_TRUE(absl::SimpleAtoi(fields.id.substr(1), &number)) << name;
    return number;
  }

  // Runs the command from file to file; gives its output.
  std::string Filter(const FilterCommandOptions& options, std::string* summary) {
    const int in = open((folder_ + "/stream.ndjson").c_str(), O_RDONLY | O_CLOEXEC);
    const int out = open((folder_ + "/out.ndjson").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    std::ostringstream err;
    const absl::Status status = RunFilter(options, in, out, err);
    EXPECT_OK(status);
    close(in);
    close(out);
    *summary = err.str();
    return ReadFile(folder_ + "/out.ndjson");
  }

  FilterCommandOptions Options() const {
    FilterCommandOptions options;
    options.id = IdSpec::Parse("json:/id").value();
    options.stage.horizon = absl::Hours(24);
    options.stage.target_fpp = 1e-9;
    return options;
  }

  std::string folder_;
  std::string truth_;
  std::string stream_;
};

// The first copy of each line, in order. The copies are exact, and there are no two events of one id.
std::string FirstCopies(const std::string& stream) {
  std::string unique;
  std::set<std::string> seen;
  std::istringstream lines(stream);
  for (std::string line; std::getline(lines, line);) {
    if (seen.insert(line).second) unique += line + "\n";
  }
  return unique;
}

int64_t Lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// Each figure of the summary is there, in this order and form.
void ExpectFigures(const std::string& summary, int64_t unique, int64_t duplicates) {
  EXPECT_THAT(summary, HasSubstr(absl::StrCat("lethe filter: ", unique + duplicates, " records")));
  std::istringstream words(summary.substr(summary.find("unique")));
  std::string name;
  std::string rest;
  int64_t count = -1;
  words >> name >> count;
  EXPECT_EQ(count, unique) << summary;
  std::getline(words, rest);
  words >> name >> count;
  EXPECT_EQ(count, duplicates) << summary;
}

TEST_P(FilterRealEventsTest, EachEventOnceByTheClock) {
  ASSERT_EQ(Lines(stream_), Truth("lines"));
  std::string summary;
  const std::string output = Filter(Options(), &summary);
  EXPECT_EQ(Lines(output), Truth("unique"));
  EXPECT_TRUE(output == FirstCopies(stream_)) << summary;
  ExpectFigures(summary, Truth("unique"), Truth("duplicates"));
}

// By the events' own times, of which 45 are days or weeks off: none of them makes the filter forget.
TEST_P(FilterRealEventsTest, EachEventOnceByItsOwnTime) {
  FilterCommandOptions options = Options();
  options.time = Field::Parse("json:/time").value();
  std::string summary;
  const std::string output = Filter(options, &summary);
  EXPECT_TRUE(output == FirstCopies(stream_)) << summary;
  ExpectFigures(summary, Truth("unique"), Truth("duplicates"));
}

// By whole lines, and by several fields joined.
TEST_P(FilterRealEventsTest, EachEventOnceByOtherIds) {
  for (const char* id : {"value", "json:/id+json:/page+json:/delta"}) {
    FilterCommandOptions options = Options();
    options.id = IdSpec::Parse(id).value();
    std::string summary;
    EXPECT_TRUE(Filter(options, &summary) == FirstCopies(stream_)) << id << "\n" << summary;
  }
}

TEST_P(FilterRealEventsTest, TagKeepsEveryEvent) {
  FilterCommandOptions options = Options();
  options.on_duplicate = FilterCommandOptions::OnDuplicate::kTag;
  std::string summary;
  const std::string output = Filter(options, &summary);
  EXPECT_EQ(Lines(output), Lines(stream_));
  std::string untagged;
  int64_t tagged = 0;
  std::istringstream lines(output);
  constexpr absl::string_view kTag = "\"lethe.verdict\":\"duplicate\",";
  for (std::string line; std::getline(lines, line); untagged += line + "\n") {
    if (!absl::StrContains(line, kTag)) continue;
    line.erase(1, kTag.size());
    ++tagged;
  }
  EXPECT_EQ(tagged, Truth("duplicates"));
  EXPECT_TRUE(untagged == stream_);
}

// 1 is the tool's own default.
INSTANTIATE_TEST_SUITE_P(Seeds, FilterRealEventsTest, ::testing::Values(1, 20150912));

}  // namespace
}  // namespace lethe
