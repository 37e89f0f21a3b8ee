// Watches the input topics: whether one is deleted or may not be read, and whether each of its partitions is
// assigned to a member, also after it was recreated or got more partitions.
//
// A partition stays unassigned in two cases. The group's leader may ask a broker that does not know a new
// partition yet; when it learns of it, the client sees no reason to rebalance. And the group does not
// rebalance when a static member restarts (KIP-345): it gets its old assignment, and a restarted leader does
// not know that it is the leader (KIP-814, which librdkafka lacks). Each owner commits its starting offset,
// so each worker checks that every partition has a committed offset.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_INPUT_WATCH_H_
#define LETHE_SRC_PIPELINE_ASSIGN_INPUT_WATCH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "src/pipeline/assign/ownership.h"
#include "src/pipeline/assign/topic_id_watch.h"
#include "src/pipeline/task/workplace.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class InputWatch {
 public:
  InputWatch(const Workplace& place, Ownership& ownership);

  // Between two batches; asks the cluster for all topics at once, every few seconds.
  void Look();
  // The brokers do not let this user read one of several topics: its partitions stand until they do.
  void MeetDenial(int32_t flow, const std::string& why);
  bool IsDenied(int32_t flow) const { return denied_.contains(flow); }
  // A record of the topic came, or its end.
  void NoteRead(int32_t flow) {
    if (!denied_.empty()) EndDenial(flow);
  }
  // The last look found none of the topics, so the group has nothing to assign.
  bool AreAllAbsent() const { return are_all_absent_; }
  // Topics that were deleted or may not be read, and what to do.
  std::map<std::string, std::string> Unreadable() const;

 private:
  struct Watched {
    int32_t given_partitions;  // all below this one have an owner
    TopicIdWatch topic_id = {};
    int absences = 0;  // answers in a row that the topic does not exist
    bool is_gone = false;
    absl::Time unassigned_since = absl::InfiniteFuture();
    int rejoined = 0;  // in a row
  };

  // A topic that is there, at one look.
  struct Seen {
    const Flow& flow;
    Watched& watched;
    int32_t partitions;
    std::vector<Task*> tasks;  // those that this worker owns
  };

  void EndDenial(int32_t flow);
  // Reads again where the client stands: it does not say when it may.
  void TryDenied();
  static void NoteAbsence(const Flow& flow, Watched& watched, bool absent);
  // Stops the partitions of topics that were deleted and created again since they were assigned.
  void LookForOtherTopics(const std::vector<Seen>& seen);
  void StopOnOtherTopic(const Seen& seen, const std::string& id);
  // Tells owned partitions the input's number of partitions.
  void NoteGrowth(const Seen& seen);
  // Rejoins the group for partitions that no member was given.
  void LookForUnassigned(const std::vector<Seen>& seen, absl::Time now);
  // Whether to rejoin for one of this topic.
  bool IsUnassignedForLong(const Seen& seen, const Cluster::CommittedOffsets& committed, absl::Time now);
  // Those of the flow that this worker owns.
  std::vector<Task*> TasksOf(const Flow& flow) const;

  const DaemonOptions& options_;
  WorkerState& state_;
  Source& source_;
  Cluster& cluster_;
  Tasks& tasks_;
  const Flows& flows_;
  Ownership& ownership_;
  absl::Time next_look_ = absl::InfinitePast();
  bool are_all_absent_ = false;
  std::map<int32_t, Watched> watched_;  // by flow
  std::map<int32_t, std::string> denied_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_INPUT_WATCH_H_
