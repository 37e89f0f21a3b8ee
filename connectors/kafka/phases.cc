#include "connectors/kafka/phases.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/pipeline/disposition.h"

namespace lethe::kafka {
namespace {

// What was damaged on its way is there when it is fetched again.
constexpr int kUnreadableTimes = 3;

}  // namespace

Phases::Phases(const DaemonOptions& options, const Topics& topics, const Tuning& tuning, WorkerState& state,
               Source& source, HeldPartitions& held, Transactions& transactions, Ownership& ownership,
               Warnings& warnings)
    : tuning_(tuning),
      state_(state),
      source_(source),
      held_(held),
      transactions_(transactions),
      ownership_(ownership),
      replay_(options, state, source),
      judge_(options, topics, source, transactions.writer(), transactions.refusals(), warnings) {}

absl::Status Phases::Advance(OwnedPartition& owned, MessageRun run) {
  if (owned.unreadable) {
    owned.unreadable->Readable();
    SearchReadable(owned);
    return absl::OkStatus();
  }
  while (!run.empty()) {
    // The client may repeat messages after a seek.
    if (run.front()->offset < owned.next) {
      run.remove_prefix(1);
      continue;
    }
    switch (owned.phase) {
      case Phase::kHeld:  // polled before it was
      case Phase::kFailed:
        return absl::OkStatus();
      case Phase::kChecking:
        if (!replay_.Recognizes(owned, *run.front())) {
          ownership_.Rebuild(owned);
          return absl::OkStatus();
        }
        run.remove_prefix(1);
        break;
      case Phase::kRestoring:
        run = replay_.Restore(owned, run);
        break;
      case Phase::kActive:
        return JudgeRun(owned, run);
    }
  }
  return absl::OkStatus();
}

absl::Status Phases::JudgeRun(OwnedPartition& owned, MessageRun run) {
  if (!held_.HasOutput(owned)) return absl::OkStatus();
  if (!owned.stop_before_next.empty()) return absl::OkStatus();
  if (absl::Status begun = transactions_.Begin(owned); !begun.ok()) return begun;
  const JudgedRun judged = judge_.Run(owned, run);
  // What was passed may not be remembered, so nothing of it may go out. Whoever is started next has all that
  // is committed from the log.
  if (absl::Status known = owned.transaction->status(); !known.ok()) {
    state_.fatal = absl::Status(known.code(), absl::StrCat(source_.Name(owned), ": ", known.message()));
    return state_.fatal;
  }
  return judged.records.empty() ? absl::OkStatus() : transactions_.Write(owned, judged);
}

void Phases::ReachEnd(OwnedPartition& owned, int64_t end) {
  if (owned.unreadable) {
    owned.unreadable->Readable();
    return SearchReadable(owned);
  }
  owned.end_of_log = std::max(owned.end_of_log, end);
  // The record that is looked for would have come before. What follows is read again: it is not at its end.
  if (owned.phase == Phase::kChecking) return ownership_.Rebuild(owned);
  if (owned.phase == Phase::kRestoring && end >= owned.committed) replay_.Activate(owned);
  if (owned.phase != Phase::kActive || !owned.stop_before_next.empty() || end <= owned.next) return;
  // Not committed, it would be gone with the next segment: to the broker the log starts behind it then.
  if (transactions_.Begin(owned).ok()) owned.next = end;
}

bool Phases::IsUnreadable(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR__BAD_COMPRESSION || code == RD_KAFKA_RESP_ERR__BAD_MSG ||
         code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
}

void Phases::MeetUnreadable(OwnedPartition& owned, int64_t base, const std::string& why) {
  if (owned.phase == Phase::kFailed || owned.phase == Phase::kHeld || !owned.stop_before_next.empty()) return;
  if (owned.unreadable) {
    owned.unreadable->Unreadable(base);
    return SearchReadable(owned);
  }
  const int64_t at = std::max(base, owned.next);
  owned.unreadable_times = owned.unreadable_at == at ? owned.unreadable_times + 1 : 1;
  owned.unreadable_at = at;
  if (owned.unreadable_times < kUnreadableTimes) return;
  // The record to compare with is not to be had.
  if (owned.phase == Phase::kChecking) return ownership_.Rebuild(owned);
  const bool is_replay = owned.phase != Phase::kActive;
  if (DisposeUnreadable(is_replay, tuning_.current().policies) != Action::kFail) {
    owned.unreadable.emplace(base, owned.next);
    owned.unreadable_why = why;
    return SearchReadable(owned);
  }
  const std::string problem = absl::StrCat(
      source_.Name(owned), " offset ", at, ": the batch cannot be read: ", why,
      "; on_unreadable is fail: the partition is committed up to there, and stands still; set on_unreadable "
      "to drop to pass over it, then reload the configuration (SIGHUP) or start again; if it only "
      "decompresses to more than the client takes, raise receive.message.max.bytes under kafka");
  if (owned.in_transaction()) {
    owned.stop_before_next = problem;
    return;
  }
  owned.phase = Phase::kFailed;
  owned.stopped_by_policy = true;
  owned.problem = problem;
  spdlog::error("{}", problem);
  source_.SetPaused(owned, true);
}

void Phases::SearchReadable(OwnedPartition& owned) {
  if (const auto end = owned.unreadable->end()) {
    owned.unreadable.reset();
    return PassOver(owned, *end);
  }
  source_.SeekTo(owned, owned.unreadable->Probe(source_.HighWatermark(owned.id)));
}

void Phases::PassOver(OwnedPartition& owned, int64_t end) {
  const int64_t begin = owned.next;
  if (owned.phase == Phase::kActive) {
    if (!held_.HasOutput(owned) || !transactions_.Begin(owned).ok()) return;
    transactions_.PassOver(owned, end);
  } else {
    owned.next = owned.filter_end = std::min(end, owned.committed);
    owned.counts.suppressed += owned.next - begin;
  }
  spdlog::error("{}: offsets {} to {} cannot be read, and are passed over: {}", source_.Name(owned), begin,
                end - 1, owned.unreadable_why);
  if (owned.phase == Phase::kRestoring && owned.next >= owned.committed) replay_.Activate(owned);
  source_.Seek(owned);
}

}  // namespace lethe::kafka
