// From a run of records to records with verdicts: ids are read, and the filter is asked.
#ifndef LETHE_SRC_PIPELINE_JUDGE_H_
#define LETHE_SRC_PIPELINE_JUDGE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/stage.h"
#include "src/pipeline/clock/repeats.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/output/record_writer.h"
#include "src/pipeline/output/refusal_search.h"
#include "src/pipeline/output/router.h"
#include "src/pipeline/output/warnings.h"
#include "src/pipeline/task/source.h"
#include "src/record/record_reader.h"

namespace lethe {

// Invariant: what it has judged is in the open transaction of the partition, in the order of the log; what is
// known to be undeliverable is not, so that a copy of it passes.
//
// Not thread-safe: it belongs to the worker's thread. Memory is kept from batch to batch, so that nothing is
// allocated once it is warm.
class Judge {
 public:
  Judge(const DaemonOptions& options, const Topics& topics, const Source& source, RecordWriter& writer,
        RefusalSearch& refusals, Warnings& warnings);

  // Of a partition that is in the open transaction. Of a shorter run, if the partition must stop within it:
  // then its stop_before_next says why. Valid until the next call.
  JudgedRun Run(Task& task, RecordRun run);
  // After a batch: gives back what larger batches than usual needed.
  void GiveBack();

 private:
  // Where the texts of a record are; its views are set when all texts are there.
  struct Place {
    size_t reason_at;  // in texts_
    size_t reason_bytes;
    size_t changes_at;  // in changes_
    size_t changes;
  };

  // The open events, which were not judged yet.
  void JudgeEvents(Task& task);
  void Add(const InputRecord& input, const RecordFields& fields);
  void SetViews();
  // The time of a record that is judged, or InfinitePast() if it has none, or is dated after `latest`: that
  // is counted and now and then said.
  absl::Time Believe(Task& task, const InputRecord& input, absl::Time latest);
  // Says now and then which record has no usable id.
  void Complain(const Task& task, int64_t offset, const RecordFields& fields);

  const DaemonOptions& options_;
  const Topics& topics_;
  const Source& source_;
  RecordWriter& writer_;
  RefusalSearch& refusals_;
  Warnings& warnings_;
  const Router router_;
  RecordReader reader_;
  std::vector<JudgedRecord> records_;
  std::vector<Place> places_;
  std::vector<CounterChange> changes_;
  std::vector<std::pair<size_t, size_t>> change_texts_;  // their places in texts_, and bytes
  std::vector<Event> events_;
  std::vector<size_t> event_records_;
  std::vector<Verdict> verdicts_;
  std::string texts_;
  Repeats disbelieved_;  // timestamps
  Repeats complaints_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_JUDGE_H_
