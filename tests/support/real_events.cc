#include "tests/support/real_events.h"

#include <gtest/gtest.h>
#include <simdjson.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/support/process.h"

namespace lethe::test {

namespace fs = std::filesystem;

namespace {

absl::StatusOr<RealStream> Parse(const std::string& lines, const std::string& expect_file) {
  RealStream stream;
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

}  // namespace

absl::StatusOr<RealStream> MakeRealStream(const RealEventsFile& source, uint64_t seed, int repeat) {
  const std::string expect_file = absl::StrCat(testing::TempDir(), "/lethe_expect.", getpid(), ".json");
  ProcessOptions python;
  python.args = {"python3",
                 source.with_retries,
                 source.events,
                 "--seed",
                 absl::StrCat(seed),
                 "--repeat",
                 absl::StrCat(repeat * source.days),
                 "--expect",
                 expect_file};
  const absl::StatusOr<Finished> made = RunToEnd(python, absl::Minutes(2));
  if (!made.ok()) return made.status();
  if (made->exit_code != 0) return absl::InternalError(made->err);
  absl::StatusOr<RealStream> stream = Parse(made->out, expect_file);
  fs::remove(expect_file);
  return stream;
}

}  // namespace lethe::test
