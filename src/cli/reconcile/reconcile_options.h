// The options of one side of `lethe reconcile`.
#ifndef LETHE_SRC_CLI_RECONCILE_RECONCILE_OPTIONS_H_
#define LETHE_SRC_CLI_RECONCILE_RECONCILE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lethe/reconcile.h"
#include "src/cli/config/setting.h"
#include "src/pipeline/options/options.h"
#include "src/record/record_reader.h"

namespace lethe {

// The records that are compared, by their times; what is not given has its default.
struct ReconcileWindow {
  std::optional<absl::Duration> last;
  std::optional<absl::Time> since;
  std::optional<absl::Time> until;
  std::optional<absl::Duration> settle;

  bool is_given() const { return last || since || until || settle; }
};

struct ReconcileCommandOptions {
  enum class Copy { kNone, kToPeer, kFromPeer, kBoth };

  std::string brokers;
  std::string topic;
  IdSpec id;
  bool serves = false;       // it is the peer, and speaks on its standard input and output
  std::optional<Copy> copy;  // what the initiator asks for; what the peer allows, as its own side sees it
  // The initiator's alone:
  std::string peer;  // a command
  ReconcileWindow window;
  std::optional<ReconcileMethod> method;
  ReportFormat format = ReportFormat::kText;

  int64_t memory_bytes = int64_t{256} << 20;
  absl::Duration timeout = absl::Minutes(1);
  registry::RegistryOptions schema_registry;
  GivenProperties properties;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_RECONCILE_RECONCILE_OPTIONS_H_
