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
// Each has 1 MiB or 4,096 records at most.
constexpr size_t kMostKeeping = 32;

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

void HeldPartitions::AwaitSchema(Task& task, const SchemaKey& key, RecordRun records) {
  const absl::Time now = clock_.Steady();
  task.schema_wait.Begin(key, now);
  schema_soon_ = now + kSchemaSoon;
  expected_.Add(records);
  // To fetch the records again takes up to half a second. The pace has set aside some that come behind these.
  const bool may_keep = keeping_.size() < kMostKeeping && !task.pace.peek && !task.pace.waits();
  task.pace = {};  // what it has set aside is dropped at the seek
  if (!may_keep) return source_.SetPaused(task, true);
  keeping_.insert(task.id);
  source_.SetAside(task, records);
  source_.Wait(task);
}

void HeldPartitions::Keep(const Task& task, RecordRun records) {
  if (!keeping_.contains(task.id)) return;  // it is sought
  expected_.Add(records);
  source_.SetAside(task, records);
}

bool HeldPartitions::ExpectsSchema() const { return clock_.Steady() < schema_soon_; }

void HeldPartitions::LookForSchemas(const Tasks& tasks) {
  if (schemas_ == nullptr || schemas_->answers() == answers_) return;
  answers_ = schemas_->answers();
  schema_soon_ = absl::InfinitePast();
  for (const auto& [id, task] : tasks) {
    if (!task->schema_wait.is_on()) continue;
    if (schemas_->Find(task->schema_wait.key()).state == SchemaLookup::State::kWaiting) {
      schema_soon_ = std::max(schema_soon_, task->schema_wait.since() + kSchemaSoon);
      continue;
    }
    const bool keeps = keeping_.contains(id);
    Release(*task);
    keeps ? source_.TakeBack(*task) : source_.Seek(*task);
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
  task.schema_wait.End(clock_.Steady());
  keeping_.erase(task.id);
  if (task.phase != Phase::kHeld) return;
  task.phase = Phase::kActive;
  task.problem.clear();
}

}  // namespace lethe
