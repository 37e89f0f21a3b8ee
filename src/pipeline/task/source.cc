#include "src/pipeline/task/source.h"

namespace lethe {

void Source::Poll(absl::Duration timeout, size_t limit, size_t most_bytes) {
  ClearBatch();
  stale_.clear();
  PollBatch(timeout, limit, most_bytes);
}

void Source::ClearBatch() {
  batch_.clear();
  ReleaseBatch();
}

void Source::ReadAgainFrom(size_t begin, const Tasks& tasks) {
  for (size_t i = begin; i < batch_.size(); ++i) {
    Task* task = Find(tasks, batch_[i].from());
    if (task == nullptr || task->phase() == Phase::kFailed || task->in_transaction()) continue;
    if (!IsStale(*task)) Seek(*task);
  }
}

void Source::Seek(Task& task) {
  task.unreadable().reset();
  SeekTo(task, task.next());
}

void Source::SeekTo(Task& task, int64_t offset) {
  task.ForgetEndOfLog();  // the reader reports the end again
  SkipRestOfBatch(task);
  MoveTo(task, offset);
}

void Source::SetPaused(Task& task, bool paused) {
  task.SetPaused(paused);
  Pause(task, paused);
}

void Source::SetAside(const Task&, absl::Span<const InputRecord>) {}

void Source::TakeBack(Task& task) {
  if (task.paused()) SetPaused(task, false);
  Seek(task);
}

}  // namespace lethe
