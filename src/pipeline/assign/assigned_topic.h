// What an assignment needs to know of its partitions, asked of all topics at once.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_ASSIGNED_TOPIC_H_
#define LETHE_SRC_PIPELINE_ASSIGN_ASSIGNED_TOPIC_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/flow.h"
#include "src/pipeline/task/worker_state.h"

namespace lethe {

// The partitions of one topic that were assigned, and what the group and the log say of them.
struct AssignedTopic {
  const Flow* flow = nullptr;
  std::vector<int32_t> partitions;
  int32_t all_partitions = 0;  // of the topic, as far as is known
  bool has_begun = false;      // this worker has seen committed offsets of the topic
  Cluster::CommittedOffsets committed = {};
  std::string topic_id = {};
  Cluster::Logs logs = {};
  int new_partitions = 0;      // of which the group has committed nothing
  absl::Status problem = {};   // why it cannot be read; the rest may be missing then
  bool has_no_answer = false;  // and this is that the brokers do not know or reach its log
};

// Not thread-safe: it belongs to the worker's thread.
class AssignmentQuestions {
 public:
  AssignmentQuestions(WorkerState& state, Cluster& cluster) : state_(state), cluster_(cluster) {}

  // How long partitions may be unknown, or without a leader.
  struct Patience {
    absl::Duration unknown;
    absl::Duration leader;
  };
  // The member that assigns a new partition may learn of it first.
  static constexpr Patience OfOnlyTopic() { return {absl::Seconds(30), absl::InfiniteDuration()}; }
  // The other topics stand meanwhile.
  static constexpr Patience OfOneOfMany() { return {absl::Seconds(1), absl::Seconds(5)}; }
  static constexpr Patience None() { return {absl::ZeroDuration(), absl::InfiniteDuration()}; }

  // Fills in what the cluster answers; the topics' problems are in them. While it answers for none of several
  // topics, waits for it. Cancelled: a stop was requested.
  absl::Status Ask(std::vector<AssignedTopic>& topics, Patience patience);

 private:
  absl::Status AskCommitted(std::vector<AssignedTopic>& topics);
  absl::Status CheckScopes(std::vector<AssignedTopic>& topics);
  absl::Status AskLogs(std::vector<AssignedTopic>& topics, Patience patience);

  WorkerState& state_;
  Cluster& cluster_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_ASSIGNED_TOPIC_H_
