// Two processes that run as one instance: which of them stays.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_INSTANCE_CLAIM_H_
#define LETHE_SRC_PIPELINE_ASSIGN_INSTANCE_CLAIM_H_

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/options/options.h"
#include "src/sync/mutex.h"

namespace lethe {

struct NamedMember {
  std::string id;           // the broker's, new each time it joins
  std::string name;         // the group.instance.id; without static membership the client.id
  std::string host;         // as the broker sees it
  std::string client = {};  // the client.id
};

// The client.id that lethe sets is this and the instance.
inline constexpr char kClientIdPrefix[] = "lethe-";
// That of the process, which its properties may set.
std::string ClientId(const ProcessOptions& process);

// The group.instance.id of a lane that is a static member: each lane is a member.
std::string MemberName(const ProcessOptions& process, int lane);

// A process's claim on the name of its instance. Another process of that name fences this one's consumers or
// producers. The one that was there first takes the name back, and the newcomer ends. Only the newcomer sees
// the other in the group when it starts; but it also sees a former life that crashed, whose place it may
// take. So it learns which of the two it was when it is fenced, within a session timeout.
//
// Thread-safe.
class InstanceClaim {
 public:
  // Asks for the members of the group. Unavailable: no answer.
  using AskMembers = std::function<absl::StatusOr<std::vector<NamedMember>>()>;

  InstanceClaim(const DaemonOptions& options, AskMembers ask, const Clock& clock = SystemClock());

  // Whether the member has the name of one of this process's lanes.
  static bool HasName(const ProcessOptions& process, const NamedMember& member);

  // Before the lanes start.
  void Look();
  // A lane was fenced; `own` is its member id in the group. OK: recreate what was fenced. AlreadyExists:
  // another process has the name and stays; the error says where it is and what to do.
  absl::Status Fenced(int lane, const std::string& own);
  // How long a process waits before it ends, since its supervisor may start it again at once: the winner must
  // tell that from a process that fights on.
  absl::Duration pause() const { return std::max(session_timeout_ / 3, absl::Seconds(7)); }

 private:
  struct Row {
    int fences = 0;  // in a row
    absl::Time last = absl::InfinitePast();
  };
  // The lane's name in the group, or all lanes' common one.
  static std::string NameOf(const ProcessOptions& process, int lane);
  // Fences are in a row if no more time is between two of them. Shorter than the pause, and longer than it
  // takes two that fight to recreate their clients.
  absl::Duration row() const { return std::max(session_timeout_ / 4, absl::Seconds(5)); }
  // Where another member of the lane's name is; empty: there is none.
  absl::StatusOr<std::string> HostOfOther(int lane, const std::string& own) const;

  const DaemonOptions& options_;
  const bool is_static_;
  const absl::Duration session_timeout_;
  const AskMembers ask_;
  const Clock& clock_;

  Mutex mutex_;
  absl::Time newcomer_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::map<int, Row> rows_ ABSL_GUARDED_BY(mutex_);  // by lane
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_INSTANCE_CLAIM_H_
