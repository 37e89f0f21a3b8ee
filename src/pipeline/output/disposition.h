// The disposition of a record: pass, drop, tag, divert or fail, and how it is counted. Decided here alone.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_DISPOSITION_H_
#define LETHE_SRC_PIPELINE_OUTPUT_DISPOSITION_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "lethe/event.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/report.h"
#include "src/record/record_reader.h"

namespace lethe {

struct RecordFacts {
  RecordFields::State id_state = RecordFields::State::kPresent;
  Verdict verdict = Verdict::kUnique;  // only used if the id is present; kUnique before it is judged
  bool is_undeliverable = false;       // the output rejects it for good
  bool is_divert_refused = false;      // and so does the dead-letter topic
  bool has_suspicious_id = false;      // a duplicate of an id that many events share (SharedIdWatch)
};

struct Disposition {
  Action action = Action::kPass;  // kFail: its partition stops before it
  absl::string_view kind;         // in headers and logs: "duplicate"
  absl::string_view policy;       // "on_duplicate"; empty for a unique record
  absl::string_view reason;       // empty for a unique record, or if the record's reader has it
  int64_t RecordCounts::*kind_count = nullptr;
  int64_t RecordCounts::*action_count = nullptr;  // null for kFail

  bool is_written() const { return action == Action::kPass || action == Action::kTag; }
};

// A pure function.
Disposition Dispose(const RecordFacts& record, const Policies& policies);

// For an event that is written and that a counter cannot count: kPass, or kDivert for a copy of it.
Action DisposeUncountable(bool is_copy_refused, const Policies& policies);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_DISPOSITION_H_
