// Plans the restore of an assigned partition's filter, and tells whether it will know all ids of the horizon.
// Used by `lethe run` and by `lethe check`.
#ifndef LETHE_SRC_PIPELINE_RESTORE_RESTORE_PLAN_H_
#define LETHE_SRC_PIPELINE_RESTORE_RESTORE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "src/pipeline/restore/restart_points.h"

namespace lethe {

// By the records' own timestamps.
struct LogTimes {
  absl::Time first = absl::InfinitePast();  // of the first record; InfinitePast(): not known
  absl::Time next = absl::InfinitePast();   // of the next record; the present time if there is none
};

// `first` and `next` by AskTimes(), InfiniteFuture() where there is no such record.
LogTimes LogTimesOf(absl::Time first, absl::Time next, absl::Time now);

struct RestoreFacts {
  CommitMetadata metadata;
  int64_t committed = 0;  // C
  int64_t log_start = 0;
  absl::Duration horizon = absl::ZeroDuration();  // by the options, not the commit; zero: no ids are needed
  // F of a kept filter, and the offset of the snapshot that the commit names, if usable.
  std::optional<int64_t> kept;
  std::optional<int64_t> snapshot;
  // Only used if NeedsLogTimes(). Not known: the log counts as too short.
  std::optional<LogTimes> times;
};

enum class RestoreSource { kKept, kSnapshot, kLog };

struct RestorePlan {
  // The source that reads the fewest offsets, from `from` to C.
  RestoreSource source = RestoreSource::kLog;
  int64_t from = 0;
  // The start of a rebuild from the log, also used if a snapshot turns out to be unusable.
  RestartPoint log_from;
  // Stream time from which all ids will be known; if that does not cover the horizon, why, and what to do.
  absl::Time covered_since = absl::InfinitePast();
  std::string missing;
  std::string remedy;
};

// Whether the log begins behind R, so that times must tell whether it is short. (In a sparse topic the
// hundred records from R on may be days before the horizon.)
bool NeedsLogTimes(const RestoreFacts& facts);

RestorePlan PlanRestore(const RestoreFacts& facts);

// Whether ids known since then do not cover the horizon before a stream time.
bool IsShort(absl::Time covered_since, absl::Time stream_time, absl::Duration horizon);

std::string MissingSince(absl::Time covered_since);

inline constexpr char kKeepLog[] = "keep the log longer (retention.ms, retention.bytes)";

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_RESTORE_RESTORE_PLAN_H_
