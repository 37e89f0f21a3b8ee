#include "src/pipeline/judge.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/assertion.h"
#include "src/pipeline/output/disposition.h"

namespace lethe {

JudgedRun Judge::Run(Task& task, LaneFlow& flow, RecordRun run) {
  records_.clear();
  changes_.clear();
  changes_.reserve(run.size() * flow.flow.options.counters.size());  // records_ view it
  texts_.release();
  // With this policy the partition stops before an undeliverable record, so only the broker decides.
  const bool asks = flow.writer.StopsAtUndeliverable();
  const bool foresees = !asks && flow.refusals.trusted(clock_.Steady());
  const bool foresees_sizes = !asks && flow.refusals.sizes_trusted(clock_.Steady());
  const absl::Time now = clock_.Wall();
  int64_t oldest_ms = INT64_MAX;
  const absl::Time latest = now + flow.flow.options.max_future;
  std::optional<SchemaNeed> waits_for;
  for (const InputRecord& input : run) {
    const RecordFields& fields = flow.reader.Read(input.view());
    if (fields.waits_for) {
      waits_for = fields.waits_for;
      break;
    }
    if (auto why = flow.writer.WhyStop(task, input, fields)) {
      task.StopBeforeNext(*std::move(why));
      break;
    }
    const absl::Time time = Believe(task, input, latest);
    flow.warnings.SeeTime(input.timestamp_ms);
    oldest_ms = std::min(oldest_ms, input.timestamp_ms);
    if (!input.key) task.Count(&RecordCounts::unkeyed);
    if (fields.id_place > 0) task.Count(&RecordCounts::later_place);
    if (fields.lacks_optional) task.Count(&RecordCounts::partial_id);
    if (IsJudged(fields) && task.UndeliverableAt(input.offset) == nullptr) {
      events_.push_back({task.filter()->Hash(fields.id), time, input.payload()});
      event_records_.push_back(records_.size());
    } else {
      JudgeEvents(task, flow);  // stream time moves in the order of the log
      task.transaction().Observe(time).IgnoreError();
    }
    Add(task, flow, input, fields);
    std::string refused =
        foresees ? flow.refusals.Foresee(input.timestamp_ms, input.key.has_value(), now) : "";
    if (foresees_sizes && refused.empty()) refused = flow.refusals.ForeseeSize(input.payload());
    if (refused.empty()) continue;
    const std::optional<HashedId> judged = events_.empty() ? std::nullopt : std::optional(events_.back().id);
    JudgeEvents(task, flow);  // before later records: a copy of this one must pass
    const JudgedRecord& record = records_.back();
    if (!flow.writer.DispositionOf(record).is_written()) continue;
    if (judged && record.verdict != Verdict::kDuplicate) {
      task.transaction().Forget(*judged).IgnoreError();  // it is open, and the hash is its partition's
    }
    task.Foresee(input.offset, std::move(refused));
  }
  JudgeEvents(task, flow);
  LETHE_ASSERT(events_.empty() && records_.size() <= run.size());
  task.duplicates().Update(task.status().audit, clock_.Steady());
  return {records_, oldest_ms, waits_for};
}

void Judge::JudgeEvents(Task& task, LaneFlow& flow) {
  verdicts_.resize(events_.size());
  task.transaction().Judge(events_, absl::MakeSpan(verdicts_)).IgnoreError();  // status() has it, too
  for (size_t i = 0; i < events_.size(); ++i) {
    JudgedRecord& record = records_[event_records_[i]];
    record.verdict = verdicts_[i];
    flow.warnings.SeeEvent(task.id().partition, events_[i].id, record.verdict, *record.input);
    task.duplicates().Add(events_[i].id, record.verdict, record.input->offset);
    if (record.verdict == Verdict::kDuplicate) WatchDuplicate(task, flow, events_[i].id, record);
  }
  events_.clear();
  event_records_.clear();
}

void Judge::WatchDuplicate(Task& task, const LaneFlow& flow, IdHash id, JudgedRecord& record) {
  const InputRecord& input = *record.input;
  const auto pair = task.shared_ids().Add(id, input.Hash(), input.offset);
  if (!pair) return;
  const absl::Time now = clock_.Steady();
  task.SetSharedId(*pair, now);
  task.Count(&RecordCounts::suspicious);
  const DaemonOptions& options = flow.flow.options;
  const Action action = options.policies.on_suspicious_id;
  const auto why = [&] {
    return absl::StrCat("at least ", SharedIdWatch::kEnough,
                        " records of one id differ, such as those at offsets ", pair->first_offset, " and ",
                        pair->second_offset, ": ", options.record.id.ToString(),
                        " seems to be a constant or a default in them; correct id, or their producer");
  };
  if (action == Action::kFail) {
    // The rest of the batch is judged as before.
    task.StopBeforeNext(
        absl::StrCat(task.Name(), ": ", why(),
                     ". on_suspicious_id is fail: the partition is committed up to there, and stands still"));
    return;
  }
  record.has_suspicious_id = true;
  if (const auto like_it = suspicious_.Next(now)) {
    spdlog::warn("{} offset {}: {}: {}{}", task.Name(), input.offset,
                 action == Action::kPass     ? "passed, though its id has passed before"
                 : action == Action::kDivert ? "diverted"
                                             : "taken for a copy",
                 why(), *like_it);
  }
}

void Judge::Add(const Task& task, LaneFlow& flow, const InputRecord& input, const RecordFields& fields) {
  if (fields.id_state != RecordFields::State::kPresent) {
    flow.warnings.SeeWithoutId(fields.reason);
    Complain(task, flow, input.offset, fields);
  }
  const size_t first_change = changes_.size();
  for (size_t counter = 0; counter < fields.counters.size(); ++counter) {
    const CounterUpdate& update = fields.counters[counter];
    if (update.state == CounterUpdate::State::kNotMeant) continue;
    const bool countable = update.state == CounterUpdate::State::kCounted;
    changes_.push_back({counter, countable, Keep(countable ? update.key : update.reason), update.delta});
  }
  records_.push_back({.input = &input,
                      .id_state = fields.id_state,
                      .reason = Keep(fields.reason),
                      .changes = absl::MakeConstSpan(changes_).subspan(first_change)});
}

absl::string_view Judge::Keep(absl::string_view text) {
  if (text.empty()) return {};
  char* const copy = static_cast<char*>(texts_.allocate(text.size(), /*alignment=*/1));
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

absl::Time Judge::Believe(Task& task, const InputRecord& input, absl::Time latest) {
  const absl::Time time = input.time();
  if (time <= latest) {
    task.NoteTime(time);
    return time;
  }
  task.Count(&RecordCounts::future);
  if (const auto like_it = disbelieved_.Next(clock_.Steady())) {
    spdlog::warn(
        "{} offset {}: its timestamp {} is more than {} ahead of this machine's clock: it is judged like a "
        "record without a timestamp; correct the producer's clock, or its unit (Kafka's is milliseconds){}",
        task.Name(), input.offset, absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone()),
        absl::FormatDuration(task.flow()->options.max_future), *like_it);
  }
  return absl::InfinitePast();
}

void Judge::Complain(const Task& task, const LaneFlow& flow, int64_t offset, const RecordFields& fields) {
  const bool is_malformed = fields.id_state == RecordFields::State::kMalformed;
  const auto like_it = (is_malformed ? malformed_ : without_id_).Next(fields.reason, clock_.Steady());
  if (!like_it) return;
  const Action action = flow.writer.DispositionOf({.id_state = fields.id_state}).action;
  spdlog::warn("{} offset {}: {} without a verdict: {}{}", task.Name(), offset,
               action == Action::kPass   ? "passed"
               : action == Action::kDrop ? "dropped"
                                         : "diverted",
               std::string(fields.reason), *like_it);
}

}  // namespace lethe
