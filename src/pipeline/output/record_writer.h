// Carries out the disposition of judged records.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_RECORD_WRITER_H_
#define LETHE_SRC_PIPELINE_OUTPUT_RECORD_WRITER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/pipeline/clock/repeats.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/output/disposition.h"
#include "src/pipeline/output/routed_record.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/workplace.h"
#include "src/record/record_reader.h"

namespace lethe {

// The change of one counter by a record.
struct CounterChange {
  size_t counter = 0;  // of the options'
  bool countable = false;
  absl::string_view text;  // the key, or why the record is uncountable
  int64_t delta = 0;
};

struct JudgedRecord {
  const InputRecord* input = nullptr;
  RecordFields::State id_state = RecordFields::State::kPresent;
  Verdict verdict = Verdict::kUnique;  // also if there is no usable id
  absl::string_view reason = {};       // why there is none
  absl::Span<const CounterChange> changes = {};
  std::optional<int32_t> route = {};  // of the router of `scope: topic`: the output partition
  bool has_suspicious_id = false;
};

// Consecutive judged records of one partition.
struct JudgedRun {
  absl::Span<const JudgedRecord> records;
  int64_t oldest_ms = INT64_MAX;                       // the lowest of their timestamps
  std::optional<SchemaNeed> waits_for = std::nullopt;  // what the record behind them needs, and is not there
};

// Of one flow: writes, tags, diverts and drops records by the policies, counts them in the partition's open
// counts, and adds up the counters, all in the sink's open transaction. Not thread-safe: it belongs to the
// worker's thread.
class RecordWriter {
 public:
  RecordWriter(const Flow& flow, const Workplace& place)
      : flow_(flow), options_(flow.options), sink_(place.sink), clock_(place.state.clock) {}

  // `known`: why a topic rejects the record; null if none is known to.
  Disposition DispositionOf(const JudgedRecord& record, const Undeliverable* known = nullptr) const;

  // Why the partition must stop before this record, and what to do; nullopt if it need not.
  std::optional<std::string> WhyStop(const Task& task, const InputRecord& input, const RecordFields& fields);

  bool StopsAtUndeliverable() const { return policies().on_undeliverable == Action::kFail; }

  // `rules`: those of the output, now. Not OK: the transaction must be aborted.
  absl::Status CarryOut(Task& task, const JudgedRecord& record, const RecordRules& rules, absl::Time now);

  // Logs the offsets of all records that the transaction has dropped as undeliverable, if it is committed.
  void EndTransaction(bool committed);

  // Writes the totals or the deltas of the counters that the open transaction has changed.
  absl::Status ProduceSums(Task& task);

 private:
  const Policies& policies() const { return options_.policies; }
  absl::Status ProduceSums(Task& task, size_t counter);
  void SayUndeliverable(const Task& task, const JudgedRecord& record, const Undeliverable& known,
                        Action action);
  absl::Status Pass(const Task& task, const JudgedRecord& record, absl::string_view tag);
  // `copied`: the record itself is in the output.
  absl::Status Divert(const Task& task, const JudgedRecord& record, absl::string_view verdict,
                      absl::string_view reason, bool copied = false);
  // Writes the record with headers_ in the place of its headers. `as` names it if it is refused.
  absl::Status Copy(const InputRecord& input, Target::Kind to, int32_t partition, RecordPlace as);
  absl::Status Count(Task& task, const JudgedRecord& record);
  // The record is written, and this counter does not count it.
  absl::Status LeaveUncounted(Task& task, const JudgedRecord& record, size_t counter, absl::string_view why);
  // The record's place in the input before routing. Sets headers_ to its headers there.
  Original OriginalOf(const Task& task, const InputRecord& input);
  // For logs.
  std::string Name(const Task& task, const InputRecord& input);

  const Flow& flow_;
  const DaemonOptions& options_;
  Sink& sink_;
  const Clock& clock_;
  std::vector<HeaderView> headers_;  // of the record being written; kept to save allocations
  // Offsets of dropped undeliverable records in the open transaction, by topic and partition.
  std::map<std::pair<std::string, int32_t>, std::vector<int64_t>> lost_;
  Repeats undeliverable_;
  Repeats uncounted_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_RECORD_WRITER_H_
