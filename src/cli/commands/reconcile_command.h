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
//    and `settle` around it, in what was committed when it looked. The window begins
//    where both logs do, and an open transaction is awaited, so nothing unknown is called missing.
// 2. With `copy` a side that lacks records fences other copies before it looks, and commits what it gets in
//    one transaction, or in several, one after the other, if memory does not hold the missing records. So
//    each id is there once after a successful run, whichever side died before, and whenever.
// 3. Memory follows `memory` and not the topic: a window that does not fit is compared in several passes,
//    each of the ids whose hash has another remainder.
//
// The test of all this: tests/integration/reconcile_topics_test.cc writes two real clusters from a list
// that says for each event where it is and when, and compares the report with the list (sets, counts, times,
// places), with one pass and with many; it kills either side at random bytes of the conversation, and counts
// each id in both topics afterwards, and once more after a run that ended well.
#ifndef LETHE_SRC_CLI_COMMANDS_RECONCILE_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_RECONCILE_COMMAND_H_

#include <ostream>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/cli/config/setting.h"
#include "src/cli/reconcile/reconcile_messages.h"
#include "src/cli/reconcile/reconcile_options.h"

namespace lethe {

absl::Span<const Setting<ReconcileCommandOptions>> ReconcileSettings();

// Checks combinations of flags. InvalidArgument says what is wrong.
absl::Status CheckReconcile(const ReconcileCommandOptions& options);

// Whether the side with --serve allows what the other asks for. PermissionDenied: it does not, and says how
// to allow it.
absl::Status CheckAllowed(const ReconcileCommandOptions& options, const ReconcileAsk& ask);

// The exit code: 0 if nothing is missing (any more), 1 if something is, 2 for an error. The report goes to
// `out`, errors to `err`; a bar to stderr if that is a terminal.
int RunReconcile(const ReconcileCommandOptions& options, std::ostream& out, std::ostream& err);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_RECONCILE_COMMAND_H_
