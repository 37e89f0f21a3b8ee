#include "src/pipeline/restore/restore_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

// Whether deleted records may be within the horizon of the next record.
bool MissesRecords(const RestoreFacts& facts) {
  if (!facts.times) return true;
  // Records come in about the order of their times: deleted ones are no newer than the first record of the
  // log, or than the last before C.
  absl::Time newest_gone = std::max(facts.metadata.committed_time, facts.metadata.last.time);
  if (facts.times->first != absl::InfinitePast()) {
    newest_gone =
        newest_gone == absl::InfinitePast() ? facts.times->first : std::min(newest_gone, facts.times->first);
  }
  return newest_gone == absl::InfinitePast() || newest_gone >= facts.times->next - facts.horizon;
}

void PlanLog(const RestoreFacts& facts, RestorePlan& plan) {
  const CommitMetadata& metadata = facts.metadata;
  plan.log_from = metadata.restart;
  plan.covered_since = metadata.covered_since;
  const bool begins_late = facts.log_start > metadata.restart.offset;
  if (begins_late) {
    // Stream time there is not known. With that of the commit no record looks older than it is.
    plan.log_from = {std::min(facts.log_start, facts.committed), metadata.committed_time};
  }
  if (facts.horizon == absl::ZeroDuration()) return;
  if (begins_late && MissesRecords(facts)) {
    plan.covered_since = std::max(plan.covered_since, metadata.committed_time);
    plan.missing = absl::StrCat("the filter needs the log from offset ", metadata.restart.offset,
                                ", it starts at ", facts.log_start);
    plan.remedy = kKeepLog;
  } else if (!begins_late && metadata.horizon < facts.horizon &&
             metadata.restart.offset > metadata.origin.offset) {
    // The larger horizon needs ids from before R, which are not known.
    plan.covered_since = std::max(plan.covered_since, metadata.restart.stream_time);
    if (!IsShort(plan.covered_since, metadata.committed_time, facts.horizon)) return;
    plan.missing = absl::StrCat("the horizon was raised from ", absl::FormatDuration(metadata.horizon),
                                " to ", absl::FormatDuration(facts.horizon),
                                ", and the filter knows ids from offset ", metadata.restart.offset, " on");
    plan.remedy = "if that must not be, go back to the former horizon";
  } else if (IsShort(plan.covered_since, metadata.committed_time, facts.horizon)) {
    plan.missing = MissingSince(plan.covered_since);
    plan.remedy = kKeepLog;
  }
}

}  // namespace

LogTimes LogTimesOf(absl::Time first, absl::Time next, absl::Time now) {
  const bool has_first = first != absl::InfiniteFuture();
  // A record without a time may have any; one dated ahead is judged now.
  return {has_first ? first : absl::InfinitePast(), next == absl::InfinitePast() ? now : std::min(next, now)};
}

bool IsShort(absl::Time covered_since, absl::Time stream_time, absl::Duration horizon) {
  return covered_since != absl::InfinitePast() && stream_time - horizon < covered_since;
}

std::string MissingSince(absl::Time covered_since) {
  return absl::StrCat(
      "the log did not reach back, or the horizon was raised, and the filter knows ids since ",
      absl::FormatTime("%Y-%m-%d %H:%M:%S", covered_since, absl::UTCTimeZone()), " UTC of stream time");
}

bool NeedsLogTimes(const RestoreFacts& facts) {
  return facts.horizon > absl::ZeroDuration() && facts.log_start > facts.metadata.restart.offset;
}

RestorePlan PlanRestore(const RestoreFacts& facts) {
  RestorePlan plan;
  PlanLog(facts, plan);
  plan.source = RestoreSource::kLog;
  plan.from = plan.log_from.offset;
  // At a tie the quicker source: the kept filter before the snapshot, the snapshot before the log.
  if (facts.snapshot && *facts.snapshot <= facts.committed && *facts.snapshot > facts.log_start &&
      *facts.snapshot >= plan.from) {
    plan.source = RestoreSource::kSnapshot;
    plan.from = *facts.snapshot;
  }
  if (facts.kept && *facts.kept <= facts.committed && *facts.kept >= plan.from) {
    plan.source = RestoreSource::kKept;
    plan.from = *facts.kept;
  }
  return plan;
}

}  // namespace lethe
