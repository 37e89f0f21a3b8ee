// Section V of the Forgetful Bloom Filter's paper: a replicated key-value store with partitioned counters, as
// Cassandra had them from 0.8 to 2.0, and a filter in front of each update. Simulated, in one thread:
// messages take time, are lost or not, and all of it follows from the seed.
#ifndef LETHE_TESTS_LAB_STORE_STORE_H_
#define LETHE_TESTS_LAB_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/lab/fbf.h"

namespace lethe::lab {

// What one filter of a node is for (section V-D). The paper chooses the column family, that is, the table.
enum class Granularity { kNoFilter, kNode, kFamily, kCounter };

struct StoreOptions {
  int nodes = 10;
  int replication = 3;
  int write_acks = 1;  // replicas that have an update when its client gets the answer (the write consistency)
  Granularity granularity = Granularity::kFamily;
  // The paper: "a suitable replica". Either the first one that the coordinator reaches, the same for all
  // coordinators, or the coordinator's own choice, which differs from coordinator to coordinator.
  bool one_leader = true;
  bool log_has_ids = true;                // "shards stored in the commitlog also contain the unique id"
  bool flush_saves_filters = true;        // with the memtable; the paper does not say
  bool new_replica_copies_filter = true;  // the paper does not say

  double loss = 0;           // of each message
  int64_t delay_ms = 10;     // of a message: 1 to this, evenly
  int64_t timeout_ms = 200;  // the client's write request timeout
  int retry_step = 1;        // nodes from the coordinator of an attempt to that of the next
  int attempts = 20;         // then the client aborts

  int past = 1;               // N
  int64_t refresh_ms = 5000;  // t
  int64_t bits = 1 << 16;     // m, of one filter
  int hashes = 7;             // k
  uint64_t seed = 1;
};

// An increment with its id: <client, sequence number> as one number.
struct Increment {
  uint64_t id = 0;
  std::string family;
  std::string counter;  // unique among all families
  int64_t delta = 1;
};

// A sub-counter's fragment: what the node `counter id` has counted, after so many operations.
struct CounterShard {
  int64_t clock = 0;
  int64_t value = 0;
};

class Store {
 public:
  explicit Store(const StoreOptions& options);

  // A client sends the batch to a coordinator, and again to the next one whenever its timeout passes without
  // an answer.
  void Submit(int64_t at_ms, int coordinator, std::vector<Increment> batch);
  void At(int64_t at_ms, std::function<void()> action) {
    events_.push({at_ms, next_event_++, std::move(action)});
  }
  void Run();  // until nothing is left to happen

  // A crash takes memtable and filters; the commit log and what was flushed stay on the disk.
  void Crash(int node);
  // Replays the commit log, and flushes then.
  void Restart(int node);
  // To an SSTable. A log that is not truncated then is replayed over what it is already part of: a crash
  // between the two steps.
  void Flush(int node, bool truncates_log = true);
  // The node is gone with its disk. The next node of the ring takes its place for each counter, with the
  // shards of a replica that is up.
  void Replace(int node);
  // Nodes from `first` on and those before it do not reach each other.
  void Split(int first) { split_ = first; }
  void Heal() { split_ = 0; }
  // Anti-entropy: all replicas learn the shards of all others. Ids are not exchanged: there is no list of
  // them.
  void Repair();
  // All messages for which it is true are lost; null for none.
  using Loses = std::function<bool(int from, int to, bool is_answer)>;
  void LoseIf(Loses loses) { loses_ = std::move(loses); }

  // The value as `replicas` of the counter's replicas that are up have it: of each origin the shard with the
  // highest clock. 0: of all.
  int64_t Read(const std::string& counter, int replicas = 0) const;
  std::vector<int> ReplicasOf(const std::string& counter) const;
  // At one node: of origins.
  const std::map<int, CounterShard>& ShardsAt(int node, const std::string& counter);

  int64_t now_ms() const { return now_ms_; }
  int64_t requests() const { return requests_; }      // retries included
  int64_t dismissed() const { return dismissed_; }    // updates that a filter held for retries
  int64_t unanswered() const { return unanswered_; }  // batches whose client gave up
  int64_t filters() const;                            // in all nodes
  // One line for each step, if set.
  void Trace(std::function<void(const std::string&)> trace) { trace_ = std::move(trace); }
  static std::string Name(int node);

 private:
  static constexpr int kClient = -1;

  struct LogEntry {
    uint64_t id = 0;
    std::string family;
    std::string counter;
    int origin = 0;
    int64_t delta = 0;    // of the node's own shard
    CounterShard remote;  // of another's
  };
  using Memtable = std::map<std::string, std::map<int, CounterShard>>;  // counter, origin
  using Filters = std::map<std::string, LabFbf>;
  struct Node {
    bool is_up = true;
    Memtable memtable;
    Memtable sstable;
    Filters filters;
    Filters saved_filters;
    std::vector<LogEntry> log;
  };
  struct Event {
    int64_t at_ms;
    int64_t number;
    std::function<void()> action;
    bool operator<(const Event& other) const {
      return std::pair(at_ms, number) > std::pair(other.at_ms, other.number);
    }
  };

  struct Batch;
  void Try(const std::shared_ptr<Batch>& batch, int coordinator, int attempt);
  void Coordinate(int coordinator, const Increment& increment, std::function<void()> answer);
  void Lead(int leader, const Increment& increment, std::function<void()> answer);
  void Receive(int node, const Increment& increment, int origin, CounterShard shard);
  bool IsRetry(int node, const Increment& increment);
  void Send(int from, int to, bool is_answer, std::function<void()> action);
  bool Reaches(int from, int to) const;
  LabFbf* FilterFor(int node, const Increment& increment);
  void Say(const std::string& line) {
    if (trace_) trace_(line);
  }

  const StoreOptions options_;
  std::mt19937_64 random_;
  std::vector<Node> nodes_;
  std::map<uint64_t, int> ring_;  // token: node
  std::priority_queue<Event> events_;
  int64_t next_event_ = 0;
  int64_t now_ms_ = 0;
  int64_t refreshed_ms_ = 0;
  int split_ = 0;
  Loses loses_;
  std::function<void(const std::string&)> trace_;
  int64_t requests_ = 0;
  int64_t dismissed_ = 0;
  int64_t unanswered_ = 0;
};

}  // namespace lethe::lab

#endif  // LETHE_TESTS_LAB_STORE_STORE_H_
