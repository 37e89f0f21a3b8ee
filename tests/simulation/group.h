// A consumer group: its coordinator, and the client of a member.
#ifndef LETHE_TESTS_SIMULATION_GROUP_H_
#define LETHE_TESTS_SIMULATION_GROUP_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/cluster.h"
#include "tests/simulation/network.h"
#include "tests/simulation/world.h"

namespace lethe::simulation {

class GroupClient;

// By its topic's name: members number their topics as they like.
using GroupPartition = std::pair<std::string, int32_t>;
using GroupPartitions = std::set<GroupPartition>;

struct GroupOptions {
  std::string name = "group";  // in what is told
  Network* network = nullptr;
  bool keeps_former = false;  // commits, for who sets the group back
  bool is_cooperative = false;
  absl::Duration session_timeout;
  absl::Duration heartbeat;
  // How long a rebalance waits for members that do not answer.
  absl::Duration rebalance_timeout;
};

// The coordinator. A round of a rebalance waits until all members have joined; each round has a generation of
// its own. A member that is silent for the session timeout is removed.
//
// Late requests: one to join counts for the round that is open, or begins one if its member leads; the client
// hears nothing of that, and learns from its next heartbeat that the group is in another generation. One to
// leave, or a heartbeat, of a former member is refused. One to sync the group changes nothing, and is not
// simulated.
class Group {
 public:
  Group(World& world, GroupOptions options,
        std::function<int32_t(const std::string& topic)> count_partitions);

  const GroupOptions& options() const { return options_; }

  // Of members' clients.
  enum class State { kMember, kRejoin, kOtherGeneration, kUnknown, kFenced };
  // `is_joining`: it has joined this round, as far as it knows, or waits for its result.
  State Heartbeat(const std::string& member, int generation, bool is_joining);
  // Or had it, before another took its place.
  bool Has(const std::string& member) const;
  // Joins this round, or the next; the client hears of its result. `member` is its id, or empty for a new
  // one. Returns its id.
  std::string Join(GroupClient& client, const std::string& member, const GroupPartitions& owned);
  // A member's request comes once more, when its client may have been answered long ago.
  void JoinLate(const std::string& member, const std::set<std::string>& topics, const GroupPartitions& owned);
  void Leave(const std::string& member);
  // The client answers no more.
  void Forget(const GroupClient& client);
  // Its member polls too rarely, say.
  void Expel(const GroupClient& client);
  // Topics have other partitions than before.
  void LookAtPartitions();

  // Committed offsets. Without a member's id it is an operator's commit, and no generation is checked.
  bool MayCommit(const std::string& member, int generation) const;
  void AddPending(int64_t transaction, const std::vector<std::pair<std::string, Position>>& positions);
  // Of these partitions.
  void DropPending(int64_t transaction, const std::vector<std::pair<std::string, Position>>& positions);
  void EndPending(int64_t transaction, bool commits);
  // Unavailable: a transaction is about to commit one of them.
  absl::StatusOr<std::vector<CommittedOffset>> Committed(const std::string& topic, int32_t count) const;
  // Another program commits.
  void Set(const std::string& topic, int32_t partition, CommittedOffset committed);
  // What was committed before, the oldest first.
  std::vector<CommittedOffset> Former(const std::string& topic, int32_t partition) const;
  // What is committed of a topic that is deleted goes with it; also an operator may do this.
  void Forget(const std::string& topic);
  // What is committed now.
  const CommittedOffset& CommittedNow(const std::string& topic, int32_t partition) const;
  // All that was committed of a partition, in order; not what went with Forget().
  struct Commit {
    absl::Duration at;
    int64_t offset = 0;
  };
  const std::vector<Commit>& Commits(const std::string& topic, int32_t partition) const;
  std::vector<NamedMember> Members() const;
  int generation() const { return generation_; }

 private:
  struct Member {
    GroupClient* client = nullptr;
    std::string id;
    std::string static_id;
    bool has_joined = false;
    // As it said when it joined.
    std::set<std::string> topics = {};
    GroupPartitions owned = {};
    GroupPartitions assigned = {};  // in this generation
    absl::Duration seen = absl::ZeroDuration();
  };
  Member* Find(const std::string& id);
  const Member* Find(const std::string& id) const { return const_cast<Group*>(this)->Find(id); }
  // Of the topics that members have asked for.
  std::map<std::string, int32_t> CountPartitions() const;
  void Rebalance();
  void EndRound();
  void Assign();
  void Remove(const std::string& id);
  void LookForSilence();
  void Tell(const Member& member);

  World& world_;
  const GroupOptions options_;
  const std::function<int32_t(const std::string& topic)> count_partitions_;
  std::vector<Member> members_;
  std::set<std::string> fenced_;
  int generation_ = 0;
  bool is_rebalancing_ = false;
  int64_t round_ = 0;
  std::map<std::string, int32_t> partitions_;  // of topics, at the last assignment
  int next_member_ = 1;
  std::map<std::string, std::map<int32_t, CommittedOffset>> committed_;
  std::map<std::string, std::map<int32_t, std::deque<CommittedOffset>>> former_;  // the latest of them
  std::map<std::string, std::map<int32_t, std::vector<Commit>>> commits_;
  std::map<int64_t, std::vector<std::pair<std::string, Position>>> pending_;
};

// What connects a process to the cluster.
struct Connection {
  std::function<bool()> is_up;
};

// The client's side, as librdkafka has it: events of the group wait for an answer, one at a time.
class GroupClient {
 public:
  // `number_of` is for the numbers of topics in events.
  GroupClient(World& world, Group& group, const Connection& connection, std::function<void()> wake,
              std::function<int32_t(const std::string& topic)> number_of);
  ~GroupClient() { Die(); }
  GroupClient(const GroupClient&) = delete;
  GroupClient& operator=(const GroupClient&) = delete;

  // `static_id` is empty for a dynamic member.
  void Open(const std::string& static_id, const std::string& instance, std::set<std::string> topics);
  // Asks for partitions of these topics from now on.
  void Subscribe(std::set<std::string> topics);
  // Answers what waits. A static member keeps its place, unless it leaves.
  void Close(bool leaves);
  // Gives its partitions back, and becomes a new member.
  void Rejoin();
  // The process is no more.
  void Die();

  // The event that is delivered next, and waits for its answer from then on.
  std::optional<SourceEvent> Take();
  void Answer();

  const std::string& member() const { return member_; }
  int generation() const { return generation_; }
  bool is_lost() const { return is_lost_; }
  // How often it has joined.
  int joins() const { return joins_; }
  const std::string& static_id() const { return static_id_; }
  const std::string& name() const { return name_; }
  const std::string& instance() const { return instance_; }
  const std::set<std::string>& topics() const { return topics_; }

  // Of the coordinator: its request to join gets no answer.
  void OnUnanswered() { is_joining_ = false; }
  // Likewise: the result of a round.
  void OnAssigned(int generation, const GroupPartitions& partitions);

 private:
  using Kind = SourceEvent::Kind;
  struct Told {
    SourceEvent event;
    GroupPartitions partitions = {};
  };
  void Beat();
  void Join();
  // `stays`: the group still has the member.
  void Lose(bool stays);
  // The way of its next request or answer.
  Network::Way NextWay() const;
  // Told to the group, perhaps late.
  void SendLeave(const std::string& member);
  void Tell(Kind kind, const GroupPartitions& partitions);

  World& world_;
  Group& group_;
  const Connection& connection_;
  const std::function<void()> wake_;
  const std::function<int32_t(const std::string& topic)> number_of_;
  std::string static_id_;
  std::string instance_;
  std::string name_;  // the client's
  std::set<std::string> topics_;
  std::string member_;
  int generation_ = -1;
  bool is_open_ = false;
  int joins_ = 0;
  bool is_joining_ = false;  // the round's result is to come
  bool is_lost_ = false;
  bool is_fenced_ = false;
  GroupPartitions owned_;
  std::deque<Told> told_;      // and not delivered
  std::optional<Told> waits_;  // delivered, and not answered
  bool joins_after_ = false;
  bool wants_others_ = false;           // it has asked for other topics since it joined
  std::shared_ptr<GroupClient*> self_;  // null inside once it has died
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_GROUP_H_
