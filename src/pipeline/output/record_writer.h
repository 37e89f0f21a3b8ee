// What becomes of a record once it is judged.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_RECORD_WRITER_H_
#define LETHE_SRC_PIPELINE_OUTPUT_RECORD_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/pipeline/clock/repeats.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/output/disposition.h"
#include "src/pipeline/output/router.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/task.h"
#include "src/record/record_reader.h"

namespace lethe {

// What one counter makes of a record that is meant for it.
struct CounterChange {
  size_t counter = 0;  // of the options'
  bool countable = false;
  absl::string_view text;  // the key, or why there is nothing to count
  int64_t delta = 0;
};

// A record of the input, and what is known of it.
struct JudgedRecord {
  const InputRecord* input = nullptr;
  RecordFields::State id_state = RecordFields::State::kPresent;
  Verdict verdict = Verdict::kUnique;  // also if there is no usable id
  absl::string_view reason = {};       // why there is none
  absl::Span<const CounterChange> changes = {};
  std::optional<int32_t> route = {};  // the partition that it is routed to, if that is all that is done
};

// A stretch of judged records of one partition.
struct JudgedRun {
  absl::Span<const JudgedRecord> records;
  int64_t oldest_ms = INT64_MAX;  // the lowest of their timestamps
};

// Writes, tags, diverts and drops records as the policies say, counts what it did in the partition's open
// counts, and sums up the counters. All of it belongs to the output's open transaction.
//
// Thread safety: that of the output, which it shares with its lane.
class RecordWriter {
 public:
  RecordWriter(const DaemonOptions& options, const Topics& topics, Sink& sink)
      : options_(options), topics_(topics), sink_(sink), router_(options), policies_(options.policies) {}

  // Others, between two transactions.
  void SetPolicies(const Policies& policies) { policies_ = policies; }

  // Of a record that no topic is known to refuse, by the policies; `known`: one does.
  Disposition DispositionOf(const JudgedRecord& record, const Undeliverable* known = nullptr) const;

  // Why the partition must stop in front of this record, with what to do; nullopt if it need not.
  std::optional<std::string> WhyStop(const Task& task, const InputRecord& input, const RecordFields& fields);

  bool StopsAtUndeliverable() const { return policies_.on_undeliverable == Action::kFail; }

  // Not OK: the transaction must be aborted.
  absl::Status CarryOut(Task& task, const JudgedRecord& record);

  // Writes what the open transaction has changed the counters of the partition to, or by.
  absl::Status ProduceSums(Task& task);

 private:
  absl::Status ProduceSums(Task& task, size_t counter);
  // Now and then.
  void SayUndeliverable(const Task& task, const JudgedRecord& record, const Undeliverable& known,
                        Action action);
  absl::Status Pass(const Task& task, const JudgedRecord& record, absl::string_view tag);
  // Or a copy of a record that goes out all the same.
  absl::Status Divert(const Task& task, const JudgedRecord& record, absl::string_view verdict,
                      absl::string_view reason, bool copied = false);
  // The record as it came, but for its headers: those in headers_. `as` says what refuses it, if it is
  // refused.
  absl::Status Copy(const InputRecord& input, Target target, int32_t partition, RecordPlace as);
  // Adds what it counts, if anything is counted.
  absl::Status Count(Task& task, const JudgedRecord& record);
  // The record goes out, and a counter goes without it.
  absl::Status LeaveUncounted(Task& task, const JudgedRecord& record, size_t counter, absl::string_view why);
  // Where it was first. Fills headers_ with those that it had there.
  Router::Original OriginalOf(const Task& task, const InputRecord& input);
  // The record in words, with its original.
  std::string Name(const Task& task, const InputRecord& input);

  const DaemonOptions& options_;
  const Topics& topics_;
  Sink& sink_;
  const Router router_;
  Policies policies_;
  std::vector<HeaderView> headers_;  // of the record that is written; kept, so that nothing is allocated
  Repeats undeliverable_;
  Repeats uncounted_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_RECORD_WRITER_H_
