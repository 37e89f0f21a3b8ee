#include "src/pipeline/output/source_pace.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "src/pipeline/restore/commit_metadata.h"
#include "src/text/format.h"

namespace lethe {
namespace {

// What the brokers told of the end of a partition is believed for this long. (A client's own knowledge of it
// may be older: the process was stopped, or a broker did not answer.)
constexpr absl::Duration kNewsAge = absl::Seconds(3);
// A partition that was at its end this short a time ago has nothing old to read. Without this each record of
// a slow partition would hold all others until it is committed.
constexpr absl::Duration kEndAge = absl::Seconds(1);
constexpr absl::Duration kLookAgainAfter = absl::Seconds(1);
// A timestamp is wrong if half of so many behind it are much lower. So 24 wrong ones in a row hold nothing,
// and late records release nothing.
constexpr int kBehind = 50;
// Standing still is counted in steps of this at most: the process itself may have been stopped.
constexpr absl::Duration kLongestStep = absl::Seconds(1);
// A partition that is read, but whose time stands still, gets so many times the patience.
constexpr int kPatienceWithReading = 10;
// Failed or held: it resumes soon, or only after a restart.
constexpr absl::Duration kPatienceWithStopped = absl::Seconds(10);
// A transaction stays open for one commit interval, and its commit may take some.
constexpr int kPaceIntervals = 3;

absl::Time FloorOf(const Task& task) {
  const absl::Time stream_time =
      task.filter() == nullptr ? absl::InfinitePast() : task.filter()->stream_time();
  return std::max(task.pace().floor, stream_time);
}

bool IsWrong(const Pace::Peek& peek) { return peek.lower > 0 && peek.lower * 2 >= peek.seen; }

}  // namespace

SourceState CommittedState(int64_t offset, absl::string_view metadata, int64_t log_end, absl::Time latest) {
  SourceState state;
  state.position = offset;
  state.at_end = offset >= log_end;
  const CommitTimes times = ReadCommitTimes(metadata);
  for (const absl::Time time : {times.committed, times.next_record}) {
    if (time <= latest) state.floor = std::max(state.floor, time);
  }
  return state;
}

template <class T>
bool RoutedSources::Told<T>::is_new(absl::Time now) const {
  return at >= now - kNewsAge;
}

void RoutedSources::Put(const SourceStates& states, absl::Time now) {
  const MutexLock lock(mutex_);
  for (const auto& [partition, state] : states) states_[partition] = {state, now};
}

void RoutedSources::SetCount(int32_t flow, int32_t partitions) {
  const MutexLock lock(mutex_);
  for (int32_t partition = 0; partition < partitions; ++partition) {
    states_.try_emplace({flow, partition}, Told<SourceState>{{}, absl::InfinitePast()});
  }
}

void RoutedSources::CopyTo(SourceStates& all, absl::Time now) const {
  all.clear();
  const MutexLock lock(mutex_);
  for (const auto& [partition, told] : states_) {
    SourceState& state = all.emplace_back(partition, told.value).second;
    state.at_end = state.at_end && told.is_new(now);
  }
}

void RoutedSources::AskSoon() {
  if (!ask_soon_.exchange(true) && asked_soon_ != nullptr) asked_soon_->Wake();
}

void RoutedSources::PutEnds(const std::map<TopicPartition, int64_t>& ends, absl::Time now) {
  const MutexLock lock(mutex_);
  for (const auto& [partition, end] : ends) ends_[partition] = {end, now};
}

std::optional<int64_t> RoutedSources::End(TopicPartition partition, absl::Time now) const {
  const MutexLock lock(mutex_);
  const auto found = ends_.find(partition);
  return found == ends_.end() || !found->second.is_new(now) ? std::nullopt
                                                            : std::optional(found->second.value);
}

SourcePace::SourcePace(const Flow& flow, const Workplace& place)
    : options_(flow.options),
      routing_(*flow.options.half.routing),
      sources_(flow.sources),
      all_flows_(place.shared.flows),
      state_(place.state),
      tasks_(place.tasks),
      source_(place.source) {}

template <class See>
void SourcePace::ForEachTask(const See& see) const {
  for (const int32_t flow : flows_) {
    for (auto next = tasks_.lower_bound({flow, 0}); next != tasks_.end() && next->first.flow == flow;
         ++next) {
      see(*next->second);
    }
  }
}

RecordRun SourcePace::Admit(Task& task, RecordRun run) {
  Pace& pace = task.pace();
  if (pace.waits()) {
    source_.SetAside(task, run);
    return {};
  }
  const absl::Time now = state_.clock.Wall();
  if (pace.peek) {
    source_.SetAside(task, run);
    if (LookAt(*pace.peek, run, now)) Decide(task);
    return {};
  }
  if (!is_new_) Renew(state_.clock.Steady());
  const absl::Time limit = LimitOf(task);
  for (size_t i = 0; i < run.size(); ++i) {
    if (TimeOf(run[i], now) <= limit || run[i].offset == pace.wrong_time_at) continue;
    const absl::Time time = TimeOf(run[i], now);
    Pace::Peek peek = {run[i].offset, time, FloorOf(task), time};
    const bool is_clear = LookAt(peek, run.subspan(i + 1), now);
    if (is_clear && IsWrong(peek)) continue;
    pace.peek = peek;
    source_.SetAside(task, run.subspan(i));
    if (is_clear) Decide(task);
    return run.first(i);
  }
  return run;
}

bool SourcePace::ReachEnd(Task& task, const InputRecord& at) {
  if (!task.pace().peek && !task.pace().waits()) return false;
  source_.SetAside(task, {&at, 1});
  if (task.pace().peek) Decide(task);
  return true;
}

bool SourcePace::MeetUnreadable(Task& task) {
  // The reader meets it again.
  if (task.pace().peek) Decide(task);
  return task.pace().waits() || source_.IsStale(task);
}

bool SourcePace::LookAt(Pace::Peek& peek, RecordRun run, absl::Time now) const {
  for (const InputRecord& input : run) {
    const absl::Time time = TimeOf(input, now);
    if (time == absl::InfinitePast() || time < peek.known_floor) continue;
    ++peek.seen;
    if (time < peek.time - routing_.lead / 2) {
      ++peek.lower;
    } else {
      peek.floor = std::min(peek.floor, time);
    }
    if (peek.lower * 2 >= kBehind || peek.seen >= kBehind) return true;
  }
  return false;
}

void SourcePace::Decide(Task& task) {
  const Pace::Peek peek = *std::exchange(task.pace().peek, std::nullopt);
  if (IsWrong(peek)) {
    task.pace().wrong_time_at = peek.offset;
    return source_.TakeBack(task);
  }
  task.pace().waits_at = peek.time;
  task.pace().floor = peek.floor;
  task.pace().look_again =
      peek.seen >= kBehind ? absl::InfiniteFuture() : state_.clock.Steady() + kLookAgainAfter;
  source_.Wait(task);
}

void SourcePace::Resume(Task& task) {
  task.pace().waits_at = absl::InfinitePast();
  task.pace().look_again = absl::InfiniteFuture();
  if (task.phase() != Phase::kActive) return;
  source_.TakeBack(task);
}

SourcePace::Looked SourcePace::Look() {
  const absl::Time now = state_.clock.Steady();
  Renew(now);
  Looked looked;
  ForEachTask([&](Task& task) {
    if (!task.pace().waits()) {
      looked.is_any_read = looked.is_any_read || (task.phase() == Phase::kActive && !IsAtEnd(task, now));
      return;
    }
    const absl::Time limit = LimitOf(task);
    // Half a lead at least, so that it is worth fetching.
    const bool may_go_on =
        limit == absl::InfiniteFuture() || task.pace().waits_at <= limit - routing_.lead / 2;
    if (may_go_on || now >= task.pace().look_again) {
      Resume(task);
      looked.is_any_read = true;
    } else {
      looked.is_any_waiting = true;
    }
  });
  WatchSlowest(looked.is_any_waiting);
  if (sources_ != nullptr) {
    if (looked.is_any_waiting) sources_->AskSoon();
    told_.clear();
    ForEachTask([&](Task& task) {
      // Only what is committed: what others route then comes later in the topic.
      if (!task.in_transaction()) told_.emplace_back(task.id(), StateOf(task, now));
    });
    sources_->Put(told_, now);
  }
  is_new_ = false;
  return looked;
}

void SourcePace::Renew(absl::Time now) {
  is_new_ = true;
  slowest_ = second_ = {};
  const auto see = [&](TopicPartition partition, const SourceState& state) {
    if (state.at_end) return;
    if (const auto passed = passed_over_.find(partition); passed != passed_over_.end()) {
      if (passed->second == state.floor) return;
      passed_over_.erase(passed);
      spdlog::info("{}: other partitions wait for it again",
                   all_flows_.at(partition.flow).NameOf(partition.partition));
    }
    if (!slowest_.is_known() || state.floor < slowest_.state.floor) {
      second_ = std::exchange(slowest_, {partition, state});
    } else if (!second_.is_known() || state.floor < second_.state.floor) {
      second_ = {partition, state};
    }
  };
  ForEachTask([&](Task& task) { see(task.id(), StateOf(task, now)); });
  if (sources_ == nullptr) return;
  sources_->CopyTo(told_, now);
  for (const auto& [id, state] : told_) {
    // Of a flow whose first partition has just been assigned its tasks are not looked at yet.
    if (!tasks_.contains(id) || !flows_.contains(id.flow)) see(id, state);
  }
}

absl::Time SourcePace::LimitOf(const Task& task) const {
  return (slowest_.partition == task.id() ? second_ : slowest_).state.floor + routing_.lead;
}

SourceState SourcePace::StateOf(Task& task, absl::Time steady_now) const {
  SourceState state;
  state.position = task.next();
  state.at_end = IsAtEnd(task, steady_now);
  state.floor = FloorOf(task);
  return state;
}

bool SourcePace::IsAtEnd(Task& task, absl::Time steady_now) const {
  if (task.phase() == Phase::kFailed || task.phase() == Phase::kHeld || task.schema_wait().is_on()) {
    return false;
  }
  int64_t end = std::max(source_.HighWatermark(task.id()), task.log_end());
  if (sources_ != nullptr) {
    end = std::max(end, sources_->End(task.id(), steady_now).value_or(std::numeric_limits<int64_t>::max()));
  }
  if (task.phase() == Phase::kActive && std::max(task.next(), task.end_of_log()) >= end) {
    task.pace().at_end_until = steady_now + kEndAge;
  }
  return steady_now < task.pace().at_end_until;
}

absl::Time SourcePace::TimeOf(const InputRecord& input, absl::Time now) const {
  const absl::Time time = input.time();
  return time > now + options_.max_future ? absl::InfinitePast() : std::min(time, now);
}

void SourcePace::WatchSlowest(bool is_waited_for) {
  const absl::Time now = state_.clock.Steady();
  const absl::Duration step = std::min(now - std::exchange(watched_at_, now), kLongestStep);
  const bool is_same =
      watched_.partition == slowest_.partition && watched_.state.floor == slowest_.state.floor;
  const bool is_read = is_same && watched_.state.position != slowest_.state.position;
  watched_ = slowest_;
  // One that waits looks again once in a while, and waits again.
  if (is_waited_for) waited_for_at_ = now;
  if (now > waited_for_at_ + 3 * kLookAgainAfter || !is_same || !slowest_.is_known()) {
    stands_for_ = absl::ZeroDuration();
    return;
  }
  if (sources_ != nullptr && !sources_->answered()) return;
  stands_for_ += is_read ? step / kPatienceWithReading : step;
  const Task* const own = Find(tasks_, slowest_.partition);
  const bool is_stopped = own != nullptr && (own->phase() == Phase::kFailed || own->phase() == Phase::kHeld ||
                                             own->schema_wait().is_on());
  const absl::Duration patience =
      is_stopped ? std::min(routing_.source_patience, kPatienceWithStopped) : routing_.source_patience;
  // Of another lane only what is committed is seen.
  if (stands_for_ < patience + kPaceIntervals * options_.process.commit_interval) return;
  stands_for_ = absl::ZeroDuration();
  passed_over_[slowest_.partition] = slowest_.state.floor;
  spdlog::warn(
      "{}: it has records to read, and has stood still at offset {} for {}: the other partitions do not "
      "wait for it any longer. Copies of records that it still has pass, if they are more than the horizon "
      "behind the others then",
      all_flows_.at(slowest_.partition.flow).NameOf(slowest_.partition.partition), slowest_.state.position,
      DurationText(patience));
}

std::vector<TopicPartition> SourcePace::PassedOver() const {
  std::vector<TopicPartition> partitions;
  for (const auto& [partition, floor] : passed_over_) partitions.push_back(partition);
  return partitions;
}

SourcePace* SourcePaces::Of(const Task& task) {
  const Flow& flow = *task.flow();
  const std::optional<Routing>& routing = flow.options.half.routing;
  if (!routing || routing->lead == absl::InfiniteDuration()) return nullptr;
  const auto [found, is_new] = by_flow_.try_emplace(flow.number);
  if (is_new) {
    auto same = std::find_if(all_.begin(), all_.end(), [&](const auto& each) {
      return flow.sources != nullptr && each.first == flow.sources;
    });
    if (same == all_.end()) {
      same = all_.insert(all_.end(), {flow.sources, std::make_shared<SourcePace>(flow, place_)});
    }
    found->second = same->second;
    found->second->AddFlow(flow.number);
  }
  return found->second.get();
}

RecordRun SourcePaces::Admit(Task& task, RecordRun run) {
  SourcePace* const pace = Of(task);
  return pace == nullptr ? run : pace->Admit(task, run);
}

bool SourcePaces::ReachEnd(Task& task, const InputRecord& at) {
  SourcePace* const pace = Of(task);
  return pace != nullptr && pace->ReachEnd(task, at);
}

bool SourcePaces::MeetUnreadable(Task& task) {
  SourcePace* const pace = Of(task);
  return pace != nullptr && pace->MeetUnreadable(task);
}

void SourcePaces::Look() {
  if (!place_.options().half.routing) return;
  // Each flow once.
  for (auto next = place_.tasks.begin(); next != place_.tasks.end();
       next = place_.tasks.upper_bound({next->first.flow, INT32_MAX})) {
    Of(*next->second);
  }
  bool is_any_waiting = false;
  bool is_any_read = false;
  for (const auto& [sources, pace] : all_) {
    const SourcePace::Looked looked = pace->Look();
    is_any_waiting = is_any_waiting || looked.is_any_waiting;
    is_any_read = is_any_read || looked.is_any_read;
  }
  is_blocked_ = is_any_waiting && !is_any_read;
}

std::vector<std::string> SourcePaces::PassedOver() const {
  std::vector<std::string> names;
  for (const auto& [sources, pace] : all_) {
    for (const TopicPartition& each : pace->PassedOver()) {
      names.push_back(place_.shared.flows.at(each.flow).NameOf(each.partition));
    }
  }
  return names;
}

}  // namespace lethe
