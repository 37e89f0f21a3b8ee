// The report of a reconciliation, for people and for programs.
#ifndef LETHE_SRC_CLI_RECONCILE_RECONCILE_TEXT_H_
#define LETHE_SRC_CLI_RECONCILE_RECONCILE_TEXT_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "src/cli/reconcile/reconcile_messages.h"
#include "src/cli/terminal/terminal.h"

namespace lethe {

struct ReconcileText {
  std::string id;
  ReconcileAsk window;         // that was compared
  int64_t asked_begin_ms = 0;  // earlier than the window's where a log begins later
  SideReport here;
  SideReport there;
  int64_t passes = 0;
  int table_rounds = 0;
  int filter_rounds = 0;
  // Sent and received: by the comparison, and all with what was copied.
  uint64_t compare_bytes = 0;
  uint64_t bytes = 0;
  // What the comparison costs with one method alone, and what all keys of one side take.
  uint64_t bytes_by_filters = 0;
  uint64_t bytes_by_tables = 0;
  uint64_t bytes_of_all_keys = 0;
  absl::Duration elapsed;

  // Ids that are missing now: that were, and were not copied.
  int64_t missing_there() const { return here.only - here.copied - here.gone; }
  int64_t missing_here() const { return there.only - there.copied - there.gone; }
  bool are_equal() const { return missing_here() == 0 && missing_there() == 0; }
};

// In 80 columns, except for longer names.
void WriteReconcile(const ReconcileText& text, const TextStyle& style, std::ostream& out);

// One object on one line; connectors/README.md has its members.
void WriteReconcileJson(const ReconcileText& text, std::ostream& out);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_RECONCILE_RECONCILE_TEXT_H_
