#include "tests/simulation/broker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/simulation/group.h"

namespace lethe::simulation {

int64_t Log::stable_end() const {
  int64_t stable = end();
  for (const auto& [transaction, first] : open_) stable = std::min(stable, first);
  return stable;
}

int64_t Log::Append(Entry entry) {
  const int64_t offset = end();
  if (entry.transaction >= 0) open_.try_emplace(entry.transaction, offset);
  entries_.push_back(std::move(entry));
  if (on_change) on_change();
  return offset;
}

void Log::EndTransaction(int64_t transaction) {
  entries_.push_back({.kind = Entry::Kind::kMarker});
  open_.erase(transaction);
  if (on_change) on_change();
}

void Log::Truncate(int64_t end) {
  std::deque<Entry> kept(entries_.begin(), entries_.begin() + (end - begin_));
  truncated_.push_back(std::exchange(entries_, std::move(kept)));
  start_ = std::min(start_, end);
  truncations_.push_back(end);
  std::erase_if(open_, [&](const auto& each) { return each.second >= end; });
}

Topic& Broker::CreateTopic(const std::string& name, int32_t partitions,
                           std::map<std::string, std::string> config) {
  auto topic = std::make_unique<Topic>();
  topic->name = name;
  topic->id = absl::StrCat("id", ++topics_created_);
  topic->config = std::move(config);
  for (int32_t i = 0; i < partitions; ++i) topic->logs.push_back(std::make_unique<Log>());
  return *(topics_[name] = std::move(topic));
}

std::vector<std::string> Broker::TopicNames() const {
  std::vector<std::string> names;
  for (const auto& [name, topic] : topics_) names.push_back(name);
  return names;
}

void Broker::AddPartition(const std::string& name) {
  topic(name).logs.push_back(std::make_unique<Log>());
  topic(name).logs.back()->on_change = topic(name).logs.front()->on_change;
}

void Broker::Delete(const std::string& name) {
  deleted_.push_back(std::move(topics_.extract(name).mapped()));
}

std::vector<const Topic*> Broker::AllOf(const std::string& name) const {
  std::vector<const Topic*> all;
  for (const auto& topic : deleted_) {
    if (topic->name == name) all.push_back(topic.get());
  }
  if (const Topic* const present = Find(name)) all.push_back(present);
  return all;
}

void Broker::SetWritable(const std::string& name, bool is_writable) {
  is_writable ? static_cast<void>(unwritable_.erase(name)) : static_cast<void>(unwritable_.insert(name));
}

void Broker::GoAway(absl::Duration duration) { away_until_ = std::max(away_until_, world_.now() + duration); }

Answer Broker::Init(const std::string& id, absl::Duration timeout, int* epoch) {
  if (is_away()) return Answer::kAway;
  Producer& producer = producers_[id];
  // The earlier producer of this name is fenced; its open transaction is aborted first.
  if (producer.state == Producer::State::kOngoing) {
    ++producer.epoch;
    Decide(producer, /*commits=*/false);
  }
  if (producer.state == Producer::State::kEnding) return Answer::kBusy;
  producer.timeout = timeout;
  producer.transaction = -1;
  producer.sequences.clear();
  *epoch = ++producer.epoch;
  world_.Say(id, " has epoch ", *epoch);
  return Answer::kOk;
}

void Broker::Begin(const std::string& id, Producer& producer) {
  if (producer.state != Producer::State::kEmpty) return;
  producer.state = Producer::State::kOngoing;
  producer.transaction = BeginTransaction();
  ++producer.transactions;
  producer.logs.clear();
  producer.group = nullptr;
  world_.Say(id, " begins transaction ", producer.transaction);
  world_.After(producer.timeout, [this, &producer, transaction = producer.transaction] {
    if (producer.state != Producer::State::kOngoing || producer.transaction != transaction) return;
    TimeOut(producer);
  });
}

void Broker::TimeOut(Producer& producer) {
  world_.Say("the coordinator aborts transaction ", producer.transaction, ", which has timed out");
  ++producer.epoch;
  Decide(producer, /*commits=*/false);
}

void Broker::TimeOutTransactions() {
  for (auto& [id, producer] : producers_) {
    if (producer.state == Producer::State::kOngoing) TimeOut(producer);
  }
}

int64_t Broker::SumOfEpochs() const {
  int64_t sum = 0;
  for (const auto& [id, producer] : producers_) sum += producer.epoch;
  return sum;
}

Answer Broker::IsCurrent(const Producer& producer, int epoch) const {
  if (is_away()) return Answer::kAway;
  if (epoch != producer.epoch) return Answer::kFenced;
  return producer.state == Producer::State::kEnding ? Answer::kBusy : Answer::kOk;
}

Answer Broker::AddPartition(const std::string& id, int epoch, const std::string& topic, int32_t partition) {
  Producer& producer = producers_.at(id);
  if (const Answer may = IsCurrent(producer, epoch); may != Answer::kOk) return may;
  if (unwritable_.contains(topic)) return Answer::kNotPermitted;
  Log* const log = FindLog(topic, partition);
  if (log == nullptr) return Answer::kNoTopic;
  Begin(id, producer);
  if (std::find(producer.logs.begin(), producer.logs.end(), log) == producer.logs.end()) {
    producer.logs.push_back(log);
  }
  return Answer::kOk;
}

Answer Broker::Produce(const std::string& id, int epoch, const std::string& topic, int32_t partition,
                       int64_t sequence, const std::vector<Record>& batch) {
  Producer& producer = producers_.at(id);
  if (const Answer may = IsCurrent(producer, epoch); may != Answer::kOk) return may;
  if (unwritable_.contains(topic)) return Answer::kNotPermitted;
  Log* const log = FindLog(topic, partition);
  if (log == nullptr) return Answer::kNoTopic;
  int64_t& next = producer.sequences.try_emplace(log, sequence).first->second;
  if (sequence < next) return Answer::kOk;
  if (producer.state != Producer::State::kOngoing ||
      std::find(producer.logs.begin(), producer.logs.end(), log) == producer.logs.end()) {
    return Answer::kNotOfIt;
  }
  next = sequence + 1;
  world_.Say(id, " writes ", batch.size(), " records to ", topic, "-", partition, " from ", log->end(),
             " on, in transaction ", producer.transaction);
  for (const Record& record : batch) {
    Entry entry = {.transaction = producer.transaction, .record = record};
    entry.record.partition = partition;
    entry.record.offset = log->end();
    log->Append(std::move(entry));
  }
  return Answer::kOk;
}

Answer Broker::AddOffsets(const std::string& id, int epoch, Group& group) {
  Producer& producer = producers_.at(id);
  if (const Answer may = IsCurrent(producer, epoch); may != Answer::kOk) return may;
  Begin(id, producer);
  producer.group = &group;
  return Answer::kOk;
}

Answer Broker::CommitOffsets(const std::string& id, int epoch, Group& group, const std::string& member,
                             int generation, const std::vector<std::pair<std::string, Position>>& positions) {
  Producer& producer = producers_.at(id);
  if (is_old_ && epoch != producer.epoch && group.MayCommit(member, generation) &&
      producer.state == Producer::State::kOngoing) {
    group.DropPending(producer.transaction, positions);
  }
  if (const Answer may = IsCurrent(producer, epoch); may != Answer::kOk) return may;
  if (producer.state != Producer::State::kOngoing || producer.group != &group) return Answer::kNotOfIt;
  if (!group.MayCommit(member, generation)) return Answer::kGroupMovedOn;
  for (const auto& [topic, position] : positions) {
    if (FindLog(topic, position.partition.partition) == nullptr) return Answer::kNoTopic;
  }
  for (const auto& [topic, position] : positions) {
    world_.Say(id, " sends offset ", position.offset, " of ", topic, "-", position.partition.partition,
               " in transaction ", producer.transaction);
  }
  group.AddPending(producer.transaction, positions);
  return Answer::kOk;
}

Answer Broker::End(const std::string& id, int epoch, bool commits) {
  if (is_away()) return Answer::kAway;
  Producer& producer = producers_.at(id);
  if (epoch != producer.epoch) return Answer::kFenced;
  switch (producer.state) {
    case Producer::State::kOngoing:
      world_.Say(id, commits ? " commits" : " aborts", " transaction ", producer.transaction);
      Decide(producer, commits);
      return Answer::kOk;
    case Producer::State::kEnding:
      // Asked again, since the answer was lost.
      return is_committed(producer.transaction) == commits ? Answer::kOk : Answer::kFenced;
    case Producer::State::kEmpty:
      // Of the transaction that ended last.
      return producer.transaction < 0 || is_committed(producer.transaction) == commits ? Answer::kOk
                                                                                       : Answer::kFenced;
  }
  return Answer::kOk;
}

void Broker::Decide(Producer& producer, bool commits) {
  producer.state = Producer::State::kEnding;
  outcomes_[static_cast<size_t>(producer.transaction)] = commits ? Outcome::kCommitted : Outcome::kAborted;
  producer.markers_to_come = static_cast<int>(producer.logs.size()) + 1;
  const auto delay = [this] {
    const bool is_slow = world_.dice().OneIn(markers_are_slow_ ? 2 : 16);
    return world_.dice().Between(absl::ZeroDuration(), absl::Milliseconds(is_slow ? 2000 : 3));
  };
  for (Log* log : producer.logs) {
    world_.After(delay(), [this, &producer, log, transaction = producer.transaction] {
      log->EndTransaction(transaction);
      Marked(producer);
    });
  }
  world_.After(delay(),
               [this, &producer, commits, group = producer.group, transaction = producer.transaction] {
                 if (group != nullptr) group->EndPending(transaction, commits);
                 Marked(producer);
               });
}

void Broker::Marked(Producer& producer) {
  if (--producer.markers_to_come > 0) return;
  producer.state = Producer::State::kEmpty;
}

int64_t Broker::BeginTransaction() {
  outcomes_.push_back(Outcome::kOpen);
  return static_cast<int64_t>(outcomes_.size()) - 1;
}

void Broker::EndTransaction(int64_t transaction, bool commits, Log& log) {
  outcomes_[static_cast<size_t>(transaction)] = commits ? Outcome::kCommitted : Outcome::kAborted;
  log.EndTransaction(transaction);
}

std::vector<Record> Broker::CommittedIn(const Topic& topic) const {
  std::vector<Record> records;
  size_t entries = 0;
  for (const auto& log : topic.logs) entries += static_cast<size_t>(log->stable_end());
  records.reserve(entries);
  for (const auto& log : topic.logs) {
    const int64_t end = log->stable_end();
    for (int64_t i = 0; i < end; ++i) {
      const Entry& entry = log->at(i);
      if (entry.kind == Entry::Kind::kRecord && is_committed(entry.transaction)) {
        records.push_back(entry.record);
      }
    }
  }
  return records;
}

std::vector<Record> Broker::Committed(const std::string& name) const {
  std::vector<Record> records;
  for (const Topic* topic : AllOf(name)) {
    std::vector<Record> more = CommittedIn(*topic);
    if (records.empty()) {
      records = std::move(more);
    } else {
      std::move(more.begin(), more.end(), std::back_inserter(records));
    }
  }
  return records;
}

}  // namespace lethe::simulation
