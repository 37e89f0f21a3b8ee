#include "tests/simulation/group.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lethe::simulation {

namespace {

constexpr size_t kMostFormer = 16;

}  // namespace

Group::Group(World& world, GroupOptions options,
             std::function<int32_t(const std::string& topic)> count_partitions)
    : world_(world), options_(options), count_partitions_(std::move(count_partitions)) {
  LookForSilence();
}

Group::Member* Group::Find(const std::string& id) {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const Member& each) { return each.id == id; });
  return found == members_.end() ? nullptr : &*found;
}

bool Group::Has(const std::string& id) const { return fenced_.contains(id) || Find(id) != nullptr; }

Group::State Group::Heartbeat(const std::string& id, int generation, bool is_joining) {
  if (fenced_.contains(id)) return State::kFenced;
  Member* const member = Find(id);
  if (member == nullptr) return State::kUnknown;
  // Of a generation that the member has not heard of: a late request has joined it in its name.
  if (!is_joining && generation != generation_) return State::kOtherGeneration;
  member->seen = world_.now();
  return is_rebalancing_ && !(is_joining && member->has_joined) ? State::kRejoin : State::kMember;
}

void Group::JoinLate(const std::string& id, const std::set<std::string>& topics,
                     const GroupPartitions& owned) {
  Member* const member = Find(id);
  if (member == nullptr) return;
  world_.Say(options_.name, ": a request to join that was held in the network comes late, of ", id);
  // To a member that does not lead, and asks for nothing new, the group only says what it has already.
  const bool changes = is_rebalancing_ || member == &members_.front() || member->topics != topics;
  if (!changes) return;
  if (!is_rebalancing_) Rebalance();
  // The round's answer goes to the latest request, whose connection is closed: a client that waits for it
  // hears nothing.
  if (member->has_joined && member->client != nullptr) member->client->OnUnanswered();
  member->has_joined = true;
  member->topics = topics;
  member->owned = owned;
  member->seen = world_.now();
  EndRound();
}

std::string Group::Join(GroupClient& client, const std::string& id, const GroupPartitions& owned) {
  Member* member = Find(id);
  if (member == nullptr && !client.static_id().empty()) {
    const auto former = std::find_if(members_.begin(), members_.end(), [&](const Member& each) {
      return each.static_id == client.static_id();
    });
    if (former != members_.end()) {
      // It takes its place, and what had it is fenced.
      fenced_.insert(former->id);
      former->id = absl::StrCat("member-", next_member_++);
      former->client = &client;
      former->seen = world_.now();
      if (!is_rebalancing_ && former->topics == client.topics()) {
        Tell(*former);
        return former->id;
      }
      member = &*former;
    }
  }
  if (member == nullptr) {
    members_.push_back(
        {.client = &client, .id = absl::StrCat("member-", next_member_++), .static_id = client.static_id()});
    member = &members_.back();
  }
  member->has_joined = true;
  member->topics = client.topics();
  member->owned = owned;
  member->seen = world_.now();
  const std::string joined = member->id;
  if (is_rebalancing_) {
    EndRound();
  } else {
    Rebalance();
    Find(joined)->has_joined = true;
    EndRound();
  }
  return joined;
}

void Group::Leave(const std::string& id) {
  if (Find(id) == nullptr) return;
  world_.Say(options_.name, ": ", id, " leaves");
  Remove(id);
}

void Group::Remove(const std::string& id) {
  std::erase_if(members_, [&](const Member& each) { return each.id == id; });
  if (members_.empty()) {
    is_rebalancing_ = false;
    return;
  }
  if (!is_rebalancing_) Rebalance();
  EndRound();
}

void Group::Forget(const GroupClient& client) {
  for (Member& member : members_) {
    if (member.client == &client) member.client = nullptr;
  }
}

void Group::Expel(const GroupClient& client) {
  if (Find(client.member()) == nullptr) return;
  world_.Say(options_.name, ": ", client.member(), " is removed: it polls too rarely");
  Remove(client.member());
}

std::map<std::string, int32_t> Group::CountPartitions() const {
  std::map<std::string, int32_t> counts;
  for (const Member& member : members_) {
    for (const std::string& topic : member.topics) {
      const auto [known, is_new] = counts.try_emplace(topic);
      if (is_new) known->second = count_partitions_(topic);
    }
  }
  return counts;
}

void Group::LookAtPartitions() {
  if (!is_rebalancing_ && !members_.empty() && CountPartitions() != partitions_) Rebalance();
}

void Group::Rebalance() {
  is_rebalancing_ = true;
  for (Member& member : members_) member.has_joined = false;
  world_.Say(options_.name, ": a rebalance begins");
  world_.After(options_.rebalance_timeout, [this, round = ++round_] {
    if (!is_rebalancing_ || round != round_) return;
    world_.Say(options_.name, ": it waits no longer for members that have not joined");
    std::erase_if(members_, [](const Member& each) { return !each.has_joined; });
    if (members_.empty()) {
      is_rebalancing_ = false;
    } else {
      EndRound();
    }
  });
}

void Group::EndRound() {
  const bool is_complete =
      std::all_of(members_.begin(), members_.end(), [](const Member& each) { return each.has_joined; });
  if (!is_rebalancing_ || !is_complete) return;
  is_rebalancing_ = false;
  ++generation_;
  Assign();
  for (const Member& member : members_) Tell(member);
}

void Group::Assign() {
  partitions_ = CountPartitions();
  size_t all = 0;
  for (const auto& [topic, count] : partitions_) all += static_cast<size_t>(count);
  const size_t quota = (all + members_.size() - 1) / members_.size();
  GroupPartitions taken;  // by one that goes on, or that has yet to give it back
  for (Member& member : members_) {
    member.assigned.clear();
    if (!options_.is_cooperative) continue;
    for (const GroupPartition& each : member.owned) {
      const auto count = partitions_.find(each.first);
      if (count == partitions_.end() || each.second >= count->second || !taken.insert(each).second) continue;
      if (member.assigned.size() < quota) member.assigned.insert(each);
    }
  }
  const size_t shift = static_cast<size_t>(world_.dice().Below(static_cast<int64_t>(members_.size())));
  size_t turn = shift;
  for (const auto& [topic, count] : partitions_) {
    for (int32_t partition = 0; partition < count; ++partition, ++turn) {
      if (taken.contains({topic, partition})) continue;
      // The one that has least, of those that want it.
      Member* to = nullptr;
      for (size_t i = 0; i < members_.size(); ++i) {
        Member& member = members_[(turn + i) % members_.size()];
        if (!member.topics.contains(topic)) continue;
        if (to == nullptr || member.assigned.size() < to->assigned.size()) to = &member;
      }
      to->assigned.emplace(topic, partition);
    }
  }
}

void Group::Tell(const Member& member) {
  if (world_.keeps_log()) {
    world_.Say(options_.name, ": generation ", generation_, ": ", member.id, " has ",
               absl::StrJoin(member.assigned, ",", absl::PairFormatter("-")));
  }
  if (member.client == nullptr) return;
  // The answer is on its way for a moment; the client may be no more when it comes.
  world_.After(world_.dice().Between(absl::ZeroDuration(), absl::Milliseconds(5)),
               [this, id = member.id, generation = generation_, joins = member.client->joins()] {
                 const Member* const told = Find(id);
                 if (told == nullptr || told->client == nullptr || generation != generation_) return;
                 // It has joined again meanwhile, and waits for another round.
                 if (told->client->joins() != joins) return;
                 told->client->OnAssigned(generation, told->assigned);
               });
}

void Group::LookForSilence() {
  world_.After(options_.session_timeout / 4, [this] {
    std::vector<std::string> silent;
    for (const Member& each : members_) {
      if (world_.now() - each.seen > options_.session_timeout) silent.push_back(each.id);
    }
    for (const std::string& id : silent) {
      world_.Say(options_.name, ": the session of ", id, " times out");
      Remove(id);
    }
    LookForSilence();
  });
}

bool Group::MayCommit(const std::string& id, int generation) const {
  if (id.empty() && generation < 0) return true;
  return generation == generation_ &&
         std::any_of(members_.begin(), members_.end(), [&](const Member& each) { return each.id == id; });
}

void Group::AddPending(int64_t transaction, const std::vector<std::pair<std::string, Position>>& positions) {
  auto& pending = pending_[transaction];
  pending.insert(pending.end(), positions.begin(), positions.end());
}

void Group::DropPending(int64_t transaction, const std::vector<std::pair<std::string, Position>>& positions) {
  const auto pending = pending_.find(transaction);
  if (pending == pending_.end()) return;
  for (const auto& [topic, position] : positions) {
    std::erase_if(pending->second, [&, &of = topic, &id = position.partition](const auto& each) {
      return each.first == of && each.second.partition.partition == id.partition;
    });
  }
}

void Group::EndPending(int64_t transaction, bool commits) {
  const auto pending = pending_.extract(transaction);
  if (pending.empty() || !commits) return;
  for (const auto& [topic, position] : pending.mapped()) {
    const int32_t partition = position.partition.partition;
    CommittedOffset& committed = committed_[topic][partition];
    if (options_.keeps_former && committed.offset >= 0) {
      std::deque<CommittedOffset>& former = former_[topic][partition];
      former.push_back(std::move(committed));
      if (former.size() > kMostFormer) former.pop_front();
    }
    Set(topic, partition, {position.offset, position.metadata});
    world_.Say(options_.name, ": ", topic, "-", position.partition.partition, " is committed at ",
               position.offset, " (", position.metadata, ")");
  }
}

void Group::Set(const std::string& topic, int32_t partition, CommittedOffset committed) {
  commits_[topic][partition].push_back({world_.now(), committed.offset});
  committed_[topic][partition] = std::move(committed);
}

const std::vector<Group::Commit>& Group::Commits(const std::string& topic, int32_t partition) const {
  static const std::vector<Commit> none;
  const auto of_topic = commits_.find(topic);
  if (of_topic == commits_.end()) return none;
  const auto found = of_topic->second.find(partition);
  return found == of_topic->second.end() ? none : found->second;
}

absl::StatusOr<std::vector<CommittedOffset>> Group::Committed(const std::string& topic, int32_t count) const {
  for (const auto& [transaction, positions] : pending_) {
    for (const auto& [of, position] : positions) {
      if (of == topic && position.partition.partition < count) {
        return absl::UnavailableError("a transaction is about to commit");
      }
    }
  }
  std::vector<CommittedOffset> committed;
  for (int32_t i = 0; i < count; ++i) committed.push_back(CommittedNow(topic, i));
  return committed;
}

const CommittedOffset& Group::CommittedNow(const std::string& topic, int32_t partition) const {
  static const CommittedOffset none;
  const auto of_topic = committed_.find(topic);
  if (of_topic == committed_.end()) return none;
  const auto found = of_topic->second.find(partition);
  return found == of_topic->second.end() ? none : found->second;
}

std::vector<CommittedOffset> Group::Former(const std::string& topic, int32_t partition) const {
  const auto of_topic = former_.find(topic);
  if (of_topic == former_.end()) return {};
  const auto found = of_topic->second.find(partition);
  if (found == of_topic->second.end()) return {};
  return {found->second.begin(), found->second.end()};
}

void Group::Forget(const std::string& topic) {
  committed_.erase(topic);
  former_.erase(topic);
  commits_.erase(topic);
  for (auto& [transaction, positions] : pending_) {
    std::erase_if(positions, [&](const auto& each) { return each.first == topic; });
  }
}

std::vector<NamedMember> Group::Members() const {
  std::vector<NamedMember> members;
  for (const Member& member : members_) {
    const std::string name = member.client == nullptr ? "" : member.client->name();
    members.push_back({member.id, member.static_id.empty() ? name : member.static_id, "host",
                       absl::StrCat(kClientIdPrefix, name)});
  }
  return members;
}

GroupClient::GroupClient(World& world, Group& group, const Connection& connection, std::function<void()> wake,
                         std::function<int32_t(const std::string& topic)> number_of)
    : world_(world),
      group_(group),
      connection_(connection),
      wake_(std::move(wake)),
      number_of_(std::move(number_of)) {}

void GroupClient::Open(const std::string& static_id, const std::string& instance,
                       std::set<std::string> topics) {
  static_id_ = static_id;
  instance_ = instance;
  name_ = absl::StrCat("lethe-", instance);
  topics_ = std::move(topics);
  is_open_ = true;
  is_lost_ = is_fenced_ = is_joining_ = joins_after_ = false;
  self_ = std::make_shared<GroupClient*>(this);
  Beat();
}

void GroupClient::Subscribe(std::set<std::string> topics) {
  topics_ = std::move(topics);
  // Before it has joined it asks for them anyway; what the group says now is for the former ones.
  if (!is_open_ || member_.empty()) return;
  wants_others_ = true;
}

void GroupClient::Die() {
  is_open_ = false;
  if (self_ != nullptr) *self_ = nullptr;
  self_.reset();
  group_.Forget(*this);
}

void GroupClient::Close(bool leaves) {
  if (!is_open_) return;
  const std::string member = member_;
  Die();
  waits_.reset();
  told_.clear();
  owned_.clear();
  member_.clear();
  generation_ = -1;
  if ((leaves || static_id_.empty()) && connection_.is_up()) SendLeave(member);
}

Network::Way GroupClient::NextWay() const {
  Network* const network = group_.options().network;
  return network == nullptr ? Network::Way::kGood : network->NextWay(instance_);
}

void GroupClient::SendLeave(const std::string& member) {
  if (NextWay() == Network::Way::kGood) return group_.Leave(member);
  group_.options().network->DeliverLate([&group = group_, member] { group.Leave(member); });
}

void GroupClient::Rejoin() {
  if (!is_open_) return;
  const std::string member = std::exchange(member_, "");
  generation_ = -1;
  is_joining_ = false;
  told_.clear();
  SendLeave(member);
  if (!owned_.empty()) return Tell(Kind::kRevoked, owned_);
  joins_after_ = true;
}

// Each heartbeat also does what the client's thread does besides.
void GroupClient::Beat() {
  const absl::Duration next =
      world_.dice().Between(group_.options().heartbeat / 2, group_.options().heartbeat);
  world_.After(next, [self = self_] {
    if (*self != nullptr) (*self)->Beat();
  });
  if (!connection_.is_up() || is_fenced_) return;
  if (member_.empty()) {
    if (told_.empty() && !waits_ && !is_joining_ && !topics_.empty()) Join();
    return;
  }
  if (wants_others_ && !is_joining_ && told_.empty() && !waits_) {
    if (!group_.options().is_cooperative && !owned_.empty()) return Tell(Kind::kRevoked, owned_);
    return Join();
  }
  const Network::Way way = NextWay();
  const auto beat = [&group = group_, member = member_, generation = generation_, is_joining = is_joining_] {
    return group.Heartbeat(member, generation, is_joining);
  };
  if (way == Network::Way::kTwice) {
    return group_.options().network->DeliverLate([beat] { static_cast<void>(beat()); });
  }
  const Group::State state = beat();
  if (way == Network::Way::kAnswerLost) return;
  switch (state) {
    case Group::State::kMember:
      if (joins_after_ && told_.empty() && !waits_) Join();
      return;
    case Group::State::kUnknown:
      if (!waits_) Lose(/*stays=*/false);
      return;
    case Group::State::kOtherGeneration:
      if (waits_ || is_lost_) return;
      if (!owned_.empty()) return Lose(/*stays=*/true);
      told_.clear();
      return Join();
    case Group::State::kFenced:
      is_fenced_ = true;
      member_.clear();
      generation_ = -1;
      told_.clear();
      told_.push_back({{.kind = Kind::kError, .why = "fenced", .problem = SourceEvent::Problem::kNameTaken}});
      return wake_();
    case Group::State::kRejoin:
      is_joining_ = false;
      if (!told_.empty() || waits_) return;
      if (!group_.options().is_cooperative && !owned_.empty()) return Tell(Kind::kRevoked, owned_);
      return Join();
  }
}

void GroupClient::Join() {
  // The answer to a member that the group has dropped; the client loses what it owned, and joins as a new
  // one.
  if (!member_.empty() && !group_.Has(member_)) return Lose(/*stays=*/false);
  joins_after_ = wants_others_ = false;
  is_joining_ = true;
  ++joins_;
  member_ = group_.Join(*this, member_, owned_);
  if (NextWay() != Network::Way::kTwice) return;
  group_.options().network->DeliverLate([&group = group_, member = member_, topics = topics_,
                                         owned = owned_] { group.JoinLate(member, topics, owned); });
}

void GroupClient::Lose(bool stays) {
  if (!stays) member_.clear();
  generation_ = -1;
  is_joining_ = joins_after_ = false;
  told_.clear();
  if (owned_.empty()) return;
  is_lost_ = true;
  Tell(Kind::kLost, owned_);
}

void GroupClient::Tell(Kind kind, const GroupPartitions& partitions) {
  Told told = {{.kind = kind}, partitions};
  for (const auto& [topic, partition] : partitions) {
    told.event.partitions.push_back({number_of_(topic), partition});
  }
  told_.push_back(std::move(told));
  wake_();
}

void GroupClient::OnAssigned(int generation, const GroupPartitions& partitions) {
  if (!is_open_ || !is_joining_) return;
  if (NextWay() == Network::Way::kAnswerLost) {
    return world_.After(group_.options().network->Delay(), [self = self_, joins = joins_] {
      if (*self != nullptr && (*self)->is_joining_ && (*self)->joins_ == joins) (*self)->Join();
    });
  }
  is_joining_ = false;
  generation_ = generation;
  if (!group_.options().is_cooperative) return Tell(Kind::kAssigned, partitions);
  GroupPartitions revoked;
  GroupPartitions added;
  std::set_difference(owned_.begin(), owned_.end(), partitions.begin(), partitions.end(),
                      std::inserter(revoked, revoked.end()));
  std::set_difference(partitions.begin(), partitions.end(), owned_.begin(), owned_.end(),
                      std::inserter(added, added.end()));
  if (revoked.empty()) return Tell(Kind::kAssigned, added);
  Tell(Kind::kRevoked, revoked);
  Tell(Kind::kAssigned, added);
  joins_after_ = true;
}

std::optional<SourceEvent> GroupClient::Take() {
  if (waits_ || told_.empty()) return std::nullopt;
  Told told = std::move(told_.front());
  told_.pop_front();
  if (told.event.kind == Kind::kError) return std::move(told.event);
  waits_ = std::move(told);
  return waits_->event;
}

void GroupClient::Answer() {
  if (!waits_) return;
  const Told told = *std::exchange(waits_, std::nullopt);
  switch (told.event.kind) {
    case Kind::kAssigned:
      owned_.insert(told.partitions.begin(), told.partitions.end());
      return;
    case Kind::kLost:
      owned_.clear();
      is_lost_ = false;
      joins_after_ = true;
      return;
    default:
      for (const GroupPartition& each : told.partitions) owned_.erase(each);
      // Else the rest of the assignment comes first.
      if (told_.empty()) joins_after_ = true;
  }
}

}  // namespace lethe::simulation
