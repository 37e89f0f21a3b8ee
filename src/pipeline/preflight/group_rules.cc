#include "src/pipeline/preflight/group_rules.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/pipeline/assign/assigner.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/probe_rules.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "src/text/format.h"

namespace lethe {
namespace {

using Severity = Finding::Severity;

Finding Unread(const DaemonOptions& options, const std::string& where, int64_t committed, int64_t start) {
  const bool stops = options.policies.on_unread_deleted == OnUnreadDeleted::kFail;
  return {stops ? Severity::kError : Severity::kWarning, "unread records", where,
          absl::StrCat("begins at offset ", start, ", and group ", options.process.group,
                       " has not read the records from offset ", committed,
                       " on: ", stops ? "the partition does not start (on_unread_deleted)" : "they are lost"),
          stops ? "to skip them, set on_unread_deleted to continue; raise retention.ms and retention.bytes"
                : "raise retention.ms and retention.bytes"};
}

Finding BeyondTheEnd(const DaemonOptions& options, const std::string& where, int64_t committed, int64_t end) {
  return {Severity::kError, "group", where,
          absl::StrCat("ends at ", end, ", and group ", options.process.group, " has committed offset ",
                       committed, ": the partition does not start"),
          absl::StrCat("the topic was truncated or recreated. ",
                       ResetOrReadAgain(options.process, options.input))};
}

Finding WithoutFilter(const DaemonOptions& options, size_t partition, int64_t committed, int count) {
  const bool stops = options.policies.on_short_history == OnShortHistory::kFail;
  return {stops ? Severity::kError : Severity::kWarning, "group",
          absl::StrCat("group ", options.process.group),
          absl::StrCat("has offsets in ", Several(count, "partition"),
                       " that another program committed, as a reset does (", options.input, "-", partition,
                       " at ", committed, "), so the history is short: ",
                       stops ? "the partition does not start (on_short_history)"
                             : "copies of earlier events pass until the horizon has gone by"),
          stops ? "if the reset was meant, set on_short_history to continue until lethe_short_history is 0"
                : "nothing, if the reset was meant"};
}

}  // namespace

Finding WithoutCommits(const std::string& group, const absl::Status& asked) {
  const bool is_late = absl::IsUnavailable(asked);
  return {Finding::Severity::kError, "group", absl::StrCat("group ", group),
          absl::StrCat(is_late ? "does not answer yet: " : "cannot be used: ", asked.message()),
          is_late ? "try again: its broker has just started, or is busy" : GrantGroup(group)};
}

Finding CannotGoOn(const DaemonOptions& options, const absl::Status& problem) {
  return {Finding::Severity::kError, "group", absl::StrCat("group ", options.process.group),
          absl::StrCat("cannot go on: ", problem.message()), ""};
}

Finding WrittenBefore(const DaemonOptions& options, bool is_certain) {
  return {
      is_certain ? Finding::Severity::kError : Finding::Severity::kWarning, "group",
      absl::StrCat("output topic ", options.output),
      absl::StrCat(is_certain ? "has records" : "has been written to", ", and group ", options.process.group,
                   " has no committed offsets of ", absl::StrJoin(options.inputs(), ", "),
                   ": lethe would write the whole input to it, perhaps once more"),
      absl::StrCat("if another group wrote to it, or this one's offsets expired or were deleted, correct "
                   "group, or set output to ",
                   options.output,
                   "-2 (lethe check --create creates it like the input). If its records are others, or "
                   "are wanted twice, set accept_nonempty_output to true until the group has committed")};
}

Finding ApplyCommitRules(const DaemonOptions& options, const std::string& id_fingerprint,
                         const std::vector<CommittedOffset>& committed) {
  for (size_t i = 0; i < committed.size(); ++i) {
    const absl::Status problem =
        ReadCommitMetadata(options, id_fingerprint, static_cast<int32_t>(i), committed[i]).status();
    if (absl::IsFailedPrecondition(problem)) return CannotGoOn(options, problem);
  }
  const auto with = absl::c_count_if(committed, [](const auto& each) { return each.offset >= 0; });
  return {Finding::Severity::kOk, "group", absl::StrCat("group ", options.process.group),
          absl::StrCat("has committed offsets for ", with, " of ", committed.size(), " partitions"), ""};
}

std::vector<Finding> ApplyOffsetRules(const DaemonOptions& options,
                                      const std::vector<CommittedOffset>& committed, LogSample& sample) {
  std::vector<Finding> findings;
  int without_filter = 0;
  size_t example = 0;
  for (size_t i = 0; i < std::min(committed.size(), sample.partitions.size()); ++i) {
    const int64_t next = committed[i].offset;
    if (next < 0) continue;
    LogSample::Partition& log = sample.partitions[i];
    const std::string where = absl::StrCat("partition ", options.input, "-", i);
    if (log.start > next) findings.push_back(Unread(options, where, next, log.start));
    if (log.end < next) findings.push_back(BeyondTheEnd(options, where, next, log.end));
    log.is_stopped = log.end < next || (log.start > next && findings.back().severity == Severity::kError);
    if (log.end < next) continue;
    // Routers remember no ids.
    const bool has_none = absl::IsNotFound(CommitMetadata::Parse(committed[i].metadata).status());
    if (has_none && next > 0 && !options.half.routing && ++without_filter == 1) example = i;
  }
  if (without_filter > 0) {
    findings.push_back(WithoutFilter(options, example, committed[example].offset, without_filter));
  }
  return findings;
}

}  // namespace lethe
