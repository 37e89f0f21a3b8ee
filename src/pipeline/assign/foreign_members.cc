#include "src/pipeline/assign/foreign_members.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lethe {
namespace {

// Each question goes to all brokers of the cluster.
constexpr absl::Duration kAskEvery = absl::Minutes(5);
constexpr absl::Duration kAskEveryWhileThereAreSome = absl::Minutes(1);
constexpr absl::Duration kAskForMembersAfter = absl::Seconds(10);

}  // namespace

bool ForeignMembers::IsForeign(const ProcessOptions& process, const NamedMember& member) {
  const std::string own = ClientId(process);
  if (member.client == own || absl::StartsWith(member.client, kClientIdPrefix)) return false;
  const bool is_static = member.name != member.client;
  const bool has_own_scheme = !absl::StartsWith(own, kClientIdPrefix);
  return !(has_own_scheme && is_static);
}

void ForeignMembers::Look(size_t owned) {
  const absl::Time now = clock_.Steady();
  if (std::exchange(owned_, owned) != owned) next_ = absl::InfinitePast();
  if (now < next_ || now < soonest_) return;
  soonest_ = now + kAskForMembersAfter;
  const auto members = ask_();
  if (!members.ok()) return;  // the lanes say if the group does not answer
  std::vector<std::string> names;
  for (const NamedMember& member : *members) {
    if (IsForeign(process_, member)) names.push_back(absl::StrCat(member.client, " on host ", member.host));
  }
  std::sort(names.begin(), names.end());
  next_ = now + (names.empty() ? kAskEvery : kAskEveryWhileThereAreSome);
  if (names == names_) return;
  if (names.empty()) {
    spdlog::info("group {} has no other members than lethe's any more", process_.group);
  } else {
    spdlog::error(
        "group {} has members that are not lethe's: {}: they get partitions, whose records lethe does not "
        "see. Stop them, or give them another group",
        process_.group, absl::StrJoin(names, ", "));
  }
  names_ = std::move(names);
}

}  // namespace lethe
