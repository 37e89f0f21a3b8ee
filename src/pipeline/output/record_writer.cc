#include "src/pipeline/output/record_writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lethe/counters.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr absl::string_view kVerdictHeader = "lethe.verdict";

// At least the size of a batch of one record without its key and value.
constexpr int64_t kRecordOverhead = 1024;

// Of offsets, in a line of the log.
constexpr size_t kMostRanges = 100;

}  // namespace

Disposition RecordWriter::DispositionOf(const JudgedRecord& record, const Undeliverable* known) const {
  return Dispose({.id_state = record.id_state,
                  .verdict = record.verdict,
                  .is_undeliverable = known != nullptr,
                  .is_divert_refused = known != nullptr && known->divert_refused,
                  .has_suspicious_id = record.has_suspicious_id},
                 policies());
}

std::optional<std::string> RecordWriter::WhyStop(const Task& task, const InputRecord& input,
                                                 const RecordFields& fields) {
  constexpr absl::string_view kStopped = " is fail: the partition is committed up to there, and stands still";
  const Undeliverable* known = task.UndeliverableAt(input.offset);
  const Disposition disposition = DispositionOf({.input = &input, .id_state = fields.id_state}, known);
  if (disposition.action != Action::kFail) return std::nullopt;
  const absl::string_view policy = disposition.policy;
  if (known == nullptr) {
    return absl::StrCat(Name(task, input), ": ", fields.reason, "; ", policy, kStopped, "; set ", policy,
                        " to pass, drop or divert, then restart lethe");
  }
  return absl::StrCat(Name(task, input), ": topic ",
                      known->divert_refused ? options_.divert : options_.output,
                      " does not take the record: ", known->why, "; ", policy, kStopped,
                      "; let the topic take it (max.message.bytes, say), or set "
                      "on_undeliverable to drop or divert; then restart lethe");
}

absl::Status RecordWriter::CarryOut(Task& task, const JudgedRecord& record, const RecordRules& rules,
                                    absl::Time now) {
  const Undeliverable* known = task.UndeliverableAt(record.input->offset);
  const Disposition disposition = DispositionOf(record, known);
  task.Count(disposition.kind_count);
  if (disposition.action == Action::kFail) return absl::InternalError("the partition stops in front of it");
  task.Count(disposition.action_count);
  if (known != nullptr) {
    SayUndeliverable(task, record, *known, disposition.action);
    if (disposition.action == Action::kDrop) {
      const Original original = OriginalOf(task, *record.input);
      lost_[{std::string(original.topic), original.place.partition}].push_back(original.place.offset);
    }
  }
  if (disposition.action == Action::kDivert) {
    const absl::string_view reason = disposition.reason.empty() ? record.reason : disposition.reason;
    return Divert(task, record, disposition.kind, known != nullptr ? known->why : reason);
  }
  if (!disposition.is_written()) return absl::OkStatus();
  if (rules.Expires(record.input->timestamp_ms, now)) task.CountExpired(*record.input, rules.kept_for);
  const absl::string_view tag = disposition.action == Action::kTag ? disposition.kind : "";
  if (absl::Status passed = Pass(task, record, tag); !passed.ok()) return passed;
  // A tagged one is a copy.
  return disposition.action == Action::kPass ? Count(task, record) : absl::OkStatus();
}

void RecordWriter::SayUndeliverable(const Task& task, const JudgedRecord& record, const Undeliverable& known,
                                    Action action) {
  // Each abort judges the records again, and would repeat the message.
  if (const auto like_it = undeliverable_.Next(clock_.Steady())) {
    spdlog::error("{}: undeliverable: {} rejects it: {}; {}{}", Name(task, *record.input),
                  known.divert_refused ? options_.divert : options_.output, known.why,
                  action == Action::kDivert ? "diverted" : "dropped", *like_it);
  }
}

void RecordWriter::EndTransaction(bool committed) {
  for (auto& [partition, offsets] : std::exchange(lost_, {})) {
    if (!committed) continue;
    std::sort(offsets.begin(), offsets.end());
    for (const std::string& ranges : OffsetRanges(offsets, kMostRanges)) {
      spdlog::error("{}-{}: lost, since they are undeliverable: offsets {}", partition.first,
                    partition.second, ranges);
    }
  }
}

Original RecordWriter::OriginalOf(const Task& task, const InputRecord& input) {
  headers_.clear();
  if (input.headers != nullptr) input.headers->AppendTo(headers_);
  const RoutedFrom here = {task.id().partition, input.offset};
  if (options_.half.routed_from.empty()) return {options_.input, here};
  return lethe::OriginalOf(options_, here, headers_);
}

absl::Status RecordWriter::Copy(const InputRecord& input, Target::Kind to, int32_t partition,
                                RecordPlace as) {
  const Target target = {.kind = to, .flow = flow_.number};
  return sink_.Write(
      {target, partition, input.key, input.value, std::max<int64_t>(input.timestamp_ms, 0), headers_, as});
}

absl::Status RecordWriter::Pass(const Task& task, const JudgedRecord& record, absl::string_view tag) {
  const InputRecord& input = *record.input;
  const RecordPlace place = {task.id(), input.offset};
  const Original original = OriginalOf(task, input);
  if (options_.policies.on_duplicate == Action::kTag) {
    // One that the record came with, from another lethe, say, is not this one's verdict.
    std::erase_if(headers_, [](const auto& header) { return header.name == kVerdictHeader; });
  }
  if (!tag.empty()) headers_.push_back({kVerdictHeader, tag});
  if (!record.route) {
    if (!options_.input_header.empty()) headers_.push_back({options_.input_header, original.topic});
    return Copy(input, Target::Kind::kOutput, original.place.partition, place);
  }
  const bool is_merged = !options_.merged.empty();
  const auto from = RoutedFromHeaders(
      {task.id().partition, input.offset, is_merged ? absl::string_view(options_.input) : ""});
  for (const AddedHeader& header : from) headers_.push_back({header.name, header.value});
  return Copy(input, Target::Kind::kOutput, *record.route, place);
}

absl::Status RecordWriter::Divert(const Task& task, const JudgedRecord& record, absl::string_view verdict,
                                  absl::string_view reason, bool copied) {
  const InputRecord& input = *record.input;
  const Original original = OriginalOf(task, input);
  const std::string partition = absl::StrCat(original.place.partition);
  const std::string offset = absl::StrCat(original.place.offset);
  headers_.insert(headers_.end(), {{kVerdictHeader, verdict},
                                   {"lethe.reason", reason},
                                   {"lethe.topic", original.topic},
                                   {"lethe.partition", partition},
                                   {"lethe.offset", offset}});
  return Copy(input, Target::Kind::kDivert, original.place.partition,
              {task.id(), input.offset, /*diverted=*/true, copied});
}

absl::Status RecordWriter::Count(Task& task, const JudgedRecord& record) {
  for (const CounterChange& change : record.changes) {
    const CounterOptions& counter = options_.counters[change.counter];
    const int64_t most = flow_.topics.counter_max_bytes[change.counter] - kRecordOverhead;
    CounterSums& sums = task.sums()[change.counter];
    int64_t CounterCounts::*count = &CounterCounts::malformed;
    std::string why;
    if (!change.countable) {
      why = std::string(change.text);
    } else if (const auto size = static_cast<int64_t>(change.text.size()); size > most) {
      why = absl::StrCat("its key has ", size, " bytes, and topic ", counter.output, " takes ", most);
    } else {
      CounterSums::Added added = sums.Add(change.text, change.delta);
      if (added == CounterSums::Added::kOverflow && counter.mode == CounterMode::kDelta) {
        // The present sum is written at once, as a record of its own.
        if (auto produced = ProduceSums(task, change.counter); !produced.ok()) return produced;
        sums.Clear();
        added = sums.Add(change.text, change.delta);
      }
      if (added == CounterSums::Added::kYes) {
        count = &CounterCounts::updates;
      } else {
        count = &CounterCounts::overflowed;
        why = added == CounterSums::Added::kTooManyKeys
                  ? absl::StrCat("the partition has totals of ", counter.max_keys,
                                 " keys already: raise max_keys, or count by a field with fewer values")
                  : absl::StrCat("with ", change.delta, " more, its key's total leaves 64 bits");
      }
    }
    task.Count(count);
    if (why.empty()) continue;
    if (auto left = LeaveUncounted(task, record, change.counter, why); !left.ok()) return left;
  }
  return absl::OkStatus();
}

absl::Status RecordWriter::LeaveUncounted(Task& task, const JudgedRecord& record, size_t counter,
                                          absl::string_view why) {
  const int64_t offset = record.input->offset;
  const bool divert = DisposeUncountable(task.IsUncopied(offset), policies()) == Action::kDivert;
  const std::string reason = absl::StrCat("counter ", options_.counters[counter].name, ": ", why);
  if (const auto like_it = uncounted_.Next(clock_.Steady())) {
    spdlog::warn("{}: written, and not counted: {}{}{}", Name(task, *record.input), reason,
                 divert ? "; a copy is diverted" : "", *like_it);
  }
  return divert ? Divert(task, record, "uncountable", reason, /*copied=*/true) : absl::OkStatus();
}

absl::Status RecordWriter::ProduceSums(Task& task) {
  for (size_t counter = 0; counter < task.sums().size(); ++counter) {
    if (absl::Status produced = ProduceSums(task, counter); !produced.ok()) return produced;
  }
  return absl::OkStatus();
}

absl::Status RecordWriter::ProduceSums(Task& task, size_t counter) {
  const CounterOptions& options = options_.counters[counter];
  const Target target = {Target::Kind::kCounter, counter, flow_.number};
  for (const auto& [key, sum] : task.sums()[counter].changed()) {
    absl::Status produced;
    if (options.mode == CounterMode::kTotal) {
      const CounterTotal total = {options.name, options_.origin(), task.id().partition, key,
                                  sum,          task.next()};
      const std::string text = total.RecordValue();
      const std::string place = total.RecordKey();
      produced = sink_.Write({target, task.id().partition, place, text});
    } else {
      const std::string text = absl::StrCat(sum);
      const std::string partition = absl::StrCat(task.id().partition);
      const HeaderView headers[] = {{"lethe.counter", options.name},
                                    {"lethe.topic", options_.origin()},
                                    {"lethe.partition", partition}};
      produced = sink_.Write({target, OutputRecord::kByKey, key, text, 0, headers});
    }
    if (!produced.ok()) return produced;
  }
  return absl::OkStatus();
}

std::string RecordWriter::Name(const Task& task, const InputRecord& input) {
  const std::string here = absl::StrCat(task.Name(), " offset ", input.offset);
  const Original original = OriginalOf(task, input);
  if (original.topic == options_.input) return here;
  return absl::StrCat(original.topic, "-", original.place.partition, " offset ", original.place.offset, " (",
                      here, ")");
}

}  // namespace lethe
