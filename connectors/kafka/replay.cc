#include "connectors/kafka/replay.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/client/message_view.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {

bool Replay::Recognizes(OwnedPartition& owned, const rd_kafka_message_t& message) {
  if (message.offset != owned.mark.offset || MessageView(message).Hash() != owned.mark.hash) return false;
  owned.mark.time = owned.committed_mark.time = MessageView(message).time();  // a snapshot does not tell it
  owned.next = owned.filter_end;
  owned.phase = Phase::kRestoring;
  if (owned.next >= owned.committed) Activate(owned);
  return true;
}

MessageRun Replay::Restore(OwnedPartition& owned, MessageRun run) {
  const auto active = std::find_if(
      run.begin(), run.end(), [&](const MessagePtr& message) { return message->offset >= owned.committed; });
  Remember(owned, run.first(static_cast<size_t>(active - run.begin())));
  run.remove_prefix(static_cast<size_t>(active - run.begin()));
  if (owned.phase != Phase::kFailed && (!run.empty() || owned.next >= owned.committed)) Activate(owned);
  return owned.phase == Phase::kFailed ? MessageRun() : run;
}

void Replay::Activate(OwnedPartition& owned) {
  if (owned.to_compare) return StopOnOtherLog(owned);
  owned.phase = Phase::kActive;
  owned.filter->LimitStreamTime(absl::InfiniteFuture());
  owned.KnowsSinceStreamTime();
  // There may be no record at all between the last one read and C: control records, compacted ones.
  owned.next = owned.filter_end = owned.committed;
  owned.committed_mark = owned.mark;
  owned.committed_timed_records = owned.timed_records;
  spdlog::info("{}: ready at offset {}, {} offsets were read again", source_.Name(owned), owned.committed,
               owned.restore.to() - owned.restore.from());
  owned.restore.At(owned.restore.to(), SteadyNow());
}

void Replay::Remember(OwnedPartition& owned, MessageRun run) {
  if (run.empty()) return;
  if (!IsLogOfCommit(owned, run)) return StopOnOtherLog(owned);
  events_.clear();
  const auto replay = [&] {
    if (absl::Status replayed = owned.filter->Replay(events_); !replayed.ok()) state_.fatal = replayed;
    events_.clear();
  };
  // The wall clock has moved on since these records were judged, and would now believe what it did not then.
  // Stream time at C is what is left of that time.
  owned.filter->LimitStreamTime(owned.time_at_committed);
  const absl::Time latest = std::min(absl::Now(), owned.time_at_committed) + options_.max_future;
  for (const MessagePtr& message : run) {
    const MessageView view(*message);
    const RecordFields& fields = reader_.Read(view.record());
    const absl::Time time = view.time() > latest ? absl::InfinitePast() : view.time();
    if (time != absl::InfinitePast()) ++owned.timed_records;
    if (fields.id_state == RecordFields::State::kPresent && !options_.routes &&
        !owned.passed_over.contains(message->offset)) {
      events_.push_back({owned.filter->Hash(fields.id), time, view.payload()});
    } else {
      replay();
      if (absl::Status observed = owned.filter->Observe(time); !observed.ok()) state_.fatal = observed;
    }
  }
  replay();
  owned.next = owned.filter_end = run.back()->offset + 1;
  const MessageView last(*run.back());
  owned.mark = owned.committed_mark = {run.back()->offset, last.Hash(), last.time()};
  owned.committed_timed_records = owned.timed_records;
  owned.counts.suppressed += static_cast<int64_t>(run.size());
  owned.points->Note(owned.next, owned.timed_records, owned.filter->stream_time());
  if (owned.restore.At(owned.next, SteadyNow())) {
    spdlog::info("{}: restoring: {}", source_.Name(owned), owned.restore.ToString());
  }
}

bool Replay::IsLogOfCommit(OwnedPartition& owned, MessageRun run) {
  if (!owned.to_compare || run.back()->offset < owned.to_compare->offset) return true;
  const auto found = std::find_if(run.begin(), run.end(), [&](const MessagePtr& message) {
    return message->offset == owned.to_compare->offset;
  });
  if (found == run.end() || MessageView(**found).Hash() != owned.to_compare->hash) return false;
  owned.to_compare.reset();
  return true;
}

void Replay::StopOnOtherLog(OwnedPartition& owned) {
  const LogMark judged = *std::exchange(owned.to_compare, std::nullopt);
  owned.Fail(absl::StrCat(
      source_.Name(owned), " offset ", judged.offset,
      ": the log has another record here than the group has judged, or "
      "none: it was truncated (an unclean leader election, say) or recreated, and has grown again. Records "
      "before offset ",
      owned.committed,
      " may be new and not judged. Reset the group's offsets with "
      "kafka-consumer-groups.sh --reset-offsets: to ",
      owned.committed,
      " to go on without them; further back to judge them, where all that is read again is "
      "written to the output once more"));
  spdlog::error("{}", owned.problem);
}

}  // namespace lethe::kafka
