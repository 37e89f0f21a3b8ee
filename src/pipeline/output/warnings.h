// Warnings of a worker about a flow: missing ids, wrong times, differing keys, the memory limit,
// undeliverable records.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_WARNINGS_H_
#define LETHE_SRC_PIPELINE_OUTPUT_WARNINGS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/event.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/clock/repeats.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/frame_watch.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/report/watches.h"
#include "src/pipeline/task/input_record.h"
#include "src/pipeline/task/task.h"
#include "src/pipeline/task/worker_state.h"
#include "src/record/registry_frame.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class Warnings {
 public:
  Warnings(const Flow& flow, const WorkerState& state);

  // Before open_counts are reset. Repeats while nearly no record has a usable id.
  void OfMissingIds(const std::vector<Task*>& committed);
  // If most timestamps are of another unit.
  void OfTimes();
  // Before open_counts are reset. If most records that partitions have written are older than the output
  // keeps records: a line of the log at most once an hour, and true, to ask for its retention again, once a
  // minute.
  bool OfExpired(const std::vector<Task*>& committed);
  // If there are more undeliverable records than the commit metadata can list.
  void OfUnlisted(Task& task);
  // If the id reads keys that a schema registry frames, or the schemas of what it reads differ between
  // records of one key. For Scope::kPartition: if most records have no key, or copies have other keys than
  // the first of their id.
  void OfKeys(const Tasks& tasks);
  // When the memory limit first costs a partition its window or its target, when its filter first loses ids,
  // and when its share of duplicates jumps, and is as usual again.
  void OfFilter(Task& task, const PartitionReport& report);

  // For a record without a usable id.
  void SeeWithoutId(absl::string_view reason) { ids_.See(reason); }
  // For each record.
  void SeeTime(int64_t timestamp_ms) {
    if (timestamp_ms >= 0) times_.See(timestamp_ms);
  }
  // For each judged event.
  void SeeEvent(int32_t partition, IdHash id, Verdict verdict, const InputRecord& record) {
    if (id_reads_key_ || id_reads_value_) SeeFrames(record);
    if (!KeyWatch::IsSampled(id)) return;
    if (keys_) keys_->See(partition, id, verdict, record.key);
    if (id_reads_key_) frames_.Add(record.key, std::nullopt);
  }
  std::optional<IdWatch::Stretch> without_id() const { return ids_.nearly_none(); }
  std::optional<TimeUnitCheck> wrong_times() const { return times_.wrong(); }

 private:
  void SeeFrames(const InputRecord& record);
  void OfFrames(FrameWatch& watch, const char* what, absl::string_view remedy);

  const DaemonOptions& options_;
  const int lane_;
  const int32_t partitions_;  // of the input
  const Clock& clock_;
  IdWatch ids_;
  TimeWatch times_;
  std::optional<KeyWatch> keys_;  // for Scope::kPartition
  const bool id_reads_key_;
  const bool id_reads_value_;
  FrameWatch key_frames_;
  FrameWatch value_frames_;
  RegistryFrames frames_;  // of sampled records, if the id reads the key
  bool warned_of_frames_ = false;
  bool warned_unkeyed_ = false;
  int64_t unlisted_ = 0;  // undeliverable records in no commit
  Repeats unlisted_warnings_;
  Repeats memory_warnings_;
  absl::Time next_expired_ = absl::InfinitePast();
  absl::Time next_expired_line_ = absl::InfinitePast();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_WARNINGS_H_
