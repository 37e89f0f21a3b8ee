#include "tests/support/fake_cluster.h"

#include <algorithm>
#include <memory>

#include "absl/time/time.h"

namespace lethe::test {
namespace {

// Of a record that stays where it is.
class FakeHeaders final : public InputHeaders {
 public:
  explicit FakeHeaders(const Headers& headers) : headers_(headers) {}
  std::optional<absl::string_view> Last(const std::string& name) const override {
    const auto last = std::find_if(headers_.rbegin(), headers_.rend(),
                                   [&](const auto& header) { return header.first == name; });
    return last == headers_.rend() ? std::nullopt : std::optional<absl::string_view>(last->second);
  }
  void AppendTo(std::vector<HeaderView>& headers) const override {
    for (const auto& [name, value] : headers_) headers.push_back({name, value});
  }

 private:
  const Headers& headers_;
};

std::optional<std::string> Copy(std::optional<absl::string_view> text) {
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

}  // namespace

void FakeCluster::DeleteBefore(At partition, int64_t offset) {
  Log& log = logs[partition];
  log.entries.erase(log.entries.begin(), log.entries.begin() + (offset - log.start));
  log.start = offset;
}

FakeGroup::Member* FakeGroup::Find(const FakeSource& source) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& each) { return each.source == &source; });
  return found == members_.end() ? nullptr : &*found;
}

int FakeGroup::GenerationOf(const FakeSource& source) const {
  const Member* member = const_cast<FakeGroup*>(this)->Find(source);
  return member == nullptr || member->is_expelled ? -1 : generation_;
}

void FakeGroup::Tell(Member& member, SourceEvent::Kind kind, const std::set<int32_t>& partitions) {
  member.is_told = true;
  member.source->Tell(kind, {partitions.begin(), partitions.end()});
}

void FakeGroup::Join(FakeSource& source) {
  members_.push_back({&source});
  Rebalance();
}

void FakeGroup::Leave(FakeSource& source) {
  std::erase_if(members_, [&](const Member& each) { return each.source == &source; });
  const bool was_changing = state_ != State::kStable;
  Rebalance();
  if (was_changing) Distribute();
}

void FakeGroup::Expel(FakeSource& source) {
  Member& member = *Find(source);
  member.is_expelled = true;
  Tell(member, SourceEvent::Kind::kLost, std::exchange(member.owned, {}));
}

void FakeGroup::Answered(FakeSource& source) {
  Member* const member = Find(source);
  if (member == nullptr || !std::exchange(member->is_told, false)) return;
  if (std::exchange(member->is_expelled, false)) Rebalance();
  Distribute();
}

void FakeGroup::Rebalance() {
  if (state_ != State::kStable) {
    again_ = true;
    return;
  }
  state_ = State::kRevoking;
  if (is_cooperative_) ++generation_;
  for (size_t i = 0; i < members_.size(); ++i) {
    std::set<int32_t> taken = members_[i].owned;
    if (is_cooperative_) {
      std::erase_if(taken, [&](int32_t each) { return static_cast<size_t>(each) % members_.size() == i; });
    }
    if (!taken.empty()) Tell(members_[i], SourceEvent::Kind::kRevoked, taken);
    for (const int32_t each : taken) members_[i].owned.erase(each);
  }
  Distribute();
}

// Goes on where nobody has to answer any more.
void FakeGroup::Distribute() {
  for (const Member& member : members_) {
    if (member.is_told) return;
  }
  if (state_ == State::kAssigning) {
    state_ = State::kStable;
    if (std::exchange(again_, false)) Rebalance();
    return;
  }
  if (state_ == State::kStable || members_.empty()) {
    state_ = State::kStable;
    return;
  }
  state_ = State::kAssigning;
  ++generation_;
  std::vector<std::set<int32_t>> given(members_.size());
  for (int32_t id = 0; id < partitions_; ++id) {
    const size_t to = static_cast<size_t>(id) % members_.size();
    const auto owner = std::find_if(members_.begin(), members_.end(),
                                    [&](const Member& each) { return each.owned.contains(id); });
    if (owner == members_.end()) {
      given[to].insert(id);
    } else if (owner->source != members_[to].source) {
      again_ = true;  // members came or went meanwhile: its owner gives it up first
    }
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    members_[i].owned.insert(given[i].begin(), given[i].end());
    Tell(members_[i], SourceEvent::Kind::kAssigned, given[i]);
  }
}

absl::Status FakeSource::Open() {
  if (group_ != nullptr) group_->Join(*this);
  return absl::OkStatus();
}

void FakeSource::Leave() {
  left = true;
  if (group_ == nullptr) return;
  positions.clear();
  told.clear();
  group_->Leave(*this);
}

absl::Status FakeSource::Reopen() {
  ++reopenings;
  positions.clear();
  paused.clear();
  return absl::OkStatus();
}

void FakeSource::Assign(const std::vector<const Task*>& tasks) {
  for (const Task* task : tasks) {
    positions[task->id()] = task->next();
    at_end_.erase(task->id());
    gone_.erase(task->id());
  }
  if (group_ != nullptr) group_->Answered(*this);
}

void FakeSource::Unassign(const std::vector<TopicPartition>& partitions) {
  for (const TopicPartition& partition : partitions) {
    positions.erase(partition);
    paused.erase(partition);
  }
  if (group_ != nullptr) group_->Answered(*this);
}

bool FakeSource::TakeGeneration() {
  if (group_ != nullptr) generation_ = group_->GenerationOf(*this);
  return group_ == nullptr || generation_ >= 0;
}

void FakeSource::Reassign(const Task& task, const Tasks& /*all*/) {
  positions[task.id()] = task.next();
  at_end_.erase(task.id());
  gone_.erase(task.id());
}

ByTopic<Cluster::CommittedOffsets> FakeAnswers::AskCommitted(const std::map<std::string, int32_t>& counts) {
  ++questions;
  ByTopic<CommittedOffsets> answers;
  for (const auto& [topic, count] : counts) {
    CommittedOffsets offsets(static_cast<size_t>(count));
    if (const Flow* const flow = flows_.Find(topic); flow != nullptr) {
      for (const auto& [at, position] : cluster_.committed) {
        if (at.flow != flow->number || at.partition >= count) continue;
        offsets[static_cast<size_t>(at.partition)] = {position.offset, position.metadata};
      }
    }
    answers.emplace(topic, std::move(offsets));
  }
  return answers;
}

ByTopic<Cluster::Logs> FakeAnswers::AskLogs(const std::map<std::string, std::vector<int32_t>>& of) {
  ++questions;
  ByTopic<Logs> answers;
  for (const auto& [topic, of_topic] : of) {
    if (absl::Status bad = StatusOf(topic); !bad.ok()) {
      answers.emplace(topic, bad);
      continue;
    }
    Logs logs;
    for (const int32_t partition : of_topic) {
      const FakeCluster::Log& log = LogOf(topic, partition);
      logs[partition] = {log.start, log.end()};
    }
    answers.emplace(topic, std::move(logs));
  }
  return answers;
}

absl::StatusOr<std::vector<absl::Time>> FakeAnswers::AskTimes(const std::vector<LogPlace>& places) {
  ++questions;
  std::vector<absl::Time> times;
  for (const LogPlace& place : places) {
    const FakeCluster::Log& log = LogOf(place.topic, place.partition);
    absl::Time& time = times.emplace_back(absl::InfiniteFuture());
    for (int64_t at = std::max(place.offset, log.start); at < log.end(); ++at) {
      const FakeEntry& entry = log.entries[static_cast<size_t>(at - log.start)];
      if (entry.kind != FakeEntry::Kind::kRecord) continue;
      time = InputRecord{.timestamp_ms = entry.record.timestamp_ms}.time();
      break;
    }
  }
  return times;
}

ByTopic<int32_t> FakeAnswers::CountPartitions(const std::vector<std::string>& topics) {
  ++questions;
  ByTopic<int32_t> counts;
  for (const std::string& topic : topics) {
    if (absl::Status bad = StatusOf(topic); !bad.ok()) {
      counts.emplace(topic, bad);
    } else {
      counts.emplace(topic, partitions);
    }
  }
  return counts;
}

std::map<std::string, std::string> FakeAnswers::TopicIds(const std::vector<std::string>& topics) {
  std::map<std::string, std::string> ids;
  for (const std::string& topic : topics) ids[topic] = topic_id;
  return ids;
}

absl::Status FakeAnswers::ReadTotals(const std::string& topic, const std::vector<int32_t>& of,
                                     const std::function<void(const InputRecord&)>& see,
                                     const GoOn& /*go_on*/) {
  int64_t offset = 0;
  for (const FakeCluster::Written& each : cluster_.output) {
    if (each.target.kind != Target::Kind::kCounter ||
        flows_.at(each.target.flow).options.counters[each.target.counter].output != topic ||
        std::find(of.begin(), of.end(), each.partition) == of.end()) {
      continue;
    }
    see({each.partition, offset++, each.record.key, each.record.value, each.record.timestamp_ms});
  }
  return absl::OkStatus();
}

void FakeSource::PollBatch(absl::Duration /*timeout*/, size_t limit, size_t /*most_bytes*/) {
  if (on_poll) on_poll();
  if (!told.empty()) {
    AddEvent({0, -1}, -1, SourceEvent::Kind::kError, "");
    events_.back() = std::move(told.front());
    told.pop_front();
  }
  for (auto& [partition, position] : positions) {
    if (paused.contains(partition) || gone_.contains(partition)) continue;
    const FakeCluster::Log& log = cluster_.logs[partition];
    if (position < log.start || position > log.end()) {
      gone_.insert(partition);
      AddEvent(partition, position, SourceEvent::Kind::kUnreadDeleted, "offset out of range");
      continue;
    }
    while (position < log.end() && batch_.size() < limit) {
      const FakeEntry& entry = log.entries[static_cast<size_t>(position - log.start)];
      if (entry.kind == FakeEntry::Kind::kUnreadable) {
        AddEvent(partition, position, SourceEvent::Kind::kUnreadable, "broken");
        break;
      }
      if (entry.kind == FakeEntry::Kind::kRecord) {
        const FakeRecord& record = records_.emplace_back(entry.record);
        headers_.emplace_back(std::make_unique<FakeHeaders>(record.headers));
        batch_.push_back({partition.partition, position, record.key, record.value, record.timestamp_ms,
                          headers_.back().get(), nullptr, partition.flow});
      }
      ++position;
    }
    if (position == log.end() && at_end_.insert(partition).second) {
      AddEvent(partition, position, SourceEvent::Kind::kEnd, "");
    }
    if (position < log.end()) at_end_.erase(partition);
  }
  if (batch_.empty() && on_idle) on_idle();
}

void FakeSource::ReleaseBatch() {
  headers_.clear();
  records_.clear();
  events_.clear();
}

void FakeSource::AddEvent(TopicPartition partition, int64_t offset, SourceEvent::Kind kind,
                          const std::string& why) {
  events_.push_back({.kind = kind, .why = why});
  InputRecord record;
  record.partition = partition.partition;
  record.flow = partition.flow;
  record.offset = offset;
  record.event = &events_.back();
  batch_.push_back(record);
}

void FakeSource::MoveTo(const Task& task, int64_t offset) {
  seeks.emplace_back(task.id(), offset);
  if (positions.contains(task.id()) && !gone_.contains(task.id())) positions[task.id()] = offset;
  at_end_.erase(task.id());
}

void FakeSource::Pause(const Task& task, bool is_paused) {
  is_paused ? void(paused.insert(task.id())) : void(paused.erase(task.id()));
}

absl::Status FakeSink::Open(OutputLimits /*limits*/) {
  is_open = true;
  return absl::OkStatus();
}

absl::Status FakeSink::Begin() {
  if (needs_new_member) ++begun_too_early;
  report_ = {};
  pending_.clear();
  places_.clear();
  return absl::OkStatus();
}

absl::Status FakeSink::Write(const OutputRecord& record) {
  if (fail_writes > 0) {
    --fail_writes;
    report_.failure = Failure::kTransient;
    report_.last_error = "the broker is away";
    return absl::UnavailableError(report_.last_error);
  }
  FakeRecord written = {Copy(record.key), Copy(record.value), record.timestamp_ms};
  for (const auto& [name, value] : record.headers) {
    written.headers.emplace_back(std::string(name), std::string(value.value_or("")));
  }
  pending_.push_back({record.target, record.partition, std::move(written)});
  places_.push_back(record.of);
  return absl::OkStatus();
}

Outcome FakeSink::Commit(const std::vector<Position>& positions) {
  if (on_commit) on_commit();
  for (size_t i = 0; i < pending_.size(); ++i) {
    const FakeCluster::Written& written = pending_[i];
    const auto bytes = static_cast<int64_t>(written.record.value.value_or("").size());
    const bool is_too_large = bytes > cluster_.output_rules.max_batch_bytes;
    const bool is_invalid = refuses && refuses(written.record);
    if (written.target.kind != Target::Kind::kOutput || (!is_too_large && !is_invalid)) continue;
    report_.failure = Failure::kRefused;
    report_.last_error = "refused";
    report_.refusals_are_named = true;
    report_.refusals.push_back(
        {places_[i],
         {.bytes = bytes, .timestamp_ms = written.record.timestamp_ms, .is_invalid = !is_too_large},
         "refused"});
  }
  for (const FakeCluster::Written& written : pending_) {
    if (!bad_outputs.contains(written.target.flow)) continue;
    report_.failure = Failure::kTransient;
    report_.last_error = "the topic is missing";
    report_.to_blame[written.target.flow] = report_.last_error;
  }
  if (report_.failure == Failure::kNone && fail_commits > 0) {
    --fail_commits;
    report_.failure = Failure::kTransient;
    report_.last_error = "the commit failed";
  }
  if (is_fenced || (member_ != nullptr && !member_->IsInGroup())) {
    report_.failure = Failure::kTransient;
    report_.has_group_moved_on = true;
    report_.last_error = "fenced";
  }
  if (report_.failure != Failure::kNone) return Abort();
  if (lose_commits > 0) {
    --lose_commits;
    report_.failure = Failure::kTransient;
    report_.last_error = "the commit was lost";
    return Outcome::kUnknown;
  }
  cluster_.output.insert(cluster_.output.end(), pending_.begin(), pending_.end());
  for (const Position& position : positions) cluster_.committed[position.partition] = position;
  ++commits;
  if (lose_answers > 0) {
    --lose_answers;
    report_.failure = Failure::kTransient;
    report_.last_error = "the answer was lost";
    return Outcome::kUnknown;
  }
  return Outcome::kCommitted;
}

Outcome FakeSink::Abort() {
  ++aborts;
  return Outcome::kAborted;
}

TransactionSize FakeSink::size() const {
  int64_t bytes = 0;
  for (const FakeCluster::Written& written : pending_) {
    bytes += static_cast<int64_t>(written.record.key.value_or("").size() +
                                  written.record.value.value_or("").size());
  }
  return {0, bytes, bytes, absl::ZeroDuration()};
}

std::map<int32_t, TransactionSize> FakeSink::SizeByFlow() const {
  std::map<int32_t, TransactionSize> sizes;
  for (const FakeCluster::Written& written : pending_) {
    TransactionSize& size = sizes[written.target.flow];
    size.bytes += static_cast<int64_t>(written.record.key.value_or("").size() +
                                       written.record.value.value_or("").size());
    size.acknowledged = size.bytes;
    if (const auto slow = bytes_per_second.find(written.target.flow); slow != bytes_per_second.end()) {
      size.waited = absl::Seconds(static_cast<double>(size.bytes) / static_cast<double>(slow->second));
    }
  }
  return sizes;
}

}  // namespace lethe::test
