// The disposition of a record: what is done with it, and how it is counted. It is decided here alone.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_DISPOSITION_H_
#define LETHE_SRC_PIPELINE_OUTPUT_DISPOSITION_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "lethe/event.h"
#include "src/pipeline/options/policies.h"
#include "src/pipeline/report/record_counts.h"
#include "src/record/record_reader.h"

namespace lethe {

// What is known of a record. Before it is judged its verdict is kUnique.
struct RecordFacts {
  RecordFields::State id_state = RecordFields::State::kPresent;
  Verdict verdict = Verdict::kUnique;  // only looked at if the id is present
  bool is_undeliverable = false;       // the topic that it is for rejects it for good
  bool is_divert_refused = false;      // and so does the topic for diverted records
};

struct Disposition {
  Action action = Action::kPass;  // kFail: its partition stops in front of it
  absl::string_view kind;         // in headers and logs: "duplicate"
  absl::string_view policy;       // that decided: "on_duplicate"; empty: none was asked
  absl::string_view reason;  // why it is no unique event; empty: the record's reader says it, or it is one
  int64_t RecordCounts::*kind_count = nullptr;
  int64_t RecordCounts::*action_count = nullptr;  // null for kFail
  bool is_event = false;                          // counters count it

  bool is_written() const { return action == Action::kPass || action == Action::kTag; }
};

// A function of its arguments alone.
Disposition Dispose(const RecordFacts& record, const Policies& policies);

// Of an event that is written and that a counter cannot count: kPass, or kDivert for a copy of it.
Action DisposeUncountable(bool is_copy_refused, const Policies& policies);

// Of records that cannot be fetched: kDrop or kFail. A replay passes over what the live run was done with.
Action DisposeUnreadable(bool is_replay, const Policies& policies);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_DISPOSITION_H_
