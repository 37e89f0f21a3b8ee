// What happens to the input topic while it is read: it is deleted, or it gets partitions, also when it is
// recreated, and the group is to give each of them to a member.
//
// Two ways lead to an unassigned partition. The group's leader may ask a broker that does not know the new
// partition yet; the client then sees no reason to rebalance when it learns of it. And the group does not
// rebalance when a static member restarts (KIP-345): it gets its old assignment, and a leader that restarted
// does not know that it is the leader (KIP-814, which librdkafka does not have). So each worker checks that
// every partition has a committed offset, since each owner commits its starting offset.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_INPUT_WATCH_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_INPUT_WATCH_H_

#include <cstdint>

#include "absl/time/time.h"
#include "connectors/kafka/group/assignment.h"
#include "connectors/kafka/group/consumer.h"
#include "src/pipeline/task/worker_state.h"

namespace lethe::kafka {

// Not thread-safe: it belongs to the worker's thread.
class InputWatch {
 public:
  // `partitions`: the topic has so many at the start.
  InputWatch(const DaemonOptions& options, int32_t partitions, WorkerState& state, Consumer& consumer,
             Tasks& tasks, Assigner& assigner);

  // Between two batches; asks the cluster every few seconds.
  void Look();

 private:
  // The status says when the topic is gone, and when it is back.
  void NoteAbsence(bool absent);
  // Rejoins the group for a partition that no member was given. `count`: partitions of the topic.
  void LookForUnassigned(int32_t count, absl::Time now);
  // Owned partitions hear how many the input has.
  void NoteGrowth(int32_t partitions);

  const DaemonOptions& options_;
  WorkerState& state_;
  Consumer& consumer_;
  Tasks& tasks_;
  Assigner& assigner_;
  absl::Time next_look_ = absl::InfinitePast();
  int absences_ = 0;  // answers in a row that the topic does not exist
  bool is_gone_ = false;
  int32_t given_partitions_;  // of the input: all below were given to a member
  absl::Time unassigned_since_ = absl::InfiniteFuture();
  int rejoined_ = 0;  // in a row
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_INPUT_WATCH_H_
