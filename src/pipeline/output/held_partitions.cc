#include "src/pipeline/output/held_partitions.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);
// A registry that takes longer is slow or away.
constexpr absl::Duration kSchemaSoon = absl::Seconds(1);

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
  next_look_ = clock_.Steady() + kLookEvery;
  return false;
}

void HeldPartitions::AwaitSchema(Task& task, const SchemaKey& key) {
  task.waits_for = key;
  task.waits_since = clock_.Steady();
  task.pace = {};  // what it has set aside is dropped at the seek
  source_.SetPaused(task, true);
  schema_soon_ = clock_.Steady() + kSchemaSoon;
}

bool HeldPartitions::ExpectsSchema() const { return clock_.Steady() < schema_soon_; }

void HeldPartitions::LookForSchemas(const Tasks& tasks) {
  if (schemas_ == nullptr || schemas_->answers() == answers_) return;
  answers_ = schemas_->answers();
  schema_soon_ = absl::InfinitePast();
  for (const auto& [id, task] : tasks) {
    if (!task->waits_for) continue;
    if (schemas_->Find(*task->waits_for).state == SchemaLookup::State::kWaiting) {
      schema_soon_ = std::max(schema_soon_, task->waits_since + kSchemaSoon);
      continue;
    }
    Release(*task);
    source_.Seek(*task);
  }
}

void HeldPartitions::Look(const Tasks& tasks) {
  LookForSchemas(tasks);
  if (clock_.Steady() < next_look_) return;
  next_look_ = absl::InfiniteFuture();
  absl::StatusOr<int32_t> count = absl::UnknownError("not asked yet");
  for (auto& [id, task] : tasks) {
    if (task->phase != Phase::kHeld) continue;
    if (absl::IsUnknown(count.status())) count = sink_.CountPartitions();
    if (!count.ok() || id >= *count) {
      next_look_ = clock_.Steady() + kLookEvery;
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
  task.waits_for.reset();
  if (task.phase != Phase::kHeld) return;
  task.phase = Phase::kActive;
  task.problem.clear();
}

}  // namespace lethe
