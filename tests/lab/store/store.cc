#include "tests/lab/store/store.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "src/published/bit_array.h"

namespace lethe::lab {
namespace {

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// FNV-1a, mixed: a place on the ring.
uint64_t Token(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Mix(hash);
}

std::map<std::string, LabFbf> CopyOf(const std::map<std::string, LabFbf>& filters) {
  std::map<std::string, LabFbf> copies;
  for (const auto& [name, filter] : filters) copies.emplace(name, filter.Copy());
  return copies;
}

}  // namespace

struct Store::Batch {
  std::vector<Increment> increments;
  std::set<uint64_t> left;  // not answered yet
};

Store::Store(const StoreOptions& options)
    : options_(options), random_(options.seed), nodes_(static_cast<size_t>(options.nodes)) {
  for (int node = 0; node < options.nodes; ++node) ring_[Token(Name(node))] = node;
}

std::string Store::Name(int node) {
  return node == kClient ? "client"
         : node < 26     ? std::string(1, static_cast<char>('A' + node))
                         : absl::StrCat("N", node);
}

// Consistent hashing: the next nodes of the ring, clockwise.
std::vector<int> Store::ReplicasOf(const std::string& counter) const {
  std::vector<int> replicas;
  auto at = ring_.lower_bound(Token(counter));
  const size_t wanted = std::min(ring_.size(), static_cast<size_t>(options_.replication));
  while (replicas.size() < wanted) {
    if (at == ring_.end()) at = ring_.begin();
    replicas.push_back(at->second);
    ++at;
  }
  return replicas;
}

// A client is on the side of the node that it talks to.
bool Store::Reaches(int from, int to) const {
  if (to != kClient && !nodes_[static_cast<size_t>(to)].is_up) return false;
  if (from == kClient || to == kClient || split_ == 0) return true;
  return (from < split_) == (to < split_);
}

void Store::Send(int from, int to, bool is_answer, std::function<void()> action) {
  const int64_t delay =
      from == to ? 0 : std::uniform_int_distribution<int64_t>(1, options_.delay_ms)(random_);
  const bool is_lost = from != to && (std::bernoulli_distribution(options_.loss)(random_) ||
                                      (loses_ && loses_(from, to, is_answer)));
  if (is_lost)
    Say(absl::StrCat("  ", Name(from), " -> ", Name(to), is_answer ? ": the answer" : "", " is lost"));
  if (is_lost) return;
  At(now_ms_ + delay, [this, from, to, action = std::move(action)] {
    if (Reaches(from, to)) action();
  });
}

void Store::Submit(int64_t at_ms, int coordinator, std::vector<Increment> batch) {
  auto shared = std::make_shared<Batch>();
  for (const Increment& increment : batch) shared->left.insert(increment.id);
  shared->increments = std::move(batch);
  At(at_ms, [this, shared, coordinator] { Try(shared, coordinator, 1); });
}

void Store::Try(const std::shared_ptr<Batch>& batch, int coordinator, int attempt) {
  if (batch->left.empty()) return;
  if (attempt > options_.attempts) {
    ++unanswered_;
    return;
  }
  coordinator %= options_.nodes;
  // The whole batch, with the same ids.
  for (const Increment& increment : batch->increments) {
    ++requests_;
    Say(absl::StrCat("client: ", attempt > 1 ? "again, " : "", increment.counter, " += ", increment.delta,
                     " (id ", increment.id, ") to ", Name(coordinator)));
    Send(kClient, coordinator, false, [this, batch, coordinator, increment] {
      Coordinate(coordinator, increment, [this, batch, coordinator, increment] {
        Send(coordinator, kClient, true, [batch, increment] { batch->left.erase(increment.id); });
      });
    });
  }
  At(now_ms_ + options_.timeout_ms,
     [this, batch, coordinator, attempt] { Try(batch, coordinator + options_.retry_step, attempt + 1); });
}

void Store::Coordinate(int coordinator, const Increment& increment, std::function<void()> answer) {
  std::vector<int> replicas = ReplicasOf(increment.counter);
  if (!options_.one_leader) {
    std::rotate(replicas.begin(), replicas.begin() + coordinator % static_cast<int>(replicas.size()),
                replicas.end());
  }
  for (const int leader : replicas) {
    if (!Reaches(coordinator, leader)) continue;
    Send(coordinator, leader, false, [this, coordinator, leader, increment, answer = std::move(answer)] {
      Lead(leader, increment,
           [this, coordinator, leader, answer] { Send(leader, coordinator, true, answer); });
    });
    return;
  }
}

// Figure 5: the leader applies the update, sends it to the other replicas, and answers when enough have it.
// All that it does before it sends is atomic. A retry is not applied, but it is answered; what the others may
// have missed is sent again.
void Store::Lead(int leader, const Increment& increment, std::function<void()> answer) {
  Node& node = nodes_[static_cast<size_t>(leader)];
  CounterShard& shard = node.memtable[increment.counter][leader];
  if (IsRetry(leader, increment)) {
    ++dismissed_;
    Say(absl::StrCat("  ", Name(leader), ": dismissed as a retry"));
  } else {
    shard = {shard.clock + 1, shard.value + increment.delta};
    node.log.push_back({increment.id, increment.family, increment.counter, leader, increment.delta, {}});
    Say(absl::StrCat("  ", Name(leader), ": commit log, memtable: local shard (", Name(leader), ", ",
                     shard.clock, ", ", shard.value, ")"));
  }
  auto acks = std::make_shared<int>(1);
  const auto count = [this, acks, answer = std::move(answer)] {
    if ((*acks)++ == options_.write_acks) answer();
  };
  count();
  for (const int replica : ReplicasOf(increment.counter)) {
    if (replica == leader) continue;
    Send(leader, replica, false, [this, leader, replica, increment, shard, count] {
      Receive(replica, increment, leader, shard);
      Send(replica, leader, true, count);
    });
  }
}

// Section V-D: an operation that is committed at one replica goes to the others, so that their filters know
// it.
void Store::Receive(int node, const Increment& increment, int origin, CounterShard shard) {
  Node& replica = nodes_[static_cast<size_t>(node)];
  IsRetry(node, increment);
  CounterShard& own = replica.memtable[increment.counter][origin];
  if (own.clock >= shard.clock) return;
  own = shard;
  replica.log.push_back({increment.id, increment.family, increment.counter, origin, 0, shard});
  Say(absl::StrCat("  ", Name(node), ": commit log, memtable: remote shard (", Name(origin), ", ",
                   shard.clock, ", ", shard.value, ")"));
}

LabFbf* Store::FilterFor(int node, const Increment& increment) {
  std::string name;
  switch (options_.granularity) {
    case Granularity::kNoFilter:
      return nullptr;
    case Granularity::kNode:
      break;
    case Granularity::kFamily:
      name = increment.family;
      break;
    case Granularity::kCounter:
      name = increment.counter;
      break;
  }
  Filters& filters = nodes_[static_cast<size_t>(node)].filters;
  return &filters.try_emplace(name, options_.past, options_.bits, options_.hashes, LabFbf::Check::kText)
              .first->second;
}

// Algorithm 1: the membership check, and the insertion of what is not there.
bool Store::IsRetry(int node, const Increment& increment) {
  LabFbf* const filter = FilterFor(node, increment);
  if (filter == nullptr) return false;
  const IdHash id = {Mix(increment.id ^ options_.seed), Mix(increment.id + 0x9e3779b97f4a7c15u)};
  if (filter->ContainsId(id)) return true;
  filter->InsertId(id);
  return false;
}

void Store::Crash(int node) {
  Node& crashed = nodes_[static_cast<size_t>(node)];
  crashed.is_up = false;
  crashed.memtable.clear();
  crashed.filters.clear();
}

void Store::Restart(int node) {
  Node& restarted = nodes_[static_cast<size_t>(node)];
  restarted.is_up = true;
  restarted.memtable = restarted.sstable;
  restarted.filters = CopyOf(restarted.saved_filters);
  for (const LogEntry& entry : restarted.log) {
    // Without its id an entry is applied whatever was applied before.
    const Increment increment = {entry.id, entry.family, entry.counter, entry.delta};
    const bool is_known = options_.log_has_ids && IsRetry(node, increment);
    CounterShard& shard = restarted.memtable[entry.counter][entry.origin];
    if (entry.origin != node) {
      if (shard.clock < entry.remote.clock) shard = entry.remote;
    } else if (!is_known) {
      shard = {shard.clock + 1, shard.value + entry.delta};
    }
  }
  Flush(node);
}

void Store::Flush(int node, bool truncates_log) {
  Node& flushed = nodes_[static_cast<size_t>(node)];
  flushed.sstable = flushed.memtable;
  if (options_.flush_saves_filters) flushed.saved_filters = CopyOf(flushed.filters);
  if (truncates_log) flushed.log.clear();
}

void Store::Replace(int node) {
  std::set<std::string> counters;
  for (const Node& each : nodes_) {
    for (const auto& [counter, shards] : each.memtable) counters.insert(counter);
  }
  std::map<std::string, std::vector<int>> before;
  for (const std::string& counter : counters) before[counter] = ReplicasOf(counter);
  Crash(node);
  nodes_[static_cast<size_t>(node)] = Node();
  nodes_[static_cast<size_t>(node)].is_up = false;
  std::erase_if(ring_, [node](const auto& each) { return each.second == node; });
  for (const auto& [counter, replicas] : before) {
    for (const int replica : ReplicasOf(counter)) {
      if (std::find(replicas.begin(), replicas.end(), replica) != replicas.end()) continue;
      const auto source = std::find_if(replicas.begin(), replicas.end(),
                                       [this](int each) { return nodes_[static_cast<size_t>(each)].is_up; });
      if (source == replicas.end()) continue;
      const Node& from = nodes_[static_cast<size_t>(*source)];
      Node& to = nodes_[static_cast<size_t>(replica)];
      const auto shards = from.memtable.find(counter);
      if (shards == from.memtable.end()) continue;
      to.memtable[counter] = to.sstable[counter] = shards->second;
      // A node that has a filter of this name keeps its own: two Bloom filters of one size could be united,
      // but not those of two refresh intervals.
      if (options_.new_replica_copies_filter) to.filters.merge(CopyOf(from.filters));
    }
  }
}

void Store::Repair() {
  std::set<std::string> counters;
  for (const Node& each : nodes_) {
    for (const auto& [counter, shards] : each.memtable) counters.insert(counter);
  }
  for (const std::string& counter : counters) {
    std::map<int, CounterShard> newest;
    for (const int replica : ReplicasOf(counter)) {
      for (const auto& [origin, shard] : ShardsAt(replica, counter)) {
        if (newest[origin].clock < shard.clock) newest[origin] = shard;
      }
    }
    for (const int replica : ReplicasOf(counter)) {
      Node& node = nodes_[static_cast<size_t>(replica)];
      if (node.is_up) node.memtable[counter] = newest;
    }
  }
}

int64_t Store::Read(const std::string& counter, int replicas) const {
  std::map<int, CounterShard> newest;
  int asked = 0;
  for (const int replica : ReplicasOf(counter)) {
    const Node& node = nodes_[static_cast<size_t>(replica)];
    if (!node.is_up || (replicas > 0 && asked == replicas)) continue;
    ++asked;
    const auto shards = node.memtable.find(counter);
    if (shards == node.memtable.end()) continue;
    for (const auto& [origin, shard] : shards->second) {
      if (newest[origin].clock < shard.clock) newest[origin] = shard;
    }
  }
  int64_t value = 0;
  for (const auto& [origin, shard] : newest) value += shard.value;
  return value;
}

const std::map<int, CounterShard>& Store::ShardsAt(int node, const std::string& counter) {
  return nodes_[static_cast<size_t>(node)].memtable[counter];
}

int64_t Store::filters() const {
  int64_t count = 0;
  for (const Node& node : nodes_) count += static_cast<int64_t>(node.filters.size());
  return count;
}

void Store::Run() {
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ms_ = event.at_ms;
    for (; refreshed_ms_ + options_.refresh_ms <= now_ms_; refreshed_ms_ += options_.refresh_ms) {
      for (Node& node : nodes_) {
        for (auto& [name, filter] : node.filters) filter.Refresh();
        for (auto& [name, filter] : node.saved_filters) filter.Refresh();
      }
    }
    event.action();
  }
}

}  // namespace lethe::lab
