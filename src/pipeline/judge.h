// Judges a run of records: reads their ids, and looks these up in the filter.
#ifndef LETHE_SRC_PIPELINE_JUDGE_H_
#define LETHE_SRC_PIPELINE_JUDGE_H_

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/stage.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/clock/repeats.h"
#include "src/pipeline/output/lane_flow.h"
#include "src/pipeline/output/record_writer.h"
#include "src/pipeline/task/input_record.h"

namespace lethe {

// Invariant: the partition's open transaction has the ids that passed, in the order of the log, but no id of
// a record that is known to be undeliverable: a copy of that one passes.
//
// Not thread-safe: it belongs to the worker's thread. Keeps its memory, so that a warm worker does not
// allocate.
class Judge {
 public:
  explicit Judge(const Clock& clock) : clock_(clock) {}
  virtual ~Judge() = default;
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  // The partition must be in the open transaction. If it must stop within the run, the result is shorter, and
  // task.stop_before_next() says why, or JudgedRun::waits_for is the schema that the next record needs. Valid
  // until the next call.
  JudgedRun Run(Task& task, LaneFlow& flow, RecordRun run);

  // Whether the record's id is looked up, and remembered.
  virtual bool IsJudged(const RecordFields& fields) const {
    return fields.id_state == RecordFields::State::kPresent;
  }

 protected:
  std::vector<JudgedRecord> records_;  // of the run

 private:
  // Adds the next record of the run, whose verdict may come later.
  virtual void Add(const Task& task, LaneFlow& flow, const InputRecord& input, const RecordFields& fields);
  // Judges the events that were collected.
  void JudgeEvents(Task& task, LaneFlow& flow);
  // Finds out whether many events share the id.
  void WatchDuplicate(Task& task, const LaneFlow& flow, IdHash id, JudgedRecord& record);
  // A copy that is valid until the next run.
  absl::string_view Keep(absl::string_view text);
  // The record's time, or InfinitePast() if it has none or is dated after `latest`, which is counted and
  // logged now and then.
  absl::Time Believe(Task& task, const InputRecord& input, absl::Time latest);
  // Logs now and then which record has no usable id.
  void Complain(const Task& task, const LaneFlow& flow, int64_t offset, const RecordFields& fields);

  // The texts of a run fit in here; of larger ones the rest is allocated.
  static constexpr size_t kTextBytes = size_t{1} << 20;

  const Clock& clock_;
  std::vector<CounterChange> changes_;
  std::vector<Event> events_;
  std::vector<size_t> event_records_;
  std::vector<Verdict> verdicts_;
  const std::unique_ptr<char[]> first_texts_ = std::make_unique_for_overwrite<char[]>(kTextBytes);
  std::pmr::monotonic_buffer_resource texts_{first_texts_.get(), kTextBytes};
  Repeats disbelieved_;  // timestamps
  Repeats suspicious_;   // ids
  RepeatsByReason without_id_;
  RepeatsByReason malformed_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_JUDGE_H_
