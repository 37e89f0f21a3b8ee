// A day of real Wikipedia edits that their clients have sent again now and then.
//
// The edits and the program that repeats some of them are not part of this project: they are looked for in
// ../shared beside it, or where LETHE_REAL_EVENTS points (the file, or its folder).
#ifndef LETHE_TESTS_SUPPORT_REAL_EVENTS_H_
#define LETHE_TESTS_SUPPORT_REAL_EVENTS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/kafka_client.h"
#include "tests/support/oracle.h"

namespace lethe::test {

struct RealEvents {
  std::filesystem::path events;
  std::filesystem::path with_retries;

  // nullopt if they are not here; `source_dir` is the project's.
  static std::optional<RealEvents> Find(const std::filesystem::path& source_dir);
};

// One record per line, with the page as its key: copies have the same, so they meet in one partition. The id
// is at /id.
struct RealStream {
  std::vector<Record> records;
  size_t unique = 0;
  Totals totals;  // by channel
};

// The whole day `repeat` times, each time with new ids. The same seed gives the same stream.
absl::StatusOr<RealStream> MakeRealStream(const RealEvents& source, uint64_t seed, int repeat);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_REAL_EVENTS_H_
