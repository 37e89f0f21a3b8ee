#include "src/pipeline/publish/publisher.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/publish/counter_watch.h"
#include "src/pipeline/report/remarks.h"
#include "src/pipeline/restore/restore_progress.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr absl::Duration kPublishEvery = absl::Milliseconds(250);
// So that ten thousand idle partitions cost no more than five hundred.
constexpr absl::Duration kPublishEveryOfEach = absl::Microseconds(500);
// The most time that the figures of filters may take of the worker at once.
constexpr absl::Duration kRenewFor = absl::Milliseconds(5);
// Of quiet partitions that many reports are renewed each time, or as many that each is within this time.
constexpr size_t kLeastQuietTurns = 256;
constexpr absl::Duration kRenewQuietWithin = absl::Seconds(2);
// A transaction stays open for one interval, and its commit may take some.
constexpr int kIntervals = 3;

std::string InSeconds(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

}  // namespace

Publisher::Publisher(const Workplace& place, LaneFlows& flows, const Membership& membership,
                     const Transactions& transactions, const SourcePaces& pace, const InputWatch& input_watch)
    : options_(place.options()),
      all_flows_(place.shared.flows),
      ends_(place.shared.ends),
      state_(place.state),
      source_(place.source),
      tasks_(place.tasks),
      membership_(membership),
      transactions_(transactions),
      pace_(pace),
      input_watch_(input_watch),
      sink_(place.sink),
      flows_(flows),
      published_at_(state_.clock.Steady()) {
  LaneReport report;
  report.lane = state_.lane;
  report_ = std::make_shared<const LaneReport>(std::move(report));
}

bool Publisher::IsDue() const {
  return state_.clock.Steady() >= next_publish_ ||
         (options_.process.exit_at_end && IsAtEnd() != published_at_end_);
}

absl::Duration Publisher::PublishEvery() const {
  return std::max(kPublishEvery, static_cast<int64_t>(tasks_.size()) * kPublishEveryOfEach);
}

void Publisher::Publish() {
  next_publish_ = state_.clock.Steady() + PublishEvery();
  SayRestores();
  SayWhenCaughtUp();
  for (int32_t flow = 0; flow < all_flows_.size(); ++flow) {
    CounterWatch* const watch = all_flows_.at(flow).counter_watch;
    if (watch != nullptr && watch->Wants(state_.lane)) watch->Answer(state_.lane, tasks_);
  }
  LaneReport report;
  report.lane = state_.lane;
  report.member = {membership_.joined(), membership_.unassigned_for(), source_.session_timeout()};
  report.waiting = transactions_.WhyNothingIsCommitted();
  if (const std::string why = WhyItStands(); report.waiting.empty()) report.waiting = why;
  report.at_end = published_at_end_ = IsAtEnd();
  for (const auto& [number, flow] : flows_) {
    const Warnings& warnings = flow.warnings;
    const std::string& input = flow.flow.options.input;
    if (!report.without_id && warnings.without_id()) report.without_id = {input, *warnings.without_id()};
    if (!report.wrong_times && warnings.wrong_times()) report.wrong_times = {input, *warnings.wrong_times()};
  }
  LookAtThrottling(report);
  transactions_.AddTo(report);
  report.transactions.fences = sink_.fences();
  report.transactions.renewals = sink_.renewals();
  report.passed_over = pace_.PassedOver();
  report.gone = input_watch_.Unreadable();
  RenewStatus(tasks_, kRenewFor, state_.clock, &next_renewed_);
  LookForOpenTransactions();
  RenewReports();
  SayOpenTransactions();
  std::vector<std::shared_ptr<const PartitionReport>> partitions;
  partitions.reserve(reported_.size());
  for (const auto& [id, reported] : reported_) partitions.push_back(reported.report);
  auto published = std::make_shared<const LaneReport>(std::move(report));
  const MutexLock lock(mutex_);
  report_.swap(published);
  partitions_.swap(partitions);
  published_at_ = state_.clock.Steady();
}

void Publisher::RenewReports() {
  const int64_t rounds = std::max<int64_t>(1, kRenewQuietWithin / PublishEvery());
  const size_t turns = std::max(kLeastQuietTurns, tasks_.size() / static_cast<size_t>(rounds));
  size_t quiet = 0;
  // Both maps are in the same order, and mostly of the same partitions.
  const auto renew = [&](Tasks::const_iterator each, Tasks::const_iterator end) {
    if (each == end) return;
    auto at = reported_.lower_bound(each->first);
    for (; each != end; ++each, ++at) {
      while (at != reported_.end() && at->first < each->first) at = reported_.erase(at);
      if (at == reported_.end() || each->first < at->first) at = reported_.try_emplace(at, each->first);
      Task& task = *each->second;
      Reported& reported = at->second;
      const Stamp stamp = StampOf(task);
      if (reported.report != nullptr && reported.stamp == stamp && IsQuiet(task, *reported.report)) {
        if (quiet >= turns) continue;
        ++quiet;
        next_quiet_ = {each->first.flow, each->first.partition + 1};
      }
      reported = {stamp, std::make_shared<const PartitionReport>(ReportOf(task))};
      if (task.filter() != nullptr) flows_.Of(task).warnings.OfFilter(task, *reported.report);
    }
  };
  // From the partition whose turn it is to the last, then from the first.
  const auto first = tasks_.lower_bound(next_quiet_);
  renew(first, tasks_.end());
  renew(tasks_.begin(), first);
  if (reported_.size() == tasks_.size()) return;
  std::erase_if(reported_, [&](const auto& each) { return !tasks_.contains(each.first); });
}

Publisher::Stamp Publisher::StampOf(const Task& task) {
  return {task.next(),      task.committed(), task.end_of_log(),
          task.status_at(), task.phase(),     task.in_transaction()};
}

bool Publisher::IsQuiet(const Task& task, const PartitionReport& report) {
  return task.phase() == Phase::kActive && report.phase == Phase::kActive && !task.in_transaction() &&
         !task.schema_wait().is_on() && task.stop_before_next().empty() && report.log.lag() == 0 &&
         report.open_transaction_since == absl::InfiniteFuture();
}

void Publisher::LookAtThrottling(LaneReport& report) {
  const absl::Time now = state_.clock.Steady();
  const auto look = [&](ThrottleWatch& watch, const char* client, absl::Duration throttled) {
    watch.Look(throttled, now);
    if (const auto share = watch.Take(now)) {
      spdlog::warn("lane {}: {}", state_.lane, ThrottleRemark(options_.process.brokers, client, *share));
    }
    return watch.share();
  };
  report.consumer_throttled = look(consumer_throttle_, "consumer", source_.throttled());
  report.producer_throttled = look(producer_throttle_, "producer", sink_.throttled());
}

PartitionReport Publisher::ReportOf(const Task& task) const {
  PartitionReport partition;
  partition.partition = task.id().partition;
  partition.flow = task.id().flow;
  partition.topic = task.flow()->options.input;
  partition.horizon = task.flow()->options.stage.horizon;
  partition.phase = task.phase();
  partition.problem = task.problem();
  const bool has_more = task.schema_wait().is_on() || task.end_of_log() < task.next();
  if (has_more && task.schema_wait().IsLong(state_.clock.Steady())) {
    partition.phase = Phase::kHeld;
    partition.problem = WhyItWaits(task);
  }
  partition.counts = task.counts();
  partition.log.committed = task.committed();
  partition.log.position = std::max(task.next(), task.end_of_log());
  partition.log.high_watermark = source_.HighWatermark(task.id());
  // The client does not know it for a partition that is not read.
  if (task.phase() == Phase::kFailed) {
    partition.log.high_watermark =
        std::max({partition.log.high_watermark, task.log_end(), ends_.Of(task.id())});
  }
  partition.restore.from = task.restore().from();
  partition.restore.to = task.restore().to();
  const bool is_restoring = task.phase() == Phase::kRestoring || task.phase() == Phase::kChecking;
  partition.restore.left = is_restoring ? task.restore().left() : 0;
  partition.restore.time_left =
      is_restoring ? task.restore().time_left().value_or(absl::InfiniteDuration()) : absl::ZeroDuration();
  if (task.snapshot()) partition.restore.snapshot_offset = task.snapshot()->offset;
  partition.unread_deleted = task.unread_deleted();
  for (const CounterSums& sums : task.sums()) {
    partition.counted_keys += static_cast<int64_t>(sums.totals().size());
  }
  partition.short_history = task.short_history();
  const absl::Duration held_for = open_transactions_.HeldFor(task.id(), state_.clock.Steady());
  if (held_for > StallPatience()) partition.open_transaction_since = state_.clock.Wall() - held_for;
  partition.shared_id = task.SharedId(state_.clock.Steady());
  partition.expiring = task.expiry().most();
  partition.output = task.flow()->options.output;
  partition.keys_moved = task.keys_moved();
  partition.duplicates_jumped = task.duplicates().jump();
  if (partition.duplicates_jumped) {
    absl::Time& since = partition.duplicates_jumped->since;
    since = state_.clock.Wall() - (state_.clock.Steady() - since);
  }
  partition.restore.restart = task.restart();
  partition.filter = task.status();
  return partition;
}

std::string Publisher::WhyItWaits(const Task& task) const {
  const SchemaKey& key = task.schema_wait().need().key;
  if (!task.schema_wait().is_on()) {
    return absl::StrCat(task.Name(), " waits for one schema after the other, the last one ", SchemaName(key),
                        "; it is at offset ", task.next(),
                        ". If the registry lacks them (the log says so), find who writes such records");
  }
  SchemaLookup lookup;
  SchemaSource* const schemas = task.flow()->options.record.schemas;
  if (schemas != nullptr) lookup = schemas->Peek(task.schema_wait().need());
  const std::string held = absl::StrCat(task.Name(), " is held at offset ", task.next(), ": ");
  if (lookup.why.empty()) {
    return absl::StrCat(held, "lethe requests or compiles ", SchemaName(key),
                        "; it resumes when that is done");
  }
  return absl::StrCat(held, lookup.why, "; it resumes when the schema registry answers");
}

LaneReport Publisher::Report() const {
  std::shared_ptr<const LaneReport> published;
  std::vector<std::shared_ptr<const PartitionReport>> partitions;
  absl::Duration age;
  {
    // The worker waits for this lock, so the copy, of a thousand partitions perhaps, is made outside.
    const MutexLock lock(mutex_);
    published = report_;
    partitions = partitions_;
    age = state_.clock.Steady() - published_at_;
  }
  LaneReport report = *published;
  report.partitions.reserve(partitions.size());
  for (const auto& each : partitions) report.partitions.push_back(*each);
  const std::string waiting = state_.waiting();
  if (!waiting.empty()) {
    report.waiting = waiting;
  } else if (state_.is_running && report.waiting.empty() && age > StallPatience()) {
    // It publishes in each round, so it has been in one round since.
    report.waiting = absl::StrCat("no progress for ", InSeconds(age),
                                  ": one batch or one call to the brokers has taken so long");
  }
  report.consumer = source_.client_report();
  report.producer = sink_.client_report();
  return report;
}

std::vector<TopicPartition> Publisher::ReportedPartitions() const {
  std::vector<TopicPartition> reported;
  const MutexLock lock(mutex_);
  reported.reserve(partitions_.size());
  for (const auto& each : partitions_) reported.push_back({each->flow, each->partition});
  return reported;
}

absl::Duration Publisher::StallPatience() const {
  return options_.process.stall_patience + kIntervals * options_.process.commit_interval;
}

std::string Publisher::WhyItStands() {
  const absl::Time now = state_.clock.Steady();
  std::vector<ProgressWatch::Sight> sights;
  for (const auto& [id, task] : tasks_) {
    // Its report says what it waits for, or it waits for others.
    if (task->phase() != Phase::kActive || task->pace().waits() || task->schema_wait().is_on()) continue;
    if (input_watch_.IsDenied(id.flow)) continue;
    const int64_t end = std::max(ends_.Of(id), task->log_end());
    const bool behind = task->next() > task->committed() || std::max(task->next(), task->end_of_log()) < end;
    sights.push_back({id, task->committed(), behind});
  }
  progress_.Look(sights, now);
  const std::vector<TopicPartition> stalled = progress_.Stalled(StallPatience(), now);
  std::string why;
  if (!stalled.empty()) {
    const Task& first = *Find(tasks_, stalled.front());
    const size_t more = stalled.size() - 1;
    why =
        absl::StrCat("no progress for ", InSeconds(progress_.StandsFor(first.id(), now)), ": ", first.Name(),
                     " stands at offset ", first.committed(), " although there are records to process",
                     more == 0 ? "" : absl::StrCat(" (and ", more, " more partitions)"));
  }
  if (stalled.empty() != stalled_.empty()) {
    if (stalled.empty() && !sights.empty()) {
      spdlog::info("lane {}: progress again", state_.lane);
    } else if (!stalled.empty()) {
      spdlog::warn("lane {}: {}", state_.lane, why);
    }
  }
  stalled_ = why;
  return why;
}

void Publisher::LookForOpenTransactions() {
  std::vector<OpenTransactionWatch::Sight> sights;
  for (const auto& [id, task] : tasks_) {
    const int64_t position = task->next();
    if (task->phase() != Phase::kActive || task->schema_wait().is_on() || task->end_of_log() != position)
      continue;
    const auto reported = reported_.find(id);
    // The end that the client met is the last stable offset; that of the log comes with the same answers, and
    // was seen at the last renewal.
    if (reported == reported_.end() || reported->second.report->log.high_watermark <= position) continue;
    // The end that was asked for shows that the answers have not stopped.
    sights.push_back({id, position, source_.HighWatermark(id) > position && ends_.Of(id) <= position});
  }
  open_transactions_.Look(sights, state_.clock.Steady());
}

void Publisher::SayOpenTransactions() {
  std::vector<PartitionReport> open;
  for (const auto& [id, reported] : reported_) {
    if (reported.report->open_transaction_since != absl::InfiniteFuture()) open.push_back(*reported.report);
  }
  const std::optional<std::string> held = OpenTransactionRemark(options_.process.brokers, open);
  if (held && !said_open_transaction_) spdlog::warn("lane {}: {}", state_.lane, *held);
  if (!held && said_open_transaction_) {
    spdlog::info("lane {}: no open transaction blocks the input any longer", state_.lane);
  }
  said_open_transaction_ = held.has_value();
}

bool Publisher::IsAtEnd() const {
  if (!membership_.joined() || transactions_.is_open()) return false;
  for (const auto& [id, task] : tasks_) {
    if (task->schema_wait().is_on()) return false;
    // The daemon says so when it ends.
    if (task->phase() == Phase::kFailed || task->phase() == Phase::kHeld) continue;
    if (task->phase() != Phase::kActive) return false;
    const std::vector<int64_t>& ends = task->flow()->topics.end_offsets;
    const auto index = static_cast<size_t>(id.partition);
    if (index >= ends.size()) continue;
    // The last offsets may be control records, visible only as the end of the partition.
    if (std::max(task->committed(), task->end_of_log()) < ends[index]) return false;
  }
  return true;
}

void Publisher::SayRestores() {
  const absl::Time now = state_.clock.Steady();
  size_t restoring = 0;
  int64_t left = 0;
  for (const auto& [id, task] : tasks_) {
    if (task->phase() != Phase::kChecking && task->phase() != Phase::kRestoring) continue;
    ++restoring;
    left += task->restore().left();
  }
  if (restoring > 0 && now < say_restores_at_) {
    say_restores_at_ = std::min(say_restores_at_, now + RestoreProgress::kTellEvery);
    return;
  }
  const int64_t ready = state_.ready_partitions - said_ready_;
  const int64_t replayed = state_.replayed_offsets - said_replayed_;
  say_restores_at_ = now + RestoreProgress::kTellEvery;
  if (restoring == 0) {
    said_ready_ = state_.ready_partitions;
    said_replayed_ = state_.replayed_offsets;
    say_restores_at_ = absl::InfiniteFuture();
  }
  if (AreNamed(tasks_) || (replayed == 0 && restoring == 0)) return;
  std::string text =
      absl::StrCat(Several(ready, "partition"), " ready after replaying ", replayed, " offsets");
  if (restoring > 0) absl::StrAppend(&text, "; ", restoring, " are restoring, ", left, " offsets to go");
  spdlog::info("lane {}: {}", state_.lane, text);
}

void Publisher::SayWhenCaughtUp() {
  const bool has_all = !tasks_.empty() && absl::c_all_of(tasks_, [](const auto& each) {
    const Task& task = *each.second;
    return task.phase() == Phase::kActive && std::max(task.committed(), task.end_of_log()) >= task.log_end();
  });
  if (has_all && !caught_up_) {
    const Task& first = *tasks_.begin()->second;
    const bool is_one =
        absl::c_all_of(tasks_, [&](const auto& each) { return each.first.flow == first.id().flow; });
    spdlog::info(
        "lane {}: caught up with {}: all records present in its {} at the assignment are "
        "processed",
        state_.lane, is_one ? first.flow()->options.input : "its topics",
        Several(static_cast<int64_t>(tasks_.size()), "partition"));
  }
  caught_up_ = has_all;
}

}  // namespace lethe
