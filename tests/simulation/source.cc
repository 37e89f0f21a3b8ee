#include "tests/simulation/source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/pipeline/assign/instance_claim.h"

namespace lethe::simulation {
namespace {

// Without anything to read a worker looks rarely: every look costs the simulation time.
constexpr absl::Duration kIdle = absl::Milliseconds(100);
constexpr absl::Duration kLongIdle = absl::Milliseconds(500);

// So few that the client has to stop now and then.
constexpr size_t kMostAside = 40;

class Headers final : public InputHeaders {
 public:
  explicit Headers(const Record& record) : record_(record) {}
  std::optional<absl::string_view> Last(const std::string& name) const override {
    for (auto each = record_.headers.rbegin(); each != record_.headers.rend(); ++each) {
      if (each->first != name) continue;
      return each->second ? std::optional<absl::string_view>(*each->second) : std::nullopt;
    }
    return std::nullopt;
  }
  void AppendTo(std::vector<HeaderView>& headers) const override {
    for (const auto& [name, value] : record_.headers) headers.push_back({name, value});
  }

 private:
  const Record& record_;
};

}  // namespace

InputRecord ViewOf(const Record& record, TopicPartition partition, int64_t offset,
                   std::deque<std::unique_ptr<InputHeaders>>& headers) {
  InputRecord view = {partition.partition, offset, record.key, record.value, record.timestamp_ms};
  view.flow = partition.flow;
  if (!record.headers.empty()) {
    view.headers = headers.emplace_back(std::make_unique<Headers>(record)).get();
  }
  return view;
}

SimulatedSource::SimulatedSource(const DaemonOptions& options, const Flows& flows, int lane, Broker& broker,
                                 Group& group, const Connection& connection, Thread& thread)
    : options_(options),
      flows_(flows),
      broker_(broker),
      group_(group),
      connection_(connection),
      thread_(thread),
      client_(
          thread.world(), group, connection, [this] { Wake(); },
          [this](const std::string& topic) { return flows_.Find(topic)->number; }),
      static_id_(options.process.static_membership == StaticMembership::kNever
                     ? ""
                     : MemberName(options.process, lane)),
      asides_(*this, kMostAside) {}

absl::Status SimulatedSource::Open() {
  thread_.Pass();
  client_.Open(static_id_, options_.process.instance, Topics());
  return absl::OkStatus();
}

std::set<std::string> SimulatedSource::Topics() const {
  std::set<std::string> topics;
  for (int32_t flow = 0; flow < flows_.size(); ++flow) topics.insert(TopicOf({flow, 0}));
  return topics;
}

absl::Status SimulatedSource::Resubscribe() {
  thread_.Pass();
  client_.Subscribe(Topics());
  return absl::OkStatus();
}

void SimulatedSource::Leave() {
  thread_.Pass();
  client_.Close(options_.process.static_membership != StaticMembership::kAlways);
  positions_.clear();
  asides_.Clear();
  thread_.Pass();
}

absl::Status SimulatedSource::Rejoin() {
  thread_.Pass();
  client_.Rejoin();
  return absl::OkStatus();
}

absl::Status SimulatedSource::Reopen() {
  thread_.Pass();
  client_.Close(/*leaves=*/false);
  positions_.clear();
  ClearBatch();
  asides_.Clear();
  return Open();
}

void SimulatedSource::Assign(const std::vector<const Task*>& tasks) {
  thread_.Pass();
  if (!group_.options().is_cooperative) positions_.clear();
  for (const Task* task : tasks) {
    asides_.Drop(task->id());
    positions_[task->id()] = PositionAt(*task);
  }
  client_.Answer();
  thread_.Pass();
}

SimulatedSource::Position SimulatedSource::PositionAt(const Task& task) const {
  const Log* const log = broker_.FindLog(TopicOf(task.id()), task.id().partition);
  return {.next = task.next(),
          .sought = task.next(),
          .truncations = log == nullptr ? 0 : log->truncations().size()};
}

void SimulatedSource::Unassign(const std::vector<TopicPartition>& partitions) {
  thread_.Pass();
  if (!group_.options().is_cooperative) positions_.clear();
  for (const TopicPartition& each : partitions) {
    asides_.Forget(each);
    positions_.erase(each);
  }
  client_.Answer();
  thread_.Pass();
}

bool SimulatedSource::TakeGeneration() {
  thread_.Pass();
  taken_generation_ = client_.generation();
  const bool is_member = !client_.member().empty();
  commit_member_ = client_.member();
  if (is_member) taken_member_ = client_.member();
  return is_member;
}

void SimulatedSource::Reassign(const Task& task, const Tasks& all) {
  thread_.Pass();
  const auto assign = [this](const Task& each) {
    asides_.Drop(each.id());
    positions_[each.id()] = PositionAt(each);
  };
  if (group_.options().is_cooperative) return assign(task);
  positions_.clear();
  for (const auto& [id, each] : all) {
    if (each->phase() != Phase::kFailed) assign(*each);
  }
}

int64_t SimulatedSource::HighWatermark(TopicPartition partition) const {
  const auto position = positions_.find(partition);
  return position == positions_.end() ? 0 : position->second.known_end;
}

bool SimulatedSource::TakeEvent() {
  auto event = client_.Take();
  if (!event) return false;
  InputRecord record;
  record.event = &events_.emplace_back(*std::move(event));
  batch_.push_back(record);
  return true;
}

void SimulatedSource::PollBatch(absl::Duration timeout, size_t limit, size_t /*most_bytes*/) {
  thread_.Pass();
  TakeEventAndFetch(limit);
  if (batch_.empty()) {
    thread_.Sleep(timeout < kIdle ? timeout : kLongIdle);
    TakeEventAndFetch(limit);
  }
  thread_.Pass();
}

// What was fetched before an event of the group comes behind it.
void SimulatedSource::TakeEventAndFetch(size_t limit) {
  if (!TakeEvent() || thread_.world().dice().OneIn(2)) Fetch(limit);
}

void SimulatedSource::Fetch(size_t limit) {
  // Not all that comes again has room, now and then.
  const size_t room = std::min(limit, static_cast<size_t>(thread_.world().dice().Between(1, 60)));
  if (!asides_.Return([&] { return batch_.size() < room; },
                      [this](FetchedPtr fetched, size_t) { Add(std::move(fetched)); })) {
    return;
  }
  if (!connection_.is_up() || broker_.is_away()) return;
  for (auto& [partition, position] : positions_) {
    if (!position.is_paused && !position.is_gone && thread_.world().dice().Below(4) != 0) {
      FetchFrom(partition, position, limit);
    }
  }
}

void SimulatedSource::FetchFrom(TopicPartition partition, Position& position, size_t limit) {
  const Log* const found = broker_.FindLog(TopicOf(partition), partition.partition);
  if (found == nullptr) return;
  const Log& log = *found;
  position.known_end = log.end();
  bool is_cut = false;
  for (; position.truncations < log.truncations().size(); ++position.truncations) {
    is_cut = is_cut || std::max(position.next, position.sought) > log.truncations()[position.truncations];
  }
  // It asks for what it was told to; what it repeats it had fetched before.
  if (position.next < log.start()) position.next = std::max(position.next, position.sought);
  if (is_cut || position.next < log.start() || position.next > log.end()) {
    position.is_gone = true;
    return Bring(partition, position.next, nullptr,
                 SourceEvent{.kind = SourceEvent::Kind::kUnreadDeleted,
                             .why = flows_.at(partition.flow).NameOf(partition.partition)});
  }
  const int64_t end = log.stable_end();
  const bool had_more = position.next < end;
  // What one fetch brings.
  const auto most = static_cast<size_t>(thread_.world().dice().Between(1, 60));
  const size_t until = batch_.size() + std::min(most, limit);
  while (position.next < end && batch_.size() < until && batch_.size() < limit && !position.is_paused) {
    const Entry& entry = log.at(position.next);
    if (entry.kind == Entry::Kind::kUnreadable) {
      Bring(partition, entry.batch, nullptr,
            SourceEvent{.kind = SourceEvent::Kind::kUnreadable, .why = "broken"});
      return;
    }
    if (entry.kind == Entry::Kind::kRecord && broker_.is_committed(entry.transaction)) {
      Bring(partition, position.next, &entry.record);
    }
    ++position.next;
  }
  if (had_more) position.has_said_end = false;
  if (position.next >= end && !std::exchange(position.has_said_end, true)) {
    Bring(partition, position.next, nullptr, SourceEvent{.kind = SourceEvent::Kind::kEnd});
  }
}

void SimulatedSource::Bring(TopicPartition partition, int64_t offset, const Record* record,
                            std::optional<SourceEvent> event) {
  const size_t bytes = record == nullptr ? 0 : record->value.value_or("").size();
  auto fetched = std::make_unique<Fetched>(
      Fetched{{partition, offset, record != nullptr, bytes}, record, std::move(event)});
  if (!asides_.TakeFollowing(fetched)) Add(std::move(fetched));
}

void SimulatedSource::Add(FetchedPtr fetched) {
  const auto& [partition, offset, is_record, bytes] = fetched->place;
  if (is_record) {
    batch_.push_back(ViewOf(*fetched->record, partition, offset, headers_));
  } else {
    InputRecord& record = batch_.emplace_back();
    record.flow = partition.flow;
    record.partition = partition.partition;
    record.offset = offset;
    record.event = &events_.emplace_back(*fetched->event);
  }
  fetched_.push_back(std::move(fetched));
}

void SimulatedSource::StopFetching(TopicPartition partition) {
  const auto position = positions_.find(partition);
  if (position != positions_.end()) position->second.is_paused = true;
}

void SimulatedSource::FetchAgain(TopicPartition partition, std::optional<int64_t> offset) {
  const auto position = positions_.find(partition);
  if (position == positions_.end()) return;
  position->second.is_paused = false;
  if (offset) position->second.next = *offset;
}

void SimulatedSource::SetAside(const Task& task, absl::Span<const InputRecord> records) {
  thread_.Pass();
  asides_.SetAside(task.id(), records, fetched_);
}

void SimulatedSource::Wait(Task& task) { asides_.Wait(task.id()); }

void SimulatedSource::TakeBack(Task& task) {
  SkipRestOfBatch(task);
  asides_.TakeBack(task.id(), task.next(), fetched_);
}

void SimulatedSource::ReleaseBatch() {
  asides_.Release();
  fetched_.clear();
  events_.clear();
  headers_.clear();
}

void SimulatedSource::MoveTo(const Task& task, int64_t offset) {
  thread_.Pass();
  asides_.Drop(task.id());
  const auto position = positions_.find(task.id());
  if (position == positions_.end() || position->second.is_gone) return;
  thread_.world().Say(client_.name(), " seeks ", TopicOf(task.id()), "-", task.id().partition, " to ",
                      offset);
  position->second.next = position->second.sought = offset;
  position->second.has_said_end = false;
  // The client may repeat some records after a seek.
  if (offset > 0 && thread_.world().dice().OneIn(8)) {
    const Log* const log = broker_.FindLog(TopicOf(task.id()), task.id().partition);
    // It sees that the log was cut by the epoch of what it had read.
    const bool is_same = log != nullptr && position->second.truncations == log->truncations().size();
    if (is_same && log->start() < offset && offset <= log->end() &&
        log->at(offset - 1).kind == Entry::Kind::kRecord) {
      --position->second.next;
    }
  }
}

void SimulatedSource::Pause(const Task& task, bool paused) {
  thread_.Pass();
  asides_.SetPaused(task.id(), paused);
}

}  // namespace lethe::simulation
