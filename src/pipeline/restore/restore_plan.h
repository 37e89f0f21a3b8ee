// Where the filter of a partition comes from when it is assigned, and whether it will know all ids of the
// horizon. `lethe run` asks for each partition that it gets, and `lethe check` asks before that.
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
  absl::Time first = absl::InfinitePast();  // of the first record that is there; InfinitePast(): not known
  absl::Time next = absl::InfinitePast();   // of the record to judge next; the present time if there is none
};

// `first` and `next` as AskTimes() tells them, InfiniteFuture() where there is no such record.
LogTimes LogTimesOf(absl::Time first, absl::Time next, absl::Time now);

struct RestoreFacts {
  CommitMetadata metadata;
  int64_t committed = 0;  // C
  int64_t log_start = 0;
  absl::Duration horizon = absl::ZeroDuration();  // of the options, not of the commit
  bool routes = false;                            // nothing is judged, so nothing is to be known
  // F of a filter of this process, and the offset of the snapshot that the commit names, if they may be used.
  std::optional<int64_t> kept;
  std::optional<int64_t> snapshot;
  // Only looked at where NeedsLogTimes(). Not known: the log is taken for too short.
  std::optional<LogTimes> times;
};

enum class RestoreSource { kKept, kSnapshot, kLog };

struct RestorePlan {
  // The one of which a restart reads the fewest offsets, from `from` to C.
  RestoreSource source = RestoreSource::kLog;
  int64_t from = 0;
  // What a rebuild from the log is: also where a snapshot turns out to be of no use.
  RestartPoint log_from;
  // Stream time from which on all ids are known then, and where these are not all of the horizon, why, and
  // what to do about it.
  absl::Time covered_since = absl::InfinitePast();
  std::string missing;
  std::string remedy;
};

// Whether the log begins behind R, so that the times of its records say whether it is short. (R may lie far
// before the horizon: it leaves the clock a hundred records, which in a sparse topic are days.)
bool NeedsLogTimes(const RestoreFacts& facts);

RestorePlan PlanRestore(const RestoreFacts& facts);

// Whether ids that are known since then are not all of the horizon before a stream time.
bool IsShort(absl::Time covered_since, absl::Time stream_time, absl::Duration horizon);

// What is missing where only that is known.
std::string MissingSince(absl::Time covered_since);

inline constexpr char kKeepLog[] = "keep the log longer (retention.ms, retention.bytes)";

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_RESTORE_RESTORE_PLAN_H_
