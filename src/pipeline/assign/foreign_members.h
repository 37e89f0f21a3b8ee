// Members of lethe's group that are not lethe's: the group gives them partitions, whose records lethe never
// sees.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_FOREIGN_MEMBERS_H_
#define LETHE_SRC_PIPELINE_ASSIGN_FOREIGN_MEMBERS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/options/options.h"

namespace lethe {

// Not thread-safe.
class ForeignMembers {
 public:
  // All outlive it.
  ForeignMembers(const ProcessOptions& process, InstanceClaim::AskMembers ask, const Clock& clock)
      : process_(process), ask_(std::move(ask)), clock_(clock) {}

  // Called often; asks the group at most every few seconds, and soon after the process has got or lost a
  // partition, since that is what a newcomer does. `owned`: the partitions that the process has. Logs what
  // has changed.
  void Look(size_t owned);

  // As of the last answer, by name and host.
  const std::vector<std::string>& names() const { return names_; }

  // lethe sets client.id. Where a user has set another one, which may differ from instance to instance,
  // members with a group.instance.id are taken for lethe's, too.
  static bool IsForeign(const ProcessOptions& process, const NamedMember& member);

 private:
  const ProcessOptions& process_;
  const InstanceClaim::AskMembers ask_;
  const Clock& clock_;
  size_t owned_ = 0;
  absl::Time next_ = absl::InfinitePast();
  absl::Time soonest_ = absl::InfinitePast();
  std::vector<std::string> names_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_FOREIGN_MEMBERS_H_
