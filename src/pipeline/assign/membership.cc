#include "src/pipeline/assign/membership.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "src/pipeline/assign/instance_claim.h"

namespace lethe {
namespace {

// How long a group may take without a log line: an empty one waits 3 s for more members.
constexpr absl::Duration kSayUnassignedAfter = absl::Seconds(5);
// The most that a broker takes to notice a session timeout.
constexpr absl::Duration kDeadMemberSlack = absl::Seconds(2);

}  // namespace

void Membership::SetJoined(bool joined) {
  if (joined) {
    if (std::exchange(said_unassigned_, false)) {
      spdlog::info(
          "lane {}: group {} has assigned partitions after {}", state_.lane, options_.process.group,
          absl::FormatDuration(absl::Trunc(state_.clock.Steady() - unassigned_since_, absl::Seconds(1))));
    }
    if (std::exchange(other_protocol_since_, absl::InfiniteFuture()) != absl::InfiniteFuture()) {
      state_.SetWaiting("");
    }
  } else if (joined_ || unassigned_since_ == absl::InfinitePast()) {
    unassigned_since_ = state_.clock.Steady();
  }
  joined_ = joined;
}

absl::Duration Membership::unassigned_for() const {
  return joined_ ? absl::ZeroDuration() : state_.clock.Steady() - unassigned_since_;
}

void Membership::LookAtWait() {
  if (joined_ || said_unassigned_ || unassigned_for() < kSayUnassignedAfter) return;
  said_unassigned_ = true;
  spdlog::warn(
      "lane {}: waiting for group {} to assign partitions: after a crash the group waits for the member that "
      "is gone until its session times out, at most {} (session.timeout.ms){}",
      state_.lane, options_.process.group, absl::FormatDuration(source_.session_timeout()),
      options_.process.static_membership == StaticMembership::kNever
          ? "; with instance set, a restarted process takes its own place again at once"
          : "");
}

void Membership::MeetError(const SourceEvent& event) {
  using Problem = SourceEvent::Problem;
  const std::string& why = event.why;
  switch (event.problem) {
    case Problem::kMayNotUseGroup:
      state_.fatal = absl::PermissionDeniedError(absl::StrCat("group ", options_.process.group, ": ", why,
                                                              ": grant this user Read on group ",
                                                              options_.process.group));
      return;
    case Problem::kMayNotReadTopic:
      state_.fatal = absl::PermissionDeniedError(absl::StrCat(why, ": grant this user Read on the topic"));
      return;
    case Problem::kOtherProtocol:
      return MeetOtherProtocol(why);
    case Problem::kNameTaken:
      return MeetSameName(why);
    case Problem::kFatal:
      state_.fatal = absl::InternalError(why);
      return;
    case Problem::kOther:
      if (const auto like_it = errors_.Next(state_.clock.Steady()))
        spdlog::warn("lane {}: {}{}", state_.lane, why, *like_it);
  }
}

void Membership::MeetOtherProtocol(const std::string& why) {
  const std::string what = absl::StrCat(
      why, ": group ", options_.process.group, " has members that do not take assignment: ",
      options_.process.assignment == Assignment::kCooperative ? "cooperative" : "eager",
      "; the protocol cannot change while one of them is in the group. First stop every instance, then start "
      "them all with the new assignment");
  const absl::Time now = state_.clock.Steady();
  const absl::Duration patience = source_.session_timeout();
  if (other_protocol_since_ == absl::InfiniteFuture()) {
    other_protocol_since_ = now;
    const std::string waiting = absl::StrCat(what, "; waiting ", absl::FormatDuration(patience),
                                             " (session.timeout.ms) in case they have died");
    spdlog::warn("lane {}: {}", state_.lane, waiting);
    state_.SetWaiting(waiting);
  } else if (now - other_protocol_since_ > patience + kDeadMemberSlack) {
    state_.fatal = absl::FailedPreconditionError(what);
  }
}

void Membership::MeetSameName(const std::string& why) {
  state_.heartbeat.Beat();
  state_.fatal = claim_.Fenced(state_.lane, source_.member_id());
  if (!state_.fatal.ok()) return;
  spdlog::warn("lane {}: {}; recreating the consumer", state_.lane, why);
  wants_reopen_ = true;
}

absl::Status Membership::MayRecreateProducer() {
  // Static members learn it from their consumer, for certain.
  if (options_.process.static_membership != StaticMembership::kNever) return absl::OkStatus();
  state_.heartbeat.Beat();
  state_.fatal.Update(claim_.Fenced(state_.lane, source_.member_id()));
  return state_.fatal;
}

}  // namespace lethe
