// Where the real events are, for tests with and without a broker.
#ifndef LETHE_TESTS_SUPPORT_REAL_EVENTS_FILE_H_
#define LETHE_TESTS_SUPPORT_REAL_EVENTS_FILE_H_

#include <cstdlib>
#include <filesystem>

namespace lethe::test {

struct RealEventsFile {
  std::filesystem::path events;        // ndjson.gz
  std::filesystem::path with_retries;  // the program that makes a stream of them
  int days = 1;                        // of the sample, so many are as many events as a day has
};

// The whole day from where LETHE_REAL_EVENTS points (the file, or its folder) or from ../shared beside the
// project; else the sample of it that the project brings. `source_dir` is the project's.
inline RealEventsFile FindRealEvents(const std::filesystem::path& source_dir) {
  const std::filesystem::path own = source_dir / "tests/support/real_events";
  const std::filesystem::path program = own / "with_retries.py";
  const char* given = std::getenv("LETHE_REAL_EVENTS");
  std::filesystem::path day = given != nullptr ? std::filesystem::path(given) : source_dir / "../shared/data";
  if (std::filesystem::is_directory(day)) day /= "wiki-edits-2015-09-12.ndjson.gz";
  if (given != nullptr || std::filesystem::exists(day)) return {day, program};
  return {own / "wiki-edits-2015-09-12-sample.ndjson.gz", program, 17};
}

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_REAL_EVENTS_FILE_H_
