// A Kafka cluster in memory: logs, transactions and committed offsets, as far as the protocol depends on
// them.
#ifndef LETHE_TESTS_SIMULATION_BROKER_H_
#define LETHE_TESTS_SIMULATION_BROKER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/task/cluster.h"
#include "tests/simulation/network.h"
#include "tests/simulation/world.h"
#include "tests/support/kafka_client.h"

namespace lethe::simulation {

using test::Record;

struct Entry {
  enum class Kind {
    kRecord,
    kMarker,      // the end of a transaction, which no reader sees
    kUnreadable,  // a batch that cannot be fetched begins at `batch`
  };
  Kind kind = Kind::kRecord;
  int64_t transaction = -1;  // -1: of none
  int64_t batch = -1;        // kUnreadable: the first offset of its batch
  Record record = {};
};

// The log of one partition. Entries stay where they are, also when they are not in the log any more, so that
// views of them last.
class Log {
 public:
  int64_t start() const { return start_; }
  int64_t end() const { return begin_ + static_cast<int64_t>(entries_.size()); }
  // Readers of what is committed see nothing from here on.
  int64_t stable_end() const;
  const Entry& at(int64_t offset) const { return entries_[static_cast<size_t>(offset - begin_)]; }

  // Returns its offset.
  int64_t Append(Entry entry);
  // The marker of its end.
  void EndTransaction(int64_t transaction);
  // As retention does.
  void DeleteBefore(int64_t offset) { start_ = std::max(start_, std::min(offset, end())); }
  // As an unclean election does.
  void Truncate(int64_t end);
  // As compaction does with what has another value since.
  void Compact(int64_t offset) { entries_[static_cast<size_t>(offset - begin_)] = {Entry::Kind::kMarker}; }
  // As a broken disk does, where a reader cannot see it.
  void Damage(int64_t offset, std::string value) {
    entries_[static_cast<size_t>(offset - begin_)].record.value = std::move(value);
  }
  // Where each truncation has ended it: a client sees by the epoch of the partition's leader that what it has
  // read is not there any more (KIP-320).
  const std::vector<int64_t>& truncations() const { return truncations_; }
  // When something was appended.
  std::function<void()> on_change;

 private:
  int64_t begin_ = 0;
  int64_t start_ = 0;
  std::deque<Entry> entries_;
  std::deque<std::deque<Entry>> truncated_;
  std::vector<int64_t> truncations_;
  std::map<int64_t, int64_t> open_;  // transactions, and the first offset of each
};

struct Topic {
  std::string name;
  std::string id;
  std::map<std::string, std::string> config;
  std::vector<std::unique_ptr<Log>> logs;
};

// What a broker answers.
enum class Answer {
  kOk,
  kAway,    // it does not answer, now
  kBusy,    // a transaction of the producer, or of the partition, is not over yet: ask again
  kFenced,  // another producer of this name has come, or its transaction has timed out
  kGroupMovedOn,
  kNoTopic,
  kNotPermitted,  // to write to the topic, now
  kNotOfIt,       // the transaction has no such partition or group: it has ended, say
};

class Group;

class Broker {
 public:
  Broker(World& world, uint64_t seed) : world_(world), network_(world, seed) {}

  Network& network() { return network_; }
  // As coordinators of Kafka before 4.0 do, it keeps the offsets of an open transaction by producer, without
  // its epoch: late ones of a former epoch take the place of the good ones before they are refused, and then
  // there are none.
  void SetOld(bool is_old) { is_old_ = is_old; }
  Topic& CreateTopic(const std::string& name, int32_t partitions,
                     std::map<std::string, std::string> config = {});
  std::vector<std::string> TopicNames() const;
  Topic& topic(const std::string& name) { return *topics_.at(name); }
  const Topic& topic(const std::string& name) const { return *topics_.at(name); }
  // Null: there is none.
  const Topic* Find(const std::string& name) const {
    const auto found = topics_.find(name);
    return found == topics_.end() ? nullptr : found->second.get();
  }
  // Null: there is none, or it has no such partition.
  Log* FindLog(const std::string& name, int32_t partition) const {
    const Topic* const topic = Find(name);
    const auto place = static_cast<size_t>(partition);
    return topic == nullptr || place >= topic->logs.size() ? nullptr : topic->logs[place].get();
  }
  int32_t CountPartitions(const std::string& name) const {
    const Topic* const topic = Find(name);
    return topic == nullptr ? 0 : static_cast<int32_t>(topic->logs.size());
  }
  void AddPartition(const std::string& name);
  // One that is created by the same name later has another id.
  void Delete(const std::string& name);
  // All that had this name, the latest last.
  std::vector<const Topic*> AllOf(const std::string& name) const;
  // Nobody may write to it, or everybody again.
  void SetWritable(const std::string& name, bool is_writable);

  // No broker answers for so long.
  void GoAway(absl::Duration duration);
  bool is_away() const { return world_.now() < away_until_; }
  // The brokers' clocks jump ahead: each open transaction has timed out.
  void TimeOutTransactions();
  // Markers take long, from now on, or not.
  void SetMarkersSlow(bool slow) { markers_are_slow_ = slow; }

  // Requests of producers, by their transactional ids. Each may come once more, and late. One of a former
  // epoch is refused; another is taken as if its client had just sent it:
  //   Init           fences the client that sent it
  //   AddPartition   opens a transaction, if none is open; the coordinator aborts it in time
  //   AddOffsets     likewise
  //   Produce        is a copy, by its sequence number
  //   CommitOffsets  replaces the offsets of the open transaction; refused if that has not added the group,
  //   or
  //                  if its member is in another generation
  //   End            ends the transaction that is open, or is answered as for the last one
  Answer Init(const std::string& id, absl::Duration timeout, int* epoch);
  // The partition is in the transaction from then on; it begins with that, if none is open.
  Answer AddPartition(const std::string& id, int epoch, const std::string& topic, int32_t partition);
  // Appends a batch, `sequence` batches after the producer's first one in this partition. One that is there
  // already is a copy.
  Answer Produce(const std::string& id, int epoch, const std::string& topic, int32_t partition,
                 int64_t sequence, const std::vector<Record>& batch);
  // As AddPartition(), for the offsets of a group.
  Answer AddOffsets(const std::string& id, int epoch, Group& group);
  Answer CommitOffsets(const std::string& id, int epoch, Group& group, const std::string& member,
                       int generation, const std::vector<std::pair<std::string, Position>>& positions);
  Answer End(const std::string& id, int epoch, bool commits);

  // A producer of the input; -1: none. Its transactions end when they are told to, or never.
  int64_t BeginTransaction();
  void EndTransaction(int64_t transaction, bool commits, Log& log);

  bool is_committed(int64_t transaction) const {
    return transaction < 0 || outcomes_[static_cast<size_t>(transaction)] == Outcome::kCommitted;
  }
  // Of all that had this name, as a reader of what is committed saw them.
  std::vector<Record> Committed(const std::string& name) const;
  std::vector<Record> CommittedIn(const Topic& topic) const;
  int64_t transactions_of(const std::string& id) const { return producers_.at(id).transactions; }
  // Of all producers, as a measure of how often they fence each other.
  int64_t SumOfEpochs() const;

 private:
  enum class Outcome { kOpen, kCommitted, kAborted };
  struct Producer {
    int epoch = -1;
    int64_t transaction = -1;
    enum class State { kEmpty, kOngoing, kEnding } state = State::kEmpty;
    absl::Duration timeout;
    std::vector<Log*> logs;
    std::map<const Log*, int64_t> sequences;  // the next, in this epoch
    Group* group = nullptr;
    int markers_to_come = 0;
    int64_t transactions = 0;
  };
  void Begin(const std::string& id, Producer& producer);
  void TimeOut(Producer& producer);
  void Decide(Producer& producer, bool commits);
  void Marked(Producer& producer);

  // Whether the producer may write now: kOk, or why not.
  Answer IsCurrent(const Producer& producer, int epoch) const;

  World& world_;
  Network network_;
  std::map<std::string, std::unique_ptr<Topic>> topics_;
  std::vector<std::unique_ptr<Topic>> deleted_;
  std::set<std::string> unwritable_;
  std::map<std::string, Producer> producers_;
  std::vector<Outcome> outcomes_;  // of all transactions
  bool is_old_ = false;
  absl::Duration away_until_;
  bool markers_are_slow_ = false;
  int topics_created_ = 0;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_BROKER_H_
