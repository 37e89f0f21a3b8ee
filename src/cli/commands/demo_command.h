// `lethe demo`: the whole pipeline, with clients that retry, and a comparison with the truth.
#ifndef LETHE_SRC_CLI_COMMANDS_DEMO_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_DEMO_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lethe {

struct DemoOptions {
  int64_t events = 100'000;
  int64_t rate = 0;                       // events per second; 0: as fast as they go
  std::string brokers;                    // empty: a broker inside the program
  int kill = 0;                           // how often the daemon is killed on the way
  std::optional<uint64_t> seed;           // of the events and the kills; a random one unless set
  bool avro = false;                      // the events' form: Avro behind a registry's frame, or JSON
  bool serve = false;                     // go on serving the status page after the last event
  bool adapt = false;                     // RunAdaptDemo() instead; rate and kill are not for it
  absl::Duration day = absl::Minutes(1);  // of --adapt
  std::optional<int> port;                // of the status page
};

// InvalidArgument if they do not fit together.
absl::Status CheckDemo(const DemoOptions& options);

// The exit code: kExitOk only if nothing was lost and no duplicate passed.
int DemoCommand(const DemoOptions& options);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_DEMO_COMMAND_H_
