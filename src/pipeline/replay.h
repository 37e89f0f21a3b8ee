// The way of a partition from its assignment to its first verdict: its filter's log is compared and replayed.
#ifndef LETHE_SRC_PIPELINE_REPLAY_H_
#define LETHE_SRC_PIPELINE_REPLAY_H_

#include <vector>

#include "lethe/event.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/output/router.h"
#include "src/pipeline/task/source.h"
#include "src/pipeline/task/worker_state.h"
#include "src/record/record_reader.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class Replay {
 public:
  Replay(const DaemonOptions& options, WorkerState& state, const Source& source)
      : options_(options), state_(state), source_(source), router_(options), reader_(options.record) {}

  // kChecking: whether the record is the one that the filter remembers. Then the partition is restored from
  // there on; otherwise the filter is to be rebuilt.
  bool Recognizes(Task& task, const InputRecord& input);
  // kRestoring: the filter takes records before C in, and the partition goes on behind them. The rest of the
  // run is to be judged.
  RecordRun Restore(Task& task, RecordRun run);
  // Everything before C was read: the partition is kActive, unless its log differs from the one judged.
  void Activate(Task& task);

 private:
  void Remember(Task& task, RecordRun run);
  // The record that the commit metadata names, compared where the run has come to it. False: it is another.
  bool IsLogOfCommit(Task& task, RecordRun run);
  // The log differs before C from the one that was judged.
  void StopOnOtherLog(Task& task);

  const DaemonOptions& options_;
  WorkerState& state_;
  const Source& source_;
  const Router router_;
  RecordReader reader_;
  std::vector<Event> events_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPLAY_H_
