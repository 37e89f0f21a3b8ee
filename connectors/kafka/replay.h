// The way of a partition from its assignment to its first verdict: its filter's log is compared and replayed.
#ifndef LETHE_CONNECTORS_KAFKA_REPLAY_H_
#define LETHE_CONNECTORS_KAFKA_REPLAY_H_

#include <vector>

#include "connectors/kafka/client/worker_state.h"
#include "connectors/kafka/group/source.h"
#include "connectors/kafka/options/options.h"
#include "lethe/event.h"
#include "src/record/record_reader.h"

namespace lethe::kafka {

// Not thread-safe: it belongs to the worker's thread.
class Replay {
 public:
  Replay(const DaemonOptions& options, WorkerState& state, const Source& source)
      : options_(options), state_(state), source_(source), reader_(options.record) {}

  // kChecking: whether the message is the one that the filter remembers. Then the partition is restored from
  // there on; otherwise the filter is to be rebuilt.
  bool Recognizes(OwnedPartition& owned, const rd_kafka_message_t& message);
  // kRestoring: the filter takes records before C in, and the partition goes on behind them. The rest of the
  // run is to be judged.
  MessageRun Restore(OwnedPartition& owned, MessageRun run);
  // Everything before C was read: the partition is kActive, unless its log differs from the one judged.
  void Activate(OwnedPartition& owned);

 private:
  void Remember(OwnedPartition& owned, MessageRun run);
  // The record that the commit metadata names, compared where the run has come to it. False: it is another.
  bool IsLogOfCommit(OwnedPartition& owned, MessageRun run);
  // The log differs before C from the one that was judged.
  void StopOnOtherLog(OwnedPartition& owned);

  const DaemonOptions& options_;
  WorkerState& state_;
  const Source& source_;
  RecordReader reader_;
  std::vector<Event> events_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_REPLAY_H_
