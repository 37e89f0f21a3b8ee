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
  // When something was appended.
  std::function<void()> on_change;

 private:
  int64_t begin_ = 0;
  int64_t start_ = 0;
  std::deque<Entry> entries_;
  std::deque<std::deque<Entry>> truncated_;
  std::map<int64_t, int64_t> open_;  // transactions, and the first offset of each
};

struct Topic {
  std::string name;
  std::string id;
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
};

class Group;

class Broker {
 public:
  explicit Broker(World& world) : world_(world) {}

  Topic& CreateTopic(const std::string& name, int32_t partitions);
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
  // Markers take long, from now on, or not.
  void SetMarkersSlow(bool slow) { markers_are_slow_ = slow; }

  // Producers, by their transactional ids.
  Answer Init(const std::string& id, absl::Duration timeout, int* epoch);
  // Appends a batch; its transaction begins with it, if none is open.
  Answer Produce(const std::string& id, int epoch, const std::string& topic, int32_t partition,
                 const std::vector<Record>& batch);
  Answer AddOffsets(const std::string& id, int epoch, Group& group, const std::string& member, int generation,
                    const std::vector<std::pair<std::string, Position>>& positions);
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

 private:
  enum class Outcome { kOpen, kCommitted, kAborted };
  struct Producer {
    int epoch = -1;
    int64_t transaction = -1;
    enum class State { kEmpty, kOngoing, kEnding } state = State::kEmpty;
    absl::Duration timeout;
    std::vector<Log*> logs;
    Group* group = nullptr;
    int markers_to_come = 0;
    int64_t last_ended = -1;  // for a retry of the same end
    int64_t transactions = 0;
  };
  void Begin(Producer& producer);
  void Decide(Producer& producer, bool commits);
  void Marked(Producer& producer);

  World& world_;
  std::map<std::string, std::unique_ptr<Topic>> topics_;
  std::vector<std::unique_ptr<Topic>> deleted_;
  std::set<std::string> unwritable_;
  std::map<std::string, Producer> producers_;
  std::vector<Outcome> outcomes_;  // of all transactions
  absl::Duration away_until_;
  bool markers_are_slow_ = false;
  int topics_created_ = 0;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_BROKER_H_
