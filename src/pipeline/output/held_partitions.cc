#include "src/pipeline/output/held_partitions.h"

#include <spdlog/spdlog.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);

}  // namespace

bool HeldPartitions::HasOutput(Task& task) {
  if (task.id < output_partitions_) return true;
  const auto count = sink_.CountPartitions();
  // Without an answer of the broker the transaction shows it.
  if (!count.ok() && !absl::IsNotFound(count.status())) return true;
  output_partitions_ = count.value_or(0);
  if (task.id < output_partitions_) return true;
  task.phase = Phase::kHeld;
  task.problem = absl::StrCat(
      source_.Name(task), " is held at offset ", task.next, ": ",
      count.ok()
          ? absl::StrCat("records keep their partition number, and the output topics have only ",
                         output_partitions_,
                         "; it resumes when you add partitions there (kafka-topics.sh --alter --partitions ",
                         task.id + 1, ")")
          : absl::StrCat(count.status().message(), "; it resumes when you create it"));
  spdlog::error("{}", task.problem);
  source_.SetPaused(task, true);
  next_look_ = SteadyNow() + kLookEvery;
  return false;
}

void HeldPartitions::Look(const Tasks& tasks) {
  if (SteadyNow() < next_look_) return;
  next_look_ = absl::InfiniteFuture();
  absl::StatusOr<int32_t> count = absl::UnknownError("not asked yet");
  for (auto& [id, task] : tasks) {
    if (task->phase != Phase::kHeld) continue;
    if (absl::IsUnknown(count.status())) count = sink_.CountPartitions();
    if (!count.ok() || id >= *count) {
      next_look_ = SteadyNow() + kLookEvery;
      continue;
    }
    output_partitions_ = *count;
    spdlog::info("{}: resumed at offset {}: the output has its partition", source_.Name(*task), task->next);
    Release(*task);
    source_.Seek(*task);
  }
}

void HeldPartitions::Release(Task& task) {
  if (task.paused) source_.SetPaused(task, false);
  task.pace = {};
  if (task.phase != Phase::kHeld) return;
  task.phase = Phase::kActive;
  task.problem.clear();
}

}  // namespace lethe
