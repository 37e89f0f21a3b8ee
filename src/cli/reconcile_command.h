// `lethe reconcile`: which events does one of two topics have and the other lack? Rsync for topics.
//
//   lethe reconcile --brokers a:9092 --topic orders --id json:/order/id --last 24h
//       --peer 'ssh site-b lethe reconcile --serve --brokers b:9092 --topic orders --id json:/order/id'
//
// Each side reads its own topic and keeps a hash of each id of the window (reconcile_side.h); the two find
// the difference of their sets by lethe/reconcile.h, over the standard input and output of the peer's
// command.
//
// Invariants:
// 1. An id is called missing if and only if one side has it in the window and the other nowhere in the window
//    and `settle` around it, in what was committed when it looked. What nobody can know is not called
//    missing: the window begins where both logs do, and a transaction that is open is waited for.
// 2. With `copy` a side that lacks records fences other copies before it looks, and commits what it gets in
//    one transaction (of more missing records than memory holds, in several, each after the one before). So
//    whoever dies, and whenever: each id is there once after a run that has ended well.
// 3. Memory follows `memory` and not the topic: a window that does not fit is compared in several passes,
//    each of the ids whose hash has another remainder.
//
// What would catch a lie: tests/integration/reconcile_topics_test.cc writes two real clusters from a list
// that says for each event where it is and when, and compares the report with the list (sets, counts, times,
// places), with one pass and with many; it kills either side at random bytes of the conversation, and counts
// each id in both topics afterwards, and once more after a run that ended well.
#ifndef LETHE_SRC_CLI_RECONCILE_COMMAND_H_
#define LETHE_SRC_CLI_RECONCILE_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "connectors/kafka/options/options.h"
#include "lethe/reconcile.h"
#include "src/cli/setting.h"
#include "src/record/record_reader.h"

namespace lethe {

struct ReconcileCommandOptions {
  enum class Output { kText, kJson };
  enum class Copy { kNone, kToPeer, kFromPeer, kBoth };

  std::string brokers;
  std::string topic;
  IdSpec id;
  bool serves = false;  // it is the peer, and speaks on its standard input and output
  // The initiator's alone:
  std::string peer;  // a command
  std::optional<absl::Duration> last;
  std::optional<absl::Time> since;
  std::optional<absl::Time> until;
  std::optional<absl::Duration> settle;
  std::optional<Copy> copy;
  std::optional<ReconcileMethod> method;
  Output output = Output::kText;

  int64_t memory_bytes = int64_t{256} << 20;
  absl::Duration timeout = absl::Minutes(1);
  std::vector<kafka::Property> properties;
};

absl::Span<const Setting<ReconcileCommandOptions>> ReconcileSettings();

// What one flag alone cannot tell. InvalidArgument says what is wrong.
absl::Status CheckReconcile(const ReconcileCommandOptions& options);

// The exit code: 0 if nothing is missing (any more), 1 if something is, 2 for an error. The report goes to
// `out`, errors to `err`; a bar to stderr if that is a terminal.
int RunReconcile(const ReconcileCommandOptions& options, std::ostream& out, std::ostream& err);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_RECONCILE_COMMAND_H_
