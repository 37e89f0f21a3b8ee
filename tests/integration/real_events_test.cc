// `lethe run` end to end, on a day of real Wikipedia edits that their clients have sent again now and then.
//
// The edits and the program that repeats some of them are not part of this project: they are looked for in
// ../shared beside it, or where LETHE_REAL_EVENTS points (the file, or its folder).
#include <gtest/gtest.h>
#include <simdjson.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/pipeline.h"
#include "tests/support/process.h"
#include "tests/support/seed.h"

namespace lethe::test {
namespace {

namespace fs = std::filesystem;

struct Stream {
  std::vector<Record> records;
  size_t unique = 0;
  Totals totals;
};

struct Source {
  fs::path events;
  fs::path with_retries;
};

// nullopt if they are not here.
std::optional<Source> FindSource() {
  const char* given = std::getenv("LETHE_REAL_EVENTS");
  fs::path events =
      given != nullptr ? fs::path(given) : fs::path(LETHE_SOURCE_DIR) / ".." / "shared" / "data";
  if (fs::is_directory(events)) events /= "wiki-edits-2015-09-12.ndjson.gz";
  for (const fs::path& beside :
       {events.parent_path(), fs::path(LETHE_SOURCE_DIR) / ".." / "shared" / "data"}) {
    const fs::path program = beside / ".." / "tools" / "with_retries.py";
    if (fs::exists(events) && fs::exists(program)) return Source{events, program};
  }
  return std::nullopt;
}

// One record per line, with the page as its key: copies have the same, so they meet in one partition.
absl::StatusOr<Stream> Parse(const std::string& lines, const std::string& expect_file) {
  Stream stream;
  simdjson::dom::parser parser;
  for (size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Record record;
    record.value = lines.substr(begin, end - begin);
    std::string_view page;
    if (parser.parse(*record.value)["page"].get_string().get(page)) {
      return absl::InvalidArgumentError(absl::StrCat("no page in ", *record.value));
    }
    record.key.emplace(page);
    stream.records.push_back(std::move(record));
  }
  simdjson::dom::element expected;
  simdjson::dom::object totals;
  uint64_t count = 0, unique = 0;
  if (parser.load(expect_file).get(expected) || expected["lines"].get(count) ||
      expected["unique"].get(unique) || expected["totals"].get(totals) || count != stream.records.size()) {
    return absl::InvalidArgumentError(absl::StrCat(expect_file, " does not describe the stream"));
  }
  stream.unique = unique;
  for (const auto& [channel, total] : totals) stream.totals[std::string(channel)] = total.get_int64().value();
  return stream;
}

absl::StatusOr<Stream> MakeStream(const Source& source, uint64_t seed, int repeat) {
  const std::string expect_file = absl::StrCat(testing::TempDir(), "/lethe_expect.", getpid(), ".json");
  ProcessOptions python;
  python.args = {"python3",  source.with_retries,  source.events, "--seed",   absl::StrCat(seed),
                 "--repeat", absl::StrCat(repeat), "--expect",    expect_file};
  const absl::StatusOr<Finished> made = RunToEnd(python, absl::Minutes(2));
  if (!made.ok()) return made.status();
  if (made->exit_code != 0) return absl::InternalError(made->err);
  absl::StatusOr<Stream> stream = Parse(made->out, expect_file);
  fs::remove(expect_file);
  return stream;
}

absl::StatusOr<std::unique_ptr<Pipeline>> NewPipeline() {
  PipelineOptions options;
  options.program = LETHE_PROGRAM;
  options.name = "edits";
  options.counter_key = "json:/channel";
  options.counter_delta = "json:/delta";
  return Pipeline::Create(options);
}

class RealEventsTest : public testing::Test {
 protected:
  void SetUp() override {
    source_ = FindSource();
    if (!source_) GTEST_SKIP() << "no real events: neither ../shared nor LETHE_REAL_EVENTS has them";
  }

  void EachEditOnce(uint64_t seed) {
    const absl::StatusOr<Stream> stream = MakeStream(*source_, seed, 1);
    ASSERT_TRUE(stream.ok()) << stream.status();
    EXPECT_GT(stream->records.size(), stream->unique);
    const auto pipeline = NewPipeline();
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    ASSERT_TRUE((*pipeline)->Send(stream->records).ok());
    const absl::Status ended = (*pipeline)->RunToEnd();
    ASSERT_TRUE(ended.ok()) << ended;
    EXPECT_TRUE((*pipeline)->ExactlyOnce(stream->totals));
  }

  std::optional<Source> source_;
};

TEST_F(RealEventsTest, EachEditOnce) { EachEditOnce(1); }

TEST_F(RealEventsTest, EachEditOnceWithOtherRetries) { EachEditOnce(TestSeed()); }

TEST_F(RealEventsTest, EachEditOnceThroughTenKills) {
  const uint64_t seed = TestSeed();
  const absl::StatusOr<Stream> stream = MakeStream(*source_, seed, 3);
  ASSERT_TRUE(stream.ok()) << stream.status();
  std::mt19937_64 random(seed);
  const auto pipeline = NewPipeline();
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const absl::Status ended = (*pipeline)->RunKilled(10, stream->records, random);
  ASSERT_TRUE(ended.ok()) << ended;
  EXPECT_TRUE((*pipeline)->ExactlyOnce(stream->totals));
}

TEST_F(RealEventsTest, DemoIsExact) {
  ProcessOptions options;
  options.args = {LETHE_PROGRAM, "demo", "--input", source_->events.string()};
  const auto demo = RunToEnd(options, absl::Minutes(3));
  ASSERT_TRUE(demo.ok()) << demo.status();
  EXPECT_EQ(demo->exit_code, 0) << demo->out << demo->err;
}

}  // namespace
}  // namespace lethe::test
