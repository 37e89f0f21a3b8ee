// Reload of the configuration while the daemon runs.
#ifndef LETHE_SRC_CLI_CONFIG_RELOAD_H_
#define LETHE_SRC_CLI_CONFIG_RELOAD_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "connectors/kafka/daemon.h"
#include "src/cli/config/config.h"

namespace lethe {

// A key whose value differs from the running configuration.
struct ConfigChange {
  std::string key;          // "commit_interval", "kafka.linger.ms"
  bool is_applied = false;  // it runs with the new value
  // As text, for people, if the key can be changed while running; empty if not: it may be a secret.
  std::string before;
  std::string after;
  // Why it could not be applied now, if the key can be changed at all.
  std::string why_not;
};

// How a key is changed while the daemon runs, for the reference; empty for those that cannot be: they are
// built into clients, filters, or what has been promised.
absl::string_view HowReloaded(absl::string_view key);

// Applies what can be of `read` to the daemon and to `running`, the configuration that it runs with, and says
// what differs: in the order of the settings, then the properties. The next call compares with what runs
// then.
std::vector<ConfigChange> Reload(const RunConfig& read, RunConfig& running, kafka::Daemon& daemon);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_RELOAD_H_
