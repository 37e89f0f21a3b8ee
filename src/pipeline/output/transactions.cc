#include "src/pipeline/output/transactions.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/assertion.h"

namespace lethe {
namespace {

constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(100);
// A transaction is also due when its counters' sums take this much: keys may be as large as records.
constexpr int64_t kMaxSumsBytes = int64_t{16} << 20;
// While all is behind, so many commit intervals are one transaction: commits take the time of few of them.
constexpr int kIntervalsBehind = 10;
// Much longer ones gain nothing, and look as if the lane stood still.
constexpr absl::Duration kLongestBehind = absl::Seconds(10);
// Of the time after which the brokers abort it: the rest is for its commit, which may take long.
constexpr int kShareOfTimeout = 3;
// Quiet streams may spend a tenth of the time in commits.
constexpr int kTimesBetween = 9;
// What the mean of a commit's duration takes of a new one.
constexpr int kShareOfMean = 4;
// Fewer in a row are a rebalance or a broker's restart.
constexpr int kManyFailures = 3;
// What topics take by default (max.message.bytes).
constexpr int64_t kUsualBytes = 1'048'588;

int64_t SumsBytes(const Tasks& tasks) {
  int64_t bytes = 0;
  for (const auto& [id, partition] : tasks) {
    for (const CounterSums& sums : partition->sums()) bytes += sums.bytes();
  }
  return bytes;
}

int64_t BytesOf(const InputRecord& input) {
  constexpr int64_t kOverhead = 10;
  size_t bytes = input.key.value_or("").size() + input.value.value_or("").size();
  if (input.headers != nullptr) {
    std::vector<HeaderView> headers;
    input.headers->AppendTo(headers);
    for (const HeaderView& header : headers) bytes += header.name.size() + header.value.value_or("").size();
  }
  return static_cast<int64_t>(bytes) + kOverhead;
}

}  // namespace

Transactions::Transactions(const Workplace& place, LaneFlows& flows, HeldPartitions& held,
                           SnapshotCycle& snapshots)
    : options_(place.options()),
      state_(place.state),
      source_(place.source),
      tasks_(place.tasks),
      sink_(place.sink),
      cluster_(place.cluster),
      all_flows_(place.shared.flows),
      flows_(flows),
      held_(held),
      snapshots_(snapshots) {}

OutputLimits Transactions::Limits() const {
  // Without a flow: those of Kafka.
  OutputLimits limits = {.batch_bytes = all_flows_.size() == 0 ? kUsualBytes : INT64_MAX,
                         .record_bytes = kUsualBytes};
  for (int32_t flow = 0; flow < all_flows_.size(); ++flow) {
    const Topics& topics = all_flows_.at(flow).topics;
    limits.batch_bytes = std::min(limits.batch_bytes, topics.max_batch_bytes());
    limits.record_bytes = std::max(limits.record_bytes, topics.max_record_bytes());
  }
  return limits;
}

absl::Status Transactions::Open() {
  limits_ = Limits();
  return sink_.Open(limits_);
}

size_t Transactions::room_records() const {
  return backoff_.max_records() - std::min(carried_out_, backoff_.max_records() - 1);
}

absl::Duration Transactions::time_left() const {
  return open_ ? look_at_ - state_.clock.Steady() : absl::InfiniteDuration();
}

bool Transactions::IsFull() const {
  return carried_out_ >= backoff_.max_records() || sink_.size().bytes >= backoff_.max_bytes() ||
         SumsBytes(tasks_) >= kMaxSumsBytes;
}

bool Transactions::IsDue(bool is_drained) {
  if (!open_) return false;
  if (IsFull()) return true;
  const absl::Time now = state_.clock.Steady();
  look_at_ = deadline_;
  if (now >= deadline_) {
    if (now >= last_deadline_ || !IsBehind()) return true;
    look_at_ = deadline_ = std::min(now + options_.process.commit_interval, last_deadline_);
    return false;
  }
  // Each commit writes all counters that have changed.
  if (!is_drained || SumsBytes(tasks_) > 0) return false;
  if (now >= quiet_from_) return !IsBehind();
  look_at_ = std::min(deadline_, quiet_from_);
  return false;
}

bool Transactions::IsBehind() const {
  // Partitions of slow topics wait for its end, and other routers for what is committed of the slowest
  // source.
  if (!awaiting_room_.empty() || options_.half.routing) return false;
  const std::vector<Task*> partitions = InTransaction(tasks_);
  return std::all_of(partitions.begin(), partitions.end(), [&](const Task* task) {
    const bool is_at_end = task->end_of_log() == task->next();  // others' transactions may be open behind it
    return !is_at_end && task->stop_before_next().empty() &&
           source_.HighWatermark(task->id()) - task->next() > task->next() - task->committed();
  });
}

absl::Status Transactions::Begin(Task& task) {
  if (!open_) {
    LETHE_ASSERT(InTransaction(tasks_).empty());
    // The worker reopens the source after this step.
    if (sink_.NeedsNewMember()) return absl::AbortedError("this member of the group may not commit again");
    // A flow that was added may write to a topic that takes less, or reads larger records.
    if (const OutputLimits limits = Limits();
        limits.batch_bytes < limits_.batch_bytes || limits.record_bytes > limits_.record_bytes) {
      if (absl::Status opened = Open(); !opened.ok()) return opened;
    }
    if (absl::Status begun = sink_.Begin(); !begun.ok()) {
      if (!absl::IsCancelled(begun)) state_.fatal.Update(begun);
      return begun;
    }
    open_ = true;
    tried_.clear();
    const absl::Time now = state_.clock.Steady();
    const absl::Duration interval = options_.process.commit_interval;
    look_at_ = deadline_ = now + interval;
    const absl::Duration longest =
        std::min({kIntervalsBehind * interval, kLongestBehind, sink_.timeout() / kShareOfTimeout});
    last_deadline_ = now + std::max(interval, longest);
    figures_.TransactionBegun(state_.clock.Wall());
  }
  if (task.in_transaction()) return absl::OkStatus();
  auto begun = task.filter()->Begin();
  if (!begun.ok()) {
    state_.fatal = begun.status();
    return begun.status();
  }
  task.Begin(*std::move(begun));
  return absl::OkStatus();
}

size_t Transactions::RoomFor(const Task& task, RecordRun run) {
  const LaneFlow& flow = flows_.Of(task);
  if (!flow.room || !flow.room->is_bounded()) return run.size();
  int64_t left = flow.room->max_bytes() - flow.written;
  size_t fits = flow.written == 0 ? 1 : 0;  // or a large record would never pass
  for (size_t i = 0; i < run.size() && left > 0; ++i) {
    left -= BytesOf(run[i]);
    fits = i + 1;
  }
  return fits;
}

void Transactions::AwaitRoom(Task& task, RecordRun rest) {
  source_.SetAside(task, rest);
  if (task.SetAwaitsRoom(true)) return;
  source_.Wait(task);
  awaiting_room_.push_back(task.id());
}

absl::Status Transactions::Write(Task& task, const JudgedRun& run) {
  LETHE_ASSERT(open_ && task.in_transaction());
  // Before the records are carried out: if one fails, the transaction has tried all of them.
  const InputRecord& last = *run.records.back().input;
  task.Judged(last);
  carried_out_ += run.records.size();
  figures_.RunJudged(run.oldest_ms, run.records.size());
  LaneFlow& flow = flows_.Of(task);
  const int64_t before = sink_.size().bytes;
  const RecordRules& rules = flow.refusals.rules();
  const absl::Time now = state_.clock.Wall();
  for (const JudgedRecord& record : run.records) {
    if (absl::Status written = flow.writer.CarryOut(task, record, rules, now); !written.ok()) return written;
  }
  flow.written += sink_.size().bytes - before;
  return absl::OkStatus();
}

void Transactions::PassOver(Task& task, int64_t end) {
  task.SkipUnreadable(end);
  ++carried_out_;
}

void Transactions::Commit() {
  LETHE_ASSERT(open_);
  figures_.CommitBegins(state_.clock.Wall());
  const absl::Time begin = state_.clock.Steady();
  const std::vector<Task*> partitions = InTransaction(tasks_);
  for (Task* task : partitions) {
    if (!flows_.Of(*task).writer.ProduceSums(*task).ok()) return Abort();
  }
  snapshots_.Name(partitions);
  const std::vector<Position> positions = Positions(partitions);
  for (const Position& position : positions) tried_[position.partition] = position.metadata;
  const Outcome outcome = sink_.Commit(positions);
  if (outcome != Outcome::kCommitted) return RollBack(outcome);
  const absl::Time end = state_.clock.Steady();
  const bool is_first = commit_takes_ == absl::ZeroDuration();
  commit_takes_ += (end - begin - commit_takes_) / (is_first ? 1 : kShareOfMean);
  quiet_from_ = end + kTimesBetween * commit_takes_;
  Finish(/*committed=*/true);
}

bool Transactions::AbortForReopening() {
  if (!open_) return true;
  const Outcome aborted = sink_.Abort();
  Finish(/*committed=*/false);
  if (aborted == Outcome::kStopped) LoseProducer();
  return aborted != Outcome::kStopped;
}

absl::Status Transactions::CommitStart(std::vector<Task*> fresh) {
  LETHE_ASSERT(!open_);
  while (!state_.stop.requested() && !sink_.NeedsNewMember()) {
    if (fresh.empty()) return absl::OkStatus();
    if (absl::Status begun = sink_.Begin(); !begun.ok()) return begun;
    const Outcome outcome = sink_.Commit(Positions(fresh));
    if (outcome == Outcome::kCommitted) {
      for (Task* task : fresh) task->StartIsCommitted();
      return absl::OkStatus();
    }
    if (outcome == Outcome::kStopped) {
      LoseProducer();
      return state_.fatal.ok() ? absl::CancelledError("stopped before the starting offsets were committed")
                               : state_.fatal;
    }
    if (sink_.report().has_group_moved_on || source_.IsLost()) break;
    if (const auto like_it = refused_starts_.Next(state_.clock.Steady())) {
      spdlog::warn("lane {}: committing where partitions start: {}{}", state_.lane, sink_.report().last_error,
                   *like_it);
    }
    if (all_flows_.are_several()) FailDeleted(fresh);
    if (state_.Wait(kAskAgainAfter)) break;
  }
  for (const Task* task : fresh) tasks_.erase(task->id());
  return absl::AbortedError("the group has moved on before the starting offsets were committed");
}

void Transactions::FailDeleted(std::vector<Task*>& fresh) {
  std::vector<std::string> topics;
  for (const Task* task : fresh) {
    if (topics.empty() || topics.back() != task->flow()->options.input) {
      topics.push_back(task->flow()->options.input);
    }
  }
  const auto counts = cluster_.CountPartitions(topics);
  std::erase_if(fresh, [&](Task* task) {
    const absl::Status& there = counts.at(task->flow()->options.input).status();
    if (!absl::IsNotFound(there)) return false;
    task->Fail(absl::StrCat(task->flow()->options.input, " is not read: ", there.message()));
    return true;
  });
}

void Transactions::RollBack(Outcome outcome) {
  const Failure failure = sink_.report().failure;
  const std::map<int32_t, std::string> to_blame = sink_.report().to_blame;
  std::string why = sink_.report().last_error;
  if (why.empty()) why = "the group has moved on, or a partition stops";
  if (outcome != Outcome::kStopped) {
    // An aborted transaction stays aborted, even if another instance has committed the same offset meanwhile.
    const Outcome resolved = Resolve(outcome);
    if (outcome == Outcome::kUnknown || resolved == Outcome::kStopped) outcome = resolved;
  }
  if (outcome == Outcome::kCommitted) {
    spdlog::info("lane {}: the transaction was committed after all ({})", state_.lane, why);
    return Finish(/*committed=*/true);
  }
  if (outcome == Outcome::kStopped) LoseProducer();
  if (const auto like_it = aborted_.Next(state_.clock.Steady())) {
    spdlog::warn("lane {}: transaction of {} records aborted, to be judged again: {}{}", state_.lane,
                 carried_out_, why, *like_it);
  }
  absl::Duration pause;
  if (failure == Failure::kRefused) {
    NarrowDown(why);
  } else {
    aborted_because_ = why;
    pause = backoff_.Failed(Size());
  }
  const std::vector<Task*> rolled_back = InTransaction(tasks_);
  if (outcome == Outcome::kStopped) {
    for (Task* task : rolled_back) task->LeaveNamed();
  }
  Finish(/*committed=*/false);
  // Only these: retention may have removed the offset of an idle partition.
  const bool has_others = std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& each) {
    return each.second->phase() != Phase::kFailed && !to_blame.contains(each.first.flow);
  });
  for (Task* task : rolled_back) {
    held_.Forget(*task);
    if (task->schema_wait().is_on()) held_.Release(*task);  // the records before that are read again
    if (task->phase() == Phase::kFailed) continue;
    source_.Seek(*task);
    const auto blamed = to_blame.find(task->id().flow);
    if (blamed == to_blame.end() || !has_others) continue;
    held_.AwaitOutput(*task, blamed->second);
    pause = absl::ZeroDuration();  // the others go on at once
  }
  if (pause > absl::ZeroDuration()) state_.Wait(pause);
}

Outcome Transactions::Resolve(Outcome known) {
  const std::vector<Task*> partitions = InTransaction(tasks_);
  std::map<int32_t, std::vector<CommittedOffset>> committed;  // by flow
  for (const Task* task : partitions) {
    // The last partition of a flow comes last.
    committed[task->id().flow].resize(static_cast<size_t>(task->id().partition) + 1);
  }
  for (auto& of_flow : committed) {
    const std::string& input = all_flows_.at(of_flow.first).options.input;
    const absl::Status asked = state_.Await([&] {
      auto answer = cluster_.Committed(input, static_cast<int32_t>(of_flow.second.size()));
      if (answer.ok()) of_flow.second = std::move(*answer);
      return answer.status();
    });
    // Of a topic that may not be read any more the group's generation is what tells, at its next commit.
    const bool is_needless = known == Outcome::kAborted && all_flows_.are_several();
    if (!asked.ok() && !(is_needless && absl::IsPermissionDenied(asked))) return Outcome::kStopped;
    if (!asked.ok()) of_flow.second.clear();
  }
  Outcome outcome = Outcome::kAborted;
  std::vector<std::pair<Task*, int64_t>> moved_on;  // and where the group is
  for (Task* task : partitions) {
    if (committed[task->id().flow].empty()) continue;
    const CommittedOffset& in_group = committed[task->id().flow][static_cast<size_t>(task->id().partition)];
    const int64_t offset = in_group.offset;
    // Another instance may have come as far, and have dropped other records on its way: its metadata differs.
    const auto tried = tried_.find(task->id());
    const bool is_own = offset == task->next() && tried != tried_.end() && tried->second == in_group.metadata;
    if (is_own && task->next() != task->in_group()) outcome = Outcome::kCommitted;
    if (!is_own && offset != task->in_group()) moved_on.emplace_back(task, offset);
  }
  for (const auto& [task, offset] : moved_on) {
    // The transaction was one, so what it has judged of this partition is committed, too.
    if (known == Outcome::kUnknown && outcome == Outcome::kCommitted) totals_ += task->open_counts();
    task->LeaveNamed();
    task->RolledBack();
    held_.Release(*task);
    task->Fail(absl::StrCat(
        task->Name(), ": the group is at offset ", offset, ", not at ", task->in_group(), ": ",
        offset < 0 ? "the input, or the group's offsets, were deleted" : "another instance has it now",
        "; waiting for the group"));
    spdlog::warn("{}", task->problem());
  }
  return outcome;
}

void Transactions::Finish(bool committed) {
  const std::vector<Task*> partitions = InTransaction(tasks_);
  std::map<int32_t, std::vector<Task*>> by_flow;
  for (Task* task : partitions) by_flow[task->id().flow].push_back(task);
  for (const auto& [flow, tasks] : by_flow) {
    if (!committed) continue;
    LaneFlow& lane_flow = flows_.Of(*tasks[0]);
    lane_flow.warnings.OfMissingIds(tasks);
    lane_flow.warnings.OfTimes();
    // The retention may have been raised since lethe asked for it.
    if (lane_flow.warnings.OfExpired(tasks)) AskRules(lane_flow);
  }
  for (Task* task : partitions) {
    if (!committed) {
      task->RolledBack();
      continue;
    }
    totals_ += task->open_counts();
    task->Committed();
    flows_.Of(*task).warnings.OfUnlisted(*task);
    if (task->phase() == Phase::kFailed) {
      spdlog::error("{}", task->problem());
      source_.SetPaused(*task, true);
    }
  }
  ++(committed ? counts_.committed : counts_.aborted);
  if (committed) {
    figures_.Committed(state_.clock.Wall());
    for (const auto& [flow, tasks] : by_flow) flows_.Of(*tasks[0]).warnings.OfKeys(tasks_);
    backoff_.Committed(Size());
  } else {
    figures_.RolledBack();
  }
  if (all_flows_.size() > 1) {
    for (const auto& [number, size] : sink_.SizeByFlow()) {
      if (LaneFlow* flow = flows_.Find(number); flow != nullptr && flow->room) flow->room->Done(size);
    }
  }
  for (auto& [number, flow] : flows_) {
    flow.written = 0;
    flow.writer.EndTransaction(committed);
  }
  for (const TopicPartition& id : std::exchange(awaiting_room_, {})) {
    Task* const task = Find(tasks_, id);
    if (task == nullptr || !task->SetAwaitsRoom(false)) continue;
    if (task->phase() == Phase::kActive) source_.TakeBack(*task);
  }
  open_ = false;
  deadline_ = last_deadline_ = look_at_ = absl::InfiniteFuture();
  carried_out_ = 0;
  if (committed) snapshots_.Take(tasks_);
}

void Transactions::LoseProducer() {
  if (state_.ends()) return;
  state_.fatal = absl::UnavailableError(
      absl::StrCat("lane ", state_.lane, ": the producer cannot go on: ", sink_.report().last_error));
}

// Without an answer the former rules stay.
void Transactions::AskRules(LaneFlow& flow) {
  if (const auto rules = sink_.AskRules(flow.flow.number); rules.ok()) flow.refusals.SetRules(*rules);
}

bool Transactions::Blame(const std::vector<Refusal>& refusals, LaneFlow& flow) {
  std::vector<RefusedRecord> records;
  for (const Refusal& refusal : refusals) records.push_back(refusal.record);
  if (flow.refusals.NeedsRules(records, state_.clock.Steady())) {
    AskRules(flow);
  }
  bool is_known = false;
  for (const size_t i : flow.refusals.ToBlame(records, sink_.batch_bytes(), sink_.report().refusals_are_named,
                                              state_.clock.Wall(), state_.clock.Steady())) {
    const RecordPlace& place = refusals[i].place;
    Task* task = Find(tasks_, place.partition);
    if (task == nullptr) continue;
    if (place.copied) {
      task->NoteUncopied(place.offset);
    } else {
      task->NoteUndeliverable(place.offset, {refusals[i].why, place.diverted});
    }
    is_known = true;
  }
  return is_known;
}

void Transactions::NarrowDown(const std::string& why) {
  std::map<int32_t, std::vector<Refusal>> by_flow;
  for (const Refusal& refusal : sink_.report().refusals) {
    if (refusal.place.offset >= 0) by_flow[refusal.place.partition.flow].push_back(refusal);
  }
  bool is_known = false;
  for (const auto& [number, refusals] : by_flow) {
    const Task* task = Find(tasks_, refusals[0].place.partition);
    if (task != nullptr) is_known = Blame(refusals, flows_.Of(*task)) || is_known;
  }
  // Also where it is known: others may follow, and each repeats all that is judged with it.
  if (carried_out_ > 1) return backoff_.Refused(Size());
  if (is_known) return;
  for (Task* task : InTransaction(tasks_)) task->NoteRefused(why);
}

TransactionSize Transactions::Size() const {
  TransactionSize size = sink_.size();
  size.records = carried_out_;
  return size;
}

std::vector<Position> Transactions::Positions(const std::vector<Task*>& tasks) const {
  std::vector<Position> positions;
  for (const Task* task : tasks) {
    // A partition that starts may have to read a record before that, to see that the log is the same.
    const int64_t next = std::max(task->next(), task->committed());
    const CommitMetadata metadata = task->Metadata(state_.clock.Wall());
    // The next owner reads from there on, and must find what this commit says.
    LETHE_ASSERT(metadata.restart.offset <= next && metadata.last.offset < next);
    positions.push_back({task->id(), next, metadata.ToString()});
    LETHE_DEBUG_ASSERT(CommitMetadata::Parse(positions.back().metadata).ok());
  }
  return positions;
}

std::string Transactions::WhyNothingIsCommitted() const {
  if (backoff_.failures() < kManyFailures || !IsUnfinished()) return "";
  return absl::StrCat(backoff_.failures(), " transactions in a row were aborted: ", aborted_because_);
}

bool Transactions::IsUnfinished() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const auto& each) { return each.second->was_aborted(); });
}

void Transactions::AddTo(LaneReport& report) const {
  report.transactions = counts_;
  report.totals = totals_;
  report.histograms = figures_.histograms();
}

}  // namespace lethe
