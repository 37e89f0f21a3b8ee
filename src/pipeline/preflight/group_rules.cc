#include "src/pipeline/preflight/group_rules.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/assign/assigner.h"

namespace lethe {

Finding CannotGoOn(const DaemonOptions& options, const absl::Status& problem) {
  return {Finding::Severity::kError, "group", absl::StrCat("group ", options.process.group),
          absl::StrCat("cannot go on: ", problem.message()), ""};
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

}  // namespace lethe
