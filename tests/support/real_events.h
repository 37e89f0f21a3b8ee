// A day of real Wikipedia edits that their clients have sent again now and then.
#ifndef LETHE_TESTS_SUPPORT_REAL_EVENTS_H_
#define LETHE_TESTS_SUPPORT_REAL_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/kafka_client.h"
#include "tests/support/oracle.h"
#include "tests/support/real_events_file.h"

namespace lethe::test {

// One record per line, with the page as its key: copies have the same, so they meet in one partition. The id
// is at /id.
struct RealStream {
  std::vector<Record> records;
  size_t unique = 0;
  Totals totals;  // by channel
};

// As many events as `repeat` whole days have, each with an id of its own. The same seed gives the same
// stream.
absl::StatusOr<RealStream> MakeRealStream(const RealEventsFile& source, uint64_t seed, int repeat);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_REAL_EVENTS_H_
