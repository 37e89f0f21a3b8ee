// What becomes of a configuration that is read again while the daemon runs.
#ifndef LETHE_SRC_CLI_RELOAD_H_
#define LETHE_SRC_CLI_RELOAD_H_

#include <string>
#include <vector>

#include "src/cli/config.h"

namespace lethe {

struct ConfigChange {
  std::string key;    // "commit_interval", "kafka.linger.ms"
  bool live = false;  // it can be applied while running
  // As text, for people; empty for what is not live: it may be a secret.
  std::string before;
  std::string after;
};

// What differs, in the order of the settings, then the properties. Live are log.level and commit_interval:
// everything else is built into consumers, producers, filters or the promise itself.
std::vector<ConfigChange> Changes(const RunConfig& running, const RunConfig& read);

// Takes over what is live, so that the next comparison is with what runs.
void TakeOver(const RunConfig& read, RunConfig& running);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_RELOAD_H_
