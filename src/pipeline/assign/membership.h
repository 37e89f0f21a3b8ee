// Whether a worker is in its group, and what keeps it out.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_MEMBERSHIP_H_
#define LETHE_SRC_PIPELINE_ASSIGN_MEMBERSHIP_H_

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/clock/repeats.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/workplace.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class Membership {
 public:
  explicit Membership(const Workplace& place)
      : options_(place.options()), state_(place.state), source_(place.source), claim_(place.shared.claim) {}

  // Whether it has an assignment, even one of no partition.
  void SetJoined(bool joined);
  bool joined() const { return joined_; }
  // Zero once it has joined.
  absl::Duration unassigned_for() const;
  // Logs once that the group takes long to assign partitions, and the possible cause.
  void LookAtWait();

  // An error of the source that concerns no single partition; may end the worker.
  void MeetError(const SourceEvent& event);
  // The producer was fenced. AlreadyExists: by another process of this instance; the worker ends.
  absl::Status MayRecreateProducer();
  // Whether the source must be reopened.
  bool TakeReopen() { return std::exchange(wants_reopen_, false); }

 private:
  // The group has members with another assignment protocol. Dead ones count until their session times out;
  // after that the worker ends.
  void MeetOtherProtocol(const std::string& why);
  // Another member uses this instance name. Reopening the source fences it, unless the worker ends.
  void MeetSameName(const std::string& why);

  const DaemonOptions& options_;
  WorkerState& state_;
  const Source& source_;
  InstanceClaim& claim_;
  bool joined_ = false;
  absl::Time unassigned_since_ = absl::InfinitePast();  // while it has not joined
  bool said_unassigned_ = false;
  absl::Time other_protocol_since_ = absl::InfiniteFuture();
  bool wants_reopen_ = false;
  Repeats errors_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_MEMBERSHIP_H_
