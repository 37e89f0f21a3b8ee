// What may be changed while a worker runs.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_TUNING_H_
#define LETHE_SRC_PIPELINE_OPTIONS_TUNING_H_

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "absl/time/time.h"
#include "src/pipeline/options/options.h"

namespace lethe {

// The rest of the options is built into clients and filters, and into what was promised.
struct LaneTuning {
  Policies policies;
  double target_fpp = 0;
};

// Set from any thread, taken over by the worker between two transactions.
class Tuning {
 public:
  explicit Tuning(const DaemonOptions& options)
      : current_{options.policies, options.stage.target_fpp},
        commit_interval_(absl::ToChronoNanoseconds(options.commit_interval)) {}

  // Thread-safe. What the policies divert needs a topic in the options.
  void Set(const LaneTuning& tuning) {
    const std::lock_guard<std::mutex> lock(mutex_);
    wanted_ = tuning;
    is_new_ = true;
  }
  void SetCommitInterval(absl::Duration interval) { commit_interval_ = absl::ToChronoNanoseconds(interval); }
  absl::Duration commit_interval() const { return absl::FromChrono(commit_interval_.load()); }

  // The worker's thread: whether there was something new, which holds from now on.
  bool Take() {
    if (!is_new_.exchange(false)) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    current_ = *wanted_;
    return true;
  }
  const LaneTuning& current() const { return current_; }

 private:
  LaneTuning current_;
  std::atomic<std::chrono::nanoseconds> commit_interval_;
  std::atomic<bool> is_new_{false};
  std::mutex mutex_;
  std::optional<LaneTuning> wanted_;  // guarded by mutex_
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_TUNING_H_
