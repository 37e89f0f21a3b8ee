#include "src/pipeline/assign/instance_claim.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lethe {
namespace {

// Two processes that were both there first, after a network was cut, say: one of them must give in.
constexpr int kMostInARow = 3;

std::string PropertyOr(const ProcessOptions& process, absl::string_view name, std::string fallback) {
  for (const auto& [key, value] : process.properties) {
    if (key == name) fallback = value;
  }
  return fallback;
}

absl::Duration SessionTimeout(const DaemonOptions& options) {
  int64_t ms = 0;
  const std::string given = PropertyOr(options.process, "session.timeout.ms", "");
  return absl::SimpleAtoi(given, &ms) ? absl::Milliseconds(ms) : absl::Seconds(45);  // librdkafka's default
}

}  // namespace

std::string ClientId(const ProcessOptions& process) {
  return PropertyOr(process, "client.id", absl::StrCat(kClientIdPrefix, process.instance));
}

std::string MemberName(const ProcessOptions& process, int lane) {
  return absl::StrCat(process.instance, "-", lane);
}

InstanceClaim::InstanceClaim(const DaemonOptions& options, AskMembers ask, const Clock& clock)
    : options_(options),
      is_static_(options.process.static_membership != StaticMembership::kNever),
      session_timeout_(SessionTimeout(options)),
      ask_(std::move(ask)),
      clock_(clock) {}

std::string InstanceClaim::NameOf(const ProcessOptions& process, int lane) {
  return process.static_membership != StaticMembership::kNever ? MemberName(process, lane)
                                                               : ClientId(process);
}

bool InstanceClaim::HasName(const ProcessOptions& process, const NamedMember& member) {
  for (int lane = 0; lane < process.lanes; ++lane) {
    if (member.name == NameOf(process, lane)) return true;
  }
  return false;
}

void InstanceClaim::Look() {
  const auto members = ask_();
  if (!members.ok()) return;
  const MutexLock lock(mutex_);
  for (const NamedMember& member : *members) {
    if (!HasName(options_.process, member)) continue;
    newcomer_until_ = clock_.Steady() + session_timeout_;
    spdlog::info(
        "group {} has a member named {} on host {}: this process takes its place, or ends if that one is "
        "still running",
        options_.process.group, member.name, member.host);
    return;
  }
}

absl::StatusOr<std::string> InstanceClaim::HostOfOther(int lane, const std::string& own) const {
  const auto members = ask_();
  if (!members.ok()) return members.status();
  const std::string name = NameOf(options_.process, lane);
  int of_this_name = 0;  // with the lane's own, unless another took its place
  std::string host;
  for (const NamedMember& member : *members) {
    if (member.name != name) continue;
    ++of_this_name;
    if (member.id != own) host = member.host;
  }
  // Without static membership the process's lanes share a name.
  return of_this_name > (is_static_ ? 0 : options_.process.lanes) ? host : "";
}

absl::Status InstanceClaim::Fenced(int lane, const std::string& own) {
  // A fence alone is no proof of another process. librdkafka 2.0.2 fences itself: when the session has timed
  // out, it may send a heartbeat without its member's id, which a broker answers as if another had come. A
  // broker that takes a join and dies before it answers has given the place to a member id that nobody got.
  // And a slow transaction is fenced, too. Only the group says whether another has the name.
  const absl::StatusOr<std::string> asked = HostOfOther(lane, own);
  if (!asked.ok()) {
    spdlog::warn(
        "lane {}: fenced as instance {} of group {}, and the group does not say whether another process has "
        "the name: {}",
        lane, options_.process.instance, options_.process.group, std::string(asked.status().message()));
    return absl::OkStatus();
  }
  if (asked->empty()) return absl::OkStatus();
  const std::string& host = *asked;
  const MutexLock lock(mutex_);
  const absl::Time now = clock_.Steady();
  Row& of_lane = rows_[lane];
  of_lane.fences = now - std::exchange(of_lane.last, now) < row() ? of_lane.fences + 1 : 1;
  const bool is_newcomer = now < newcomer_until_;
  if (!is_newcomer && of_lane.fences <= kMostInARow) {
    spdlog::warn(
        "lane {}: group {} has another member of instance {}, on host {}: another process, or a join of this "
        "one whose answer was lost. Taking the place back; if there is another process, give each its own "
        "instance",
        lane, options_.process.group, options_.process.instance, host);
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat("another process, on host ", host, ", runs as instance ", options_.process.instance,
                   " of group ", options_.process.group,
                   " and stays: the two would fence each other. Give each process its own instance, such as "
                   "${HOSTNAME} in a StatefulSet"));
}

}  // namespace lethe
