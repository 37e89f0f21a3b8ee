// Whether a worker is in its group, and what keeps it out.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_MEMBERSHIP_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_MEMBERSHIP_H_

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "connectors/kafka/group/consumer.h"
#include "connectors/kafka/group/instance_claim.h"
#include "src/pipeline/clock/repeats.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/worker_state.h"

namespace lethe::kafka {

// Not thread-safe: it belongs to the worker's thread.
class Membership {
 public:
  Membership(const DaemonOptions& options, WorkerState& state, const Consumer& consumer, InstanceClaim& claim)
      : options_(options), state_(state), consumer_(consumer), claim_(claim) {}

  // Whether it has an assignment, even one of no partition.
  void SetJoined(bool joined);
  bool joined() const { return joined_; }
  // Zero once it has joined.
  absl::Duration unassigned_for() const;
  // Logs once that the group takes long to assign partitions, and the possible cause.
  void LookAtWait();

  // An error of the consumer that concerns no single partition; may end the worker.
  void MeetError(const SourceEvent& event);
  // The producer was fenced. AlreadyExists: by another process of this instance; the worker ends.
  absl::Status MayRecreateProducer();
  // Whether the consumer must be recreated.
  bool TakeNewConsumer() { return std::exchange(wants_new_consumer_, false); }

 private:
  // The group has members with another assignment protocol. Dead ones count until their session times out;
  // after that the worker ends.
  void MeetOtherProtocol(const std::string& why);
  // Another member uses this instance name. Recreating the consumer fences it, unless the worker ends.
  void MeetSameName(const std::string& why);

  const DaemonOptions& options_;
  WorkerState& state_;
  const Consumer& consumer_;
  InstanceClaim& claim_;
  bool joined_ = false;
  absl::Time unassigned_since_ = absl::InfinitePast();  // while it has not joined
  bool said_unassigned_ = false;
  absl::Time other_protocol_since_ = absl::InfiniteFuture();
  bool wants_new_consumer_ = false;
  Repeats errors_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_MEMBERSHIP_H_
