#include "tests/simulation/topic_in_play.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "tests/simulation/routed_judge.h"

namespace lethe::simulation {
namespace {

void CreateTotals(const TopicInPlay::Site& site, const TopicNames& names, int32_t partitions) {
  site.broker.CreateTopic(names.totals, partitions, {{"cleanup.policy", "compact"}});
}

// Routers wait at least so long for a partition that stands still.
constexpr absl::Duration kPatienceOfRouters = absl::Seconds(10);

// As a copy, by Schedule::tags.
bool IsTagged(const Record& record) {
  return std::any_of(record.headers.begin(), record.headers.end(), [](const auto& header) {
    return header.first == "lethe.verdict" && header.second == "duplicate";
  });
}

// The broker has the topic before anything is sent to it.
const TopicNames& Create(const TopicInPlay::Site& site, const TopicNames& names) {
  for (const std::string& topic : {names.output, names.deltas}) {
    site.broker.CreateTopic(topic, site.schedule.partitions);
  }
  CreateTotals(site, names, site.schedule.partitions);
  std::vector<std::string> read = names.inputs;
  if (names.judged != names.input) read.push_back(names.judged);
  for (const std::string& topic : read) {
    for (auto& log : site.broker.CreateTopic(topic, site.schedule.partitions).logs) {
      log->on_change = site.on_change;
    }
  }
  return names;
}

}  // namespace

TopicInPlay::TopicInPlay(const Site& site, int number)
    : site_(site),
      stops_(number == site.schedule.stopping_topic),
      names_(site.schedule, number),
      input_(site.world, site.broker, site.schedule, Create(site, names_),
             site.schedule.is_backlog && is_routed()) {}

void TopicInPlay::AddPartition() {
  if (site_.broker.Find(names_.input) == nullptr) return;
  // The outputs first, so that nothing has to wait.
  for (const std::string& topic : names_.written()) {
    if (site_.broker.Find(topic) != nullptr) site_.broker.AddPartition(topic);
  }
  for (const std::string& input : names_.inputs) site_.broker.AddPartition(input);
  Group* const group = is_routed() ? site_.routing_group : &site_.group;
  site_.world.After(absl::Milliseconds(200), [group] { group->LookAtPartitions(); });
}

void TopicInPlay::Delete() {
  const auto delete_of = [&](const Group& group, const std::string& topic) {
    int32_t id = 0;
    for (auto& log : site_.broker.topic(topic).logs) {
      const auto metadata = CommitMetadata::Parse(group.CommittedNow(topic, id++).metadata);
      const bool is_own = metadata.ok() && !may_need_reset_;
      if (is_own) log->DeleteBefore(metadata->restart.offset);
    }
  };
  if (site_.broker.Find(names_.input) == nullptr) return;
  delete_of(site_.group, names_.judged);
  if (!is_routed()) return;
  for (const std::string& input : names_.inputs) delete_of(*site_.routing_group, input);
}

void TopicInPlay::TroubleOutput(FaultKind kind, int which, absl::Duration lasts, bool lasts_long) {
  const bool has_counter = site_.schedule.counting != Counting::kNothing && which % 2 > 0;
  const std::string& counted = site_.schedule.counting == Counting::kDeltas ? names_.deltas : names_.totals;
  const std::string topic = has_counter ? counted : names_.output;
  std::function<void()> end;
  if (kind == FaultKind::kRefusedOutput) {
    site_.broker.SetWritable(topic, false);
    end = [this, topic] { site_.broker.SetWritable(topic, true); };
  } else {
    // Totals that are gone are gone.
    if (topic == names_.totals || site_.broker.Find(topic) == nullptr) return;
    site_.broker.Delete(topic);
    end = [this, topic] {
      site_.broker.CreateTopic(
          topic, std::max(site_.schedule.partitions, site_.broker.CountPartitions(names_.input)));
    };
  }
  if (!lasts_long) return site_.world.After(lasts, std::move(end));
  ++troubles_;
  repairs_.push_back(std::move(end));
}

void TopicInPlay::Recreate(absl::Duration after, bool forgets_offsets) {
  const Topic* const input = site_.broker.Find(names_.input);
  if (input == nullptr || stops_ || is_routed() || !forgotten_.empty() || cut_.partition >= 0) return;
  Life& life = former_.emplace_back(Life{input, sendings_begin_});
  for (int32_t p = 0; p < site_.broker.CountPartitions(names_.input); ++p) {
    life.committed.push_back(std::max<int64_t>(site_.group.CommittedNow(names_.input, p).offset, 0));
  }
  sendings_begin_ = input_.sendings();
  may_need_reset_ = true;
  site_.broker.Delete(names_.input);
  if (forgets_offsets) site_.group.Forget(names_.input);
  LookAtPartitionsSoon();
  site_.world.After(after, [this] {
    for (auto& log : site_.broker.CreateTopic(names_.input, site_.schedule.partitions).logs) {
      log->on_change = site_.on_change;
    }
    input_.BeginAgain();
    LookAtPartitionsSoon();
  });
}

// Members learn of it with their next look at the topics of the cluster.
void TopicInPlay::LookAtPartitionsSoon() {
  site_.world.After(site_.world.dice().Between(absl::ZeroDuration(), absl::Seconds(3)),
                    [group = &site_.group] { group->LookAtPartitions(); });
}

bool TopicInPlay::IsSettled() const {
  return site_.group.Committed(names_.input, site_.broker.CountPartitions(names_.input)).ok();
}

void TopicInPlay::CommitForeign(int64_t kind) {
  const CommittedOffset& committed = site_.group.CommittedNow(names_.input, 0);
  auto metadata = CommitMetadata::Parse(committed.metadata);
  if (committed.offset < 0 || stops_ || is_routed() || !former_.empty() || !metadata.ok()) return;
  if (cut_.partition >= 0) return;  // it would be the operator's reset
  if (!IsSettled()) return;         // what is written then would come twice
  std::string text = "lethe/99 of=later";
  switch (kind % 5) {
    case 0:
      // Of a group that has members brokers take it of no other.
      if (!site_.group.Members().empty()) return;
      // It is taken for an operator's: nothing is known of what was before.
      forgotten_[0] = std::max(forgotten_[0], site_.broker.FindLog(names_.input, 0)->end());
      may_need_reset_ = site_.schedule.stops_at_short;
      return site_.group.Set(names_.input, 0, {committed.offset, ""});
    case 1:
      metadata->output = "another";
      text = metadata->ToString();
      break;
    case 2:
      metadata->id_fingerprint = "another";
      text = metadata->ToString();
      break;
    case 3:
      metadata->restart.offset = committed.offset + 1;
      text = metadata->ToString();
      break;
    default:
      break;
  }
  site_.group.Set(names_.input, 0, {committed.offset, std::move(text)});
  may_need_reset_ = true;
}

bool TopicInPlay::StopByCommit(int64_t kind) {
  CommitForeign(kind % 5 == 0 ? kind + 1 : kind);
  return may_need_reset_;
}

void TopicInPlay::DeleteMore(int64_t number) {
  if (site_.broker.Find(names_.input) == nullptr || stops_ || is_routed() || !former_.empty()) return;
  const int32_t count = site_.broker.CountPartitions(names_.input);
  const auto partition = static_cast<int32_t>(number % count);
  Log& log = *site_.broker.FindLog(names_.input, partition);
  const int64_t begin = log.start();
  const int64_t committed = site_.group.CommittedNow(names_.input, partition).offset;
  // What is judged; or all.
  const int64_t end = number % 2 > 0 && committed > begin ? committed : log.stable_end();
  // Of a log that was cut, too, nothing would be there to compare.
  if (committed < 0 || end <= begin || cut_.partition >= 0) return;
  DeleteBefore(partition, site_.world.dice().Between(begin + 1, end));
}

void TopicInPlay::DeleteAll() {
  if (!is_there() || stops_ || is_routed() || !former_.empty() || cut_.partition >= 0) return;
  const int64_t end = site_.broker.FindLog(names_.input, 0)->stable_end();
  const int64_t committed = site_.group.CommittedNow(names_.input, 0).offset;
  if (committed >= 0 && committed < end) DeleteBefore(0, end);
}

void TopicInPlay::DeleteBefore(int32_t partition, int64_t offset) {
  Log& log = *site_.broker.FindLog(names_.input, partition);
  const int64_t committed = site_.group.CommittedNow(names_.input, partition).offset;
  log.DeleteBefore(offset);
  for (int64_t at = committed; at < log.start(); ++at) deleted_unread_.insert({partition, at});
  site_.world.Say(names_.input, "-", partition, " begins at ", log.start(), " now");
  forgotten_[partition] = log.start();
  const bool stops = log.start() > committed && !site_.schedule.skips_deleted;
  may_need_reset_ = may_need_reset_ || stops || site_.schedule.stops_at_short;
}

int64_t TopicInPlay::LastJudged(int32_t partition) const {
  const Log& log = *site_.broker.FindLog(names_.input, partition);
  const auto metadata = CommitMetadata::Parse(site_.group.CommittedNow(names_.input, partition).metadata);
  if (!metadata.ok() || metadata->last.offset < std::max(log.start(), metadata->restart.offset)) return -1;
  return metadata->last.offset;
}

int32_t TopicInPlay::CutLogNow() {
  if (site_.broker.Find(names_.input) == nullptr || stops_ || is_routed() || !former_.empty()) return -1;
  if (cut_.partition >= 0 || may_need_reset_) return -1;
  for (int32_t id = 0; id < site_.broker.CountPartitions(names_.input); ++id) {
    const int64_t last = LastJudged(id);
    Log& log = *site_.broker.FindLog(names_.input, id);
    if (last < 0 || log.end() <= last) continue;
    cut_ = {id, log.end(), input_.sendings(), /*is_growing=*/true};
    log.Truncate(last);
    input_.SendTo(id);  // the record that is compared is there, and is another one
    site_.world.Say(names_.input, "-", id, " was cut at ", last);
    return id;
  }
  return -1;
}

void TopicInPlay::CutLog(int64_t number, absl::Duration after) {
  if (number % 2 == 0 || CutLogNow() < 0) return;
  may_need_reset_ = true;
  site_.world.After(after, [this] { GrowAgain(); });
}

void TopicInPlay::GrowAgain() {
  if (!is_there() || !cut_.is_growing) return;
  const Log& log = *site_.broker.FindLog(names_.input, cut_.partition);
  while (log.end() < cut_.end + 3) input_.SendTo(cut_.partition);
  cut_.is_growing = false;
}

std::string TopicInPlay::WhatWasJudgedOfCutLog() const {
  if (cut_.partition < 0 || !former_.empty()) return "";
  const std::string name = absl::StrCat(names_.input, "-", cut_.partition);
  const int64_t committed = site_.group.CommittedNow(names_.input, cut_.partition).offset;
  if (committed > cut_.end) {
    return absl::StrCat(name, " was cut and has grown again, and the group is at ", committed,
                        ", where the former log ended at ", cut_.end);
  }
  for (const Record& record : site_.broker.Committed(names_.output)) {
    test::FaultyEvent event;
    if (record.partition != cut_.partition || !test::FaultyEvent::Parse(record.value.value_or(""), &event)) {
      continue;
    }
    if (event.send >= cut_.sendings) {
      return absl::StrCat(name, " was cut and has grown again, and this was judged: ", *record.value);
    }
  }
  return "";
}

void TopicInPlay::BeginLife() {
  // Else what is read again would be counted twice, which is refused.
  site_.broker.Delete(names_.totals);
  CreateTotals(site_, names_, site_.broker.CountPartitions(names_.input));
  may_need_reset_ = false;
  former_counts_ = false;
  cut_ = {};
  input_begin_.clear();
  output_begin_.clear();
  for (const auto& log : site_.broker.topic(names_.input).logs) input_begin_.push_back(log->start());
  for (const auto& log : site_.broker.topic(names_.output).logs) output_begin_.push_back(log->end());
}

void TopicInPlay::Reset() {
  site_.world.Say("the group's offsets of topic ", names_.input, " are deleted");
  site_.group.Forget(names_.input);
  forgotten_.clear();
  deleted_unread_.clear();
  BeginLife();
}

bool TopicInPlay::LoseOffsets(Dice& dice) {
  Topic& output = site_.broker.topic(names_.output);
  // Where retention has deleted all that was written, nothing is written twice.
  if (dice.OneIn(3)) {
    for (const auto& log : output.logs) log->DeleteBefore(log->end());
  }
  const bool has_records = std::any_of(output.logs.begin(), output.logs.end(), [this](const auto& log) {
    return HasRecords(*log, log->start(), log->end());
  });
  site_.world.Say(has_records ? "there are records in " : "there is nothing in ", names_.output);
  Reset();
  return has_records;
}

void TopicInPlay::ResetTo(Dice& dice) {
  forgotten_.clear();
  deleted_unread_.clear();
  BeginLife();
  for (int32_t id = 0; id < site_.broker.CountPartitions(names_.input); ++id) {
    const Log& log = *site_.broker.FindLog(names_.input, id);
    const int64_t end = log.stable_end();
    const int64_t to = dice.Choose({log.start(), end, dice.Between(log.start(), end)});
    site_.world.Say("an operator sets the group to ", to, " of ", names_.input, "-", id);
    site_.group.Set(names_.input, id, {to, ""});
    input_begin_[static_cast<size_t>(id)] = to;
  }
}

bool TopicInPlay::SetBack(Dice& dice) {
  if (!output_begin_.empty() || site_.broker.AllOf(names_.output).size() > 1) return false;
  std::map<int32_t, CommittedOffset> to;
  for (int32_t id = 0; id < site_.broker.CountPartitions(names_.input); ++id) {
    const std::vector<CommittedOffset> former = site_.group.Former(names_.input, id);
    if (former.empty()) continue;
    const CommittedOffset& each =
        former[static_cast<size_t>(dice.Below(static_cast<int64_t>(former.size())))];
    const auto metadata = CommitMetadata::Parse(each.metadata);
    // What it needs must be there still.
    const Log& log = *site_.broker.FindLog(names_.input, id);
    if (metadata.ok() && metadata->restart.offset >= log.start() && each.offset <= log.end()) to[id] = each;
  }
  // Totals would be ahead of it.
  if (to.empty() || site_.schedule.counting == Counting::kTotals) return false;
  BeginLife();
  former_counts_ = true;
  for (int32_t id = 0; id < site_.broker.CountPartitions(names_.input); ++id) {
    int64_t& begin = input_begin_[static_cast<size_t>(id)];
    begin = std::max<int64_t>(site_.group.CommittedNow(names_.input, id).offset, 0);
    if (!to.contains(id)) continue;
    begin = to[id].offset;
    site_.world.Say("the group is back at ", begin, " of ", names_.input, "-", id);
    site_.group.Set(names_.input, id, to[id]);
  }
  return true;
}

void TopicInPlay::Repair() {
  for (const auto& repair : repairs_) repair();
  repairs_.clear();
  troubles_ = 0;
}

bool TopicInPlay::HasRecords(const Log& log, int64_t from, int64_t end) const {
  for (int64_t at = std::max(from, log.start()); at < end; ++at) {
    const Entry& entry = log.at(at);
    if (entry.kind == Entry::Kind::kRecord && site_.broker.is_committed(entry.transaction)) return true;
  }
  return false;
}

int64_t TopicInPlay::EndOf(int32_t partition) const {
  const Log& log = *site_.broker.FindLog(names_.input, partition);
  const int64_t end = log.stable_end();
  for (int64_t at = 0; stops_ && at < end; ++at) {
    const Entry& entry = log.at(at);
    if (entry.kind == Entry::Kind::kUnreadable) return at;
    if (entry.kind == Entry::Kind::kRecord && site_.broker.is_committed(entry.transaction) &&
        !absl::StrContains(*entry.record.value, "\"id\":")) {
      return at;
    }
  }
  return end;
}

bool TopicInPlay::has_ids() const {
  for (int32_t p = 0; p < site_.broker.CountPartitions(names_.input); ++p) {
    const auto metadata = CommitMetadata::Parse(site_.group.CommittedNow(names_.input, p).metadata);
    if (metadata.ok() && metadata->topic_id.empty()) return false;
  }
  return true;
}

int64_t TopicInPlay::Committed() const {
  int64_t sum = 0;
  const auto add = [&](const Group& group, const std::string& topic) {
    for (int32_t p = 0; p < site_.broker.CountPartitions(topic); ++p) {
      sum += group.CommittedNow(topic, p).offset;
    }
  };
  add(site_.group, names_.judged);
  for (const std::string& input : names_.inputs) {
    if (is_routed()) add(*site_.routing_group, input);
  }
  return sum;
}

bool TopicInPlay::IsOfPresentTopic(const CommittedOffset& committed) const {
  const auto metadata = CommitMetadata::Parse(committed.metadata);
  if (!metadata.ok()) return committed.offset < 0;
  // Without an id an offset may be that of the former topic.
  return metadata->topic_id == site_.broker.topic(names_.input).id;
}

bool TopicInPlay::IsRead(const Group& group, const std::string& topic) const {
  for (int32_t id = 0; const auto& log : site_.broker.topic(topic).logs) {
    // Offsets are committed before the markers of their records are there.
    if (group.CommittedNow(topic, id++).offset < log->end()) return false;
  }
  return true;
}

bool TopicInPlay::IsDone() const {
  if (site_.broker.Find(names_.input) == nullptr || cut_.is_growing || !input_.is_done() ||
      input_.open_transactions() > 0)
    return false;
  if (is_routed()) {
    return std::all_of(names_.inputs.begin(), names_.inputs.end(),
                       [this](const std::string& input) { return IsRead(*site_.routing_group, input); }) &&
           IsRead(site_.group, names_.judged);
  }
  for (int32_t id = 0; const auto& log : site_.broker.topic(names_.input).logs) {
    const int64_t end = EndOf(id);
    const CommittedOffset& there = site_.group.CommittedNow(names_.input, id++);
    if (!former_.empty() && !IsOfPresentTopic(there)) return false;
    const int64_t committed = there.offset;
    // Before it stops, it commits behind the last record, not beyond what comes behind that.
    if (committed < end && (!stops_ || committed < 0 || HasRecords(*log, committed, end))) return false;
  }
  return true;
}

test::TopicEnds TopicInPlay::EndsOf(const std::string& topic) const {
  test::TopicEnds result;
  for (const auto& log : site_.broker.topic(topic).logs) {
    result.stable.push_back(log->stable_end());
    result.end.push_back(log->end());
  }
  return result;
}

test::Evidence TopicInPlay::EvidenceOf(const Topic& input, int64_t sendings_begin,
                                       int64_t sendings_end) const {
  test::Evidence evidence;
  evidence.horizon = site_.schedule.horizon;
  evidence.renews = site_.schedule.renews;
  evidence.latest_time = LatestTime();
  if (site_.schedule.past_of_hundred > 0) {
    evidence.sent_ms = [this](int64_t sending) { return input_.time_ms(sending); };
  }
  evidence.clocks_differ = site_.world.now() + absl::AbsDuration(site_.schedule.skew);
  if (site_.schedule.oversized_of_hundred > 0) evidence.output_takes_bytes = kOutputTakesBytes;
  evidence.input = site_.broker.CommittedIn(input);
  evidence.output = WithoutAdded(site_.broker.Committed(names_.output));
  // Counters go on where a topic begins again, from whatever was counted before.
  const bool is_counted = former_.empty() && output_begin_.empty();
  evidence.deltas_are_counted = is_counted && site_.schedule.counting == Counting::kDeltas;
  evidence.totals_are_counted = is_counted && site_.schedule.counting == Counting::kTotals;
  if (evidence.deltas_are_counted) evidence.deltas = site_.broker.Committed(names_.deltas);
  if (evidence.totals_are_counted) evidence.totals = site_.broker.Committed(names_.totals);
  if (former_.empty()) return evidence;
  std::erase_if(evidence.output, [&](const Record& each) {
    test::FaultyEvent event;
    return !test::FaultyEvent::Parse(each.value.value_or(""), &event) || event.send < sendings_begin ||
           event.send >= sendings_end;
  });
  return evidence;
}

std::vector<Record> TopicInPlay::WithoutAdded(std::vector<Record> output) const {
  std::erase_if(output, IsTagged);
  if (!site_.schedule.names_input) return output;
  for (Record& record : output) {
    // One that names no input, or another, is CHANGED.
    if (record.headers.empty() || record.headers.back().first != kInputHeader) continue;
    const std::string from = record.headers.back().second.value_or("");
    const bool is_known = std::find(names_.inputs.begin(), names_.inputs.end(), from) != names_.inputs.end();
    is_known ? record.headers.pop_back() : record.headers.push_back({"unknown input", from});
  }
  return output;
}

void TopicInPlay::AddHeld(test::Evidence& evidence) const {
  if (!is_judged_once()) return;
  // A generation goes when its last id is a horizon old, and lasts an eighth of it at most.
  evidence.forgotten_after = evidence.horizon + evidence.horizon / 8;
  evidence.is_rebuilt = is_rebuilt_;
  for (int32_t p = 0; p < site_.broker.CountPartitions(names_.judged); ++p) {
    std::optional<test::HeldIds>& held = evidence.held.emplace_back();
    const auto reported = reported_.find(p);
    if (reported == reported_.end()) continue;
    const PartitionReport& report = reported->second;
    held = {report.filter.filter.ids, report.filter.stream_time,
            report.short_history || report.filter.filter.limit_hits > 0};
  }
}

void TopicInPlay::SeeReports(const std::vector<DaemonReport>& reports) {
  reported_.clear();
  if (stops_ || !is_judged_once() || !IsDone()) return;  // one that stands still may lack what it likes
  std::map<int32_t, std::vector<const PartitionReport*>> claims;
  for (const DaemonReport& report : reports) {
    for (const LaneReport& lane : report.lanes) {
      for (const PartitionReport& partition : lane.partitions) {
        if (partition.topic == names_.judged) claims[partition.partition].push_back(&partition);
      }
    }
  }
  for (const auto& [id, of_partition] : claims) {
    const PartitionReport& report = *of_partition.front();
    if (of_partition.size() > 1 || report.phase != Phase::kActive) continue;
    const CommittedOffset& committed = site_.group.CommittedNow(names_.judged, id);
    const auto metadata = CommitMetadata::Parse(committed.metadata);
    // A filter that was restored may still know earlier points; a commit of another program may name none.
    const int64_t restart = metadata.ok() ? metadata->restart.offset : INT64_MAX;
    // By the commit of another program more was deleted.
    if (site_.broker.FindLog(names_.judged, id)->start() > restart) continue;
    reported_[id] = report;
    const LogReport& log = report.log;
    if (log.committed == committed.offset && log.lag() == 0 && report.problem.empty() &&
        report.restore.restart <= restart && report.filter.pending == 0 && report.unread_deleted == 0) {
      continue;
    }
    misreported_.push_back(absl::StrCat(report.Name(), " is REPORTED WRONGLY: committed ", log.committed,
                                        ", not ", committed.offset, "; a lag of ", log.lag(), "; R ",
                                        report.restore.restart, ", behind ", restart, "; ",
                                        report.filter.pending, " ids pending; ", report.unread_deleted,
                                        " records deleted unread; ", report.problem));
  }
}

CountsInLog TopicInPlay::JudgedCounts(const test::Judgement& judgement) const {
  RecordCounts counts;
  counts.unique = judgement.passed - judgement.without_id;
  counts.missing_id = judgement.without_id;
  counts.duplicate = judgement.dropped;
  counts.undeliverable = judgement.undeliverable;
  counts.passed = judgement.passed;
  const bool tags = site_.schedule.tags;
  counts.tagged = tags ? judgement.dropped : 0;
  counts.dropped = (tags ? 0 : judgement.dropped) + judgement.undeliverable;
  counts.unkeyed = judgement.unkeyed;
  counts.future = judgement.future;
  if (site_.schedule.counting != Counting::kNothing) counts.counters.updates = judgement.passed;
  CountsInLog in_log = {counts, counts};
  in_log.least.duplicate -= judgement.late_undeliverable;
  in_log.most.undeliverable += judgement.late_undeliverable;
  if (!is_routed()) AddUnreadable(site_.group, names_.input, in_log);
  return in_log;
}

CountsInLog TopicInPlay::RoutedCounts() const {
  if (!is_routed()) return {};
  RecordCounts counts;
  for (const std::string& input : names_.inputs) {
    for (const Record& record : site_.broker.CommittedIn(site_.broker.topic(input))) {
      ++counts.unique;
      counts.unkeyed += record.key ? 0 : 1;
      counts.future += record.timestamp_ms > absl::ToUnixMillis(LatestTime()) ? 1 : 0;
    }
  }
  counts.passed = counts.unique;
  CountsInLog in_log = {counts, counts};
  for (const std::string& input : names_.inputs) AddUnreadable(*site_.routing_group, input, in_log);
  return in_log;
}

void TopicInPlay::AddUnreadable(const Group& group, const std::string& topic, CountsInLog& counts) const {
  int64_t least = 0, most = 0;
  for (int32_t id = 0; const auto& log : site_.broker.topic(topic).logs) {
    const int64_t end = group.CommittedNow(topic, id++).offset;
    // Where a batch that cannot be read ends is not known, nor what is no record.
    int64_t beside = 0;
    bool is_in_batch = false;
    for (int64_t at = 0; at < end; ++at) {
      const Entry& entry = log->at(at);
      if (entry.kind == Entry::Kind::kUnreadable) {
        most += 1 + std::exchange(beside, 0);
        ++least;
        is_in_batch = true;
      } else if (entry.kind == Entry::Kind::kRecord && site_.broker.is_committed(entry.transaction)) {
        beside = 0;
        is_in_batch = false;
      } else if (is_in_batch) {
        ++most;
      } else {
        ++beside;
      }
    }
  }
  counts.least.unreadable += least;
  counts.least.dropped += least;
  counts.most.unreadable += most;
  counts.most.dropped += most;
}

absl::Time TopicInPlay::LatestTime() const { return kBegin + absl::Hours(1) + site_.world.now(); }

test::Judgement TopicInPlay::JudgeFormer(const Life& life, int64_t sendings_end) const {
  test::Evidence evidence = EvidenceOf(*life.input, life.sendings_begin, sendings_end);
  std::map<int64_t, const Record*> sent;
  for (const Record& record : evidence.input) {
    test::FaultyEvent event;
    if (test::FaultyEvent::Parse(*record.value, &event)) sent[event.send] = &record;
  }
  // A transaction that was open when it was deleted may have come further.
  evidence.committed = life.committed;
  for (const Record& record : evidence.output) {
    test::FaultyEvent event;
    test::FaultyEvent::Parse(*record.value, &event);
    if (!sent.contains(event.send)) continue;
    const Record& passed = *sent.at(event.send);
    int64_t& committed = evidence.committed[static_cast<size_t>(passed.partition)];
    committed = std::max(committed, passed.offset + 1);
  }
  std::erase_if(evidence.input, [&](const Record& each) {
    return each.offset >= evidence.committed[static_cast<size_t>(each.partition)];
  });
  evidence.input_ends.assign(evidence.committed.size(), INT64_MAX);
  return test::Judge(evidence);
}

void TopicInPlay::JudgeTagged(test::Judgement& judgement) const {
  if (!site_.schedule.tags || !is_judged_once() || stops_) return;
  std::set<int64_t> passed;  // the sendings
  std::set<int64_t> tagged;
  int64_t count = 0;
  for (const Record& each : site_.broker.Committed(names_.output)) {
    test::FaultyEvent event;
    if (!test::FaultyEvent::Parse(each.value.value_or(""), &event)) continue;
    (IsTagged(each) ? tagged : passed).insert(event.send);
    count += IsTagged(each) ? 1 : 0;
  }
  const bool is_once = count == static_cast<int64_t>(tagged.size());
  const bool are_others =
      std::none_of(tagged.begin(), tagged.end(), [&](int64_t sending) { return passed.contains(sending); });
  if (is_once && are_others && count == judgement.dropped) return;
  judgement.problems.push_back(absl::StrCat("copies are TAGGED wrongly: ", count, " records of ",
                                            tagged.size(), " sendings, of ", judgement.dropped,
                                            " that have not passed"));
}

bool TopicInPlay::StoodStill() const {
  for (const std::string& input : names_.inputs) {
    for (int32_t p = 0; p < site_.broker.CountPartitions(input); ++p) {
      absl::Duration since;
      for (const Group::Commit& commit : site_.routing_group->Commits(input, p)) {
        if (commit.at - since > kPatienceOfRouters) return true;
        since = commit.at;
      }
    }
  }
  return false;
}

test::Judgement TopicInPlay::JudgeRouted() const {
  const Broker& broker = site_.broker;
  RoutedEvidence evidence;
  for (const std::string& input : names_.inputs)
    evidence.inputs[input] = broker.CommittedIn(broker.topic(input));
  evidence.routed = broker.CommittedIn(broker.topic(names_.judged));
  // With wrong timestamps nobody knows who is ahead. Where records are sent while others are read, hours of
  // their time go by in the second for which a partition counts as at its end.
  const bool is_bounded = site_.schedule.is_backlog && site_.schedule.wild_of_hundred == 0 &&
                          site_.schedule.past_of_hundred == 0 && !input_.had_bad_clock() && !StoodStill();
  if (is_bounded) evidence.lead = site_.schedule.horizon / 16;
  evidence.time_ms = [this](int64_t sending) { return input_.time_ms(sending); };
  test::Evidence& judged = evidence.judged;
  judged = EvidenceOf(broker.topic(names_.judged), 0, INT64_MAX);
  judged.horizon += judged.horizon / 8;
  AddHeld(judged);
  judged.output_ends = EndsOf(names_.output);
  judged.delta_ends = EndsOf(names_.deltas);
  judged.total_ends = EndsOf(names_.totals);
  for (int32_t p = 0; p < broker.CountPartitions(names_.judged); ++p) {
    judged.committed.push_back(site_.group.CommittedNow(names_.judged, p).offset);
    judged.input_ends.push_back(broker.FindLog(names_.judged, p)->stable_end());
  }
  return simulation::JudgeRouted(std::move(evidence));
}

void TopicInPlay::JudgeSinceForgotten(const test::Evidence& evidence, test::Judgement& judgement) const {
  const auto is_repeated = [](const std::string& problem) { return absl::StrContains(problem, "REPEATED"); };
  std::erase_if(judgement.problems, is_repeated);
  // The oracle's clock would begin with it.
  if (site_.schedule.horizon < absl::Hours(24)) return;
  test::Evidence since = evidence;
  std::set<int64_t> sendings;
  std::erase_if(since.input, [&](const Record& each) {
    const auto found = forgotten_.find(each.partition);
    return found != forgotten_.end() && each.offset < found->second;
  });
  for (const Record& each : since.input) {
    test::FaultyEvent event;
    if (test::FaultyEvent::Parse(*each.value, &event)) sendings.insert(event.send);
  }
  std::erase_if(since.output, [&](const Record& each) {
    test::FaultyEvent event;
    return !test::FaultyEvent::Parse(each.value.value_or(""), &event) || !sendings.contains(event.send);
  });
  for (std::string& problem : test::Judge(since).problems) {
    if (is_repeated(problem)) judgement.problems.push_back(std::move(problem));
  }
}

void TopicInPlay::EraseUnread(test::Evidence& evidence) const {
  std::set<int64_t> passed;  // the sendings: some may have been read before they were deleted
  test::FaultyEvent event;
  for (const Record& each : evidence.output) {
    if (test::FaultyEvent::Parse(each.value.value_or(""), &event)) passed.insert(event.send);
  }
  std::erase_if(evidence.input, [&](const Record& each) {
    return deleted_unread_.contains({each.partition, each.offset}) &&
           test::FaultyEvent::Parse(*each.value, &event) && !passed.contains(event.send);
  });
}

std::set<std::pair<int32_t, std::string>> TopicInPlay::KnownBeforeReset(
    const std::set<int64_t>& sendings) const {
  std::set<std::pair<int32_t, std::string>> known;
  const Topic& present = site_.broker.topic(names_.output);
  const auto is_former = [&](const Topic& topic, const Record& each) {
    const auto partition = static_cast<size_t>(each.partition);
    return &topic != &present || (partition < output_begin_.size() && each.offset < output_begin_[partition]);
  };
  // Those that have passed to an output that was deleted are known, too.
  for (const Topic* topic : site_.broker.AllOf(names_.output)) {
    for (const Record& each : site_.broker.CommittedIn(*topic)) {
      test::FaultyEvent event;
      if (is_former(*topic, each) && test::FaultyEvent::Parse(each.value.value_or(""), &event) &&
          sendings.contains(event.send)) {
        known.insert({each.partition, event.id});
      }
    }
  }
  return known;
}

void TopicInPlay::EraseKnown(const std::set<std::pair<int32_t, std::string>>& known,
                             test::Evidence& evidence) const {
  const auto id_of = [](const Record& each) {
    test::FaultyEvent event;
    test::FaultyEvent::Parse(each.value.value_or(""), &event);
    return std::pair(each.partition, event.id);
  };
  // An id that has passed since was not known, or is forgotten by then: where time goes by.
  const bool forgets = site_.schedule.horizon < absl::Hours(24);
  std::map<std::pair<int32_t, std::string>, std::set<int64_t>> passed;  // the sendings
  for (const Record& each : evidence.output) {
    test::FaultyEvent event;
    if (test::FaultyEvent::Parse(each.value.value_or(""), &event)) {
      passed[{each.partition, event.id}].insert(event.send);
    }
  }
  std::set<std::pair<int32_t, std::string>> met;  // of those that passed, by a record that did
  std::erase_if(evidence.input, [&](const Record& each) {
    const auto id = id_of(each);
    const auto since = passed.find(id);
    if (!known.contains(id) || met.contains(id)) return false;
    test::FaultyEvent event;
    test::FaultyEvent::Parse(each.value.value_or(""), &event);
    if (since != passed.end() && (!forgets || since->second.contains(event.send))) {
      met.insert(id);
      return false;
    }
    return true;
  });
}

test::Judgement TopicInPlay::Judge() const {
  if (is_routed()) {
    test::Judgement judgement = JudgeRouted();
    JudgeTagged(judgement);
    judgement.problems.insert(judgement.problems.end(), misreported_.begin(), misreported_.end());
    for (std::string& problem : judgement.problems) {
      problem = absl::StrCat("topic ", names_.input, ": ", problem);
    }
    return judgement;
  }
  const Broker& broker = site_.broker;
  test::Evidence evidence = EvidenceOf(broker.topic(names_.input), sendings_begin_, INT64_MAX);
  AddHeld(evidence);
  evidence.output_ends = EndsOf(names_.output);
  evidence.delta_ends = EndsOf(names_.deltas);
  evidence.total_ends = EndsOf(names_.totals);
  if (!output_begin_.empty()) {
    std::set<int64_t> before;  // sendings of the input before
    for (const Record& each : evidence.input) {
      test::FaultyEvent event;
      if (each.offset < input_begin_[static_cast<size_t>(each.partition)] &&
          test::FaultyEvent::Parse(*each.value, &event)) {
        before.insert(event.send);
      }
    }
    evidence.output = WithoutAdded(broker.CommittedIn(broker.topic(names_.output)));
    std::erase_if(evidence.output, [&](const Record& each) {
      const auto partition = static_cast<size_t>(each.partition);
      if (partition >= output_begin_.size() || each.offset >= output_begin_[partition]) return false;
      test::FaultyEvent event;
      return !former_counts_ || !test::FaultyEvent::Parse(each.value.value_or(""), &event) ||
             !before.contains(event.send);
    });
    if (!former_counts_) {
      std::erase_if(evidence.input, [&](const Record& each) {
        return each.offset < input_begin_[static_cast<size_t>(each.partition)];
      });
      EraseKnown(KnownBeforeReset(before), evidence);
      // In the others no time goes by.
      evidence.clock_may_be_older = site_.schedule.horizon < absl::Hours(24);
    }
  }
  for (int32_t p = 0; p < broker.CountPartitions(names_.input); ++p) {
    evidence.committed.push_back(site_.group.CommittedNow(names_.input, p).offset);
    evidence.input_ends.push_back(EndOf(p));
  }
  std::erase_if(evidence.input, [&](const Record& each) {
    return each.offset >= evidence.input_ends[static_cast<size_t>(each.partition)];
  });
  // Else the partition stops, and an operator resets it.
  if (site_.schedule.skips_deleted) EraseUnread(evidence);
  test::Judgement judgement = test::Judge(evidence);
  JudgeTagged(judgement);
  if (!forgotten_.empty()) JudgeSinceForgotten(evidence, judgement);
  // Of others in between, which were gone too soon, records may not have been read.
  if (!former_.empty()) {
    judgement += JudgeFormer(former_[0], former_.size() > 1 ? former_[1].sendings_begin : sendings_begin_);
  }
  judgement.problems.insert(judgement.problems.end(), misreported_.begin(), misreported_.end());
  for (std::string& problem : judgement.problems)
    problem = absl::StrCat("topic ", names_.input, ": ", problem);
  return judgement;
}

}  // namespace lethe::simulation
