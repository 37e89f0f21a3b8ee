// `lethe demo --adapt`: filters that follow a load, before one's eyes.
#ifndef LETHE_SRC_CLI_DEMO_ADAPT_DEMO_H_
#define LETHE_SRC_CLI_DEMO_ADAPT_DEMO_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lethe {

struct AdaptDemoOptions {
  int64_t events = 0;            // of the day, without copies
  std::string brokers;           // empty: a broker inside the program
  std::optional<uint64_t> seed;  // a random one unless set
  absl::Duration day;            // how long the day takes
  // Of the status page of `published`; that of `compact` has the next one. Unless set, kDemoPort if it is
  // free.
  std::optional<int> port;
  bool serve = false;  // go on serving the status pages after the day
};

// Sends a DemoDay, whose records have the times of that day, to a daemon with `engine: published` and to one
// with `engine: compact`, both with the day's horizon. Prints a chart on a terminal, else a line for each
// half hour, and a table at the end. Whether no duplicate passed, no more events were lost than the target
// allows, and each filter's modelled FPP stayed under the target.
absl::StatusOr<bool> RunAdaptDemo(const AdaptDemoOptions& options);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_DEMO_ADAPT_DEMO_H_
