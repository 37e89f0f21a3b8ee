#include "src/pipeline/task/worker_state.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);

}  // namespace

absl::Status WorkerState::Await(const std::function<absl::Status()>& ask) {
  bool said = false;
  for (;;) {
    heartbeat.Beat();
    absl::Status status = ask();
    if (!absl::IsUnavailable(status)) {
      if (said) SetWaiting("");
      return status;
    }
    SetWaiting(std::string(status.message()));
    if (!said) spdlog::warn("lane {}: waiting: {}", lane, std::string(status.message()));
    said = true;
    if (Wait(kRetryAfter)) return absl::CancelledError(status.message());
  }
}

void WorkerState::SetWaiting(const std::string& why) {
  const MutexLock lock(mutex_);
  waiting_ = why;
}

std::string WorkerState::waiting() const {
  const MutexLock lock(mutex_);
  return waiting_;
}

}  // namespace lethe
