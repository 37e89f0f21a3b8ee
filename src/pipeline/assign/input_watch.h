// Watches the input topic: whether it is deleted, and whether each of its partitions is assigned to a member,
// also after it was recreated or got more partitions.
//
// A partition stays unassigned in two cases. The group's leader may ask a broker that does not know a new
// partition yet; when it learns of it, the client sees no reason to rebalance. And the group does not
// rebalance when a static member restarts (KIP-345): it gets its old assignment, and a restarted leader does
// not know that it is the leader (KIP-814, which librdkafka lacks). Each owner commits its starting offset,
// so each worker checks that every partition has a committed offset.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_INPUT_WATCH_H_
#define LETHE_SRC_PIPELINE_ASSIGN_INPUT_WATCH_H_

#include <cstdint>

#include "absl/time/time.h"
#include "src/pipeline/assign/assigner.h"
#include "src/pipeline/assign/topic_id_watch.h"
#include "src/pipeline/task/workplace.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class InputWatch {
 public:
  InputWatch(const Workplace& place, Assigner& assigner);

  // Between two batches; asks the cluster every few seconds.
  void Look();

 private:
  // Reports that the topic is gone, or that it is back.
  void NoteAbsence(bool absent);
  // Rejoins the group for a partition that no member was given.
  void LookForUnassigned(int32_t count, absl::Time now);
  // Stops the partitions of a topic that was deleted and created again since they were assigned.
  void LookForAnotherTopic();
  // Tells owned partitions the input's number of partitions.
  void NoteGrowth(int32_t partitions);

  const DaemonOptions& options_;
  WorkerState& state_;
  Source& source_;
  Cluster& cluster_;
  Tasks& tasks_;
  Assigner& assigner_;
  TopicIdWatch topic_id_;
  absl::Time next_look_ = absl::InfinitePast();
  int absences_ = 0;  // answers in a row that the topic does not exist
  bool is_gone_ = false;
  int32_t given_partitions_;  // all below this one have an owner
  absl::Time unassigned_since_ = absl::InfiniteFuture();
  int rejoined_ = 0;  // in a row
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_INPUT_WATCH_H_
