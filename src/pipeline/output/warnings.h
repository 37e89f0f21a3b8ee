// What a worker warns of now and then: ids, keys, the memory limit, undeliverable records.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_WARNINGS_H_
#define LETHE_SRC_PIPELINE_OUTPUT_WARNINGS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "lethe/event.h"
#include "src/pipeline/clock/repeats.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/id_watch.h"
#include "src/pipeline/report/key_watch.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/task/task.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class Warnings {
 public:
  // The input has so many partitions.
  Warnings(const DaemonOptions& options, int lane, int32_t partitions);

  // Before the counts of a transaction are closed: again and again, while nearly no record has a usable id.
  void OfMissingIds(const std::vector<Task*>& committed);
  // After a commit: if its undeliverable records are more than commit metadata can list.
  void OfUnlisted(Task& task);
  // After a commit: if most records have no key, or copies have other keys than the first of their id,
  // although ids are to be unique by partition.
  void OfKeys(const Tasks& tasks);
  // The first time that the memory limit costs a partition its window or its target.
  void OfMemoryLimit(Task& task, const PartitionReport& report);

  // Whether this id is one of those whose keys are compared; then it is to be seen with its verdict.
  bool CompareKeys(IdHash id) const { return keys_ && KeyWatch::IsSampled(id); }
  void SeeKey(int32_t partition, IdHash id, Verdict verdict, std::optional<absl::string_view> key) {
    keys_->See(partition, id, verdict, key);
  }
  // The latest records, if nearly all lack a usable id.
  std::optional<IdWatch::Stretch> without_id() const { return ids_.nearly_none(); }

 private:
  const DaemonOptions& options_;
  const int lane_;
  const int32_t partitions_;
  IdWatch ids_;
  std::optional<KeyWatch> keys_;  // if copies with different keys would not meet
  bool warned_unkeyed_ = false;
  int64_t unlisted_ = 0;  // undeliverable records that are in no commit
  Repeats unlisted_warnings_;
  Repeats memory_warnings_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_WARNINGS_H_
