// Finds the end of a batch that cannot be read.
#ifndef LETHE_SRC_PIPELINE_TASK_UNREADABLE_BATCH_H_
#define LETHE_SRC_PIPELINE_TASK_UNREADABLE_BATCH_H_

#include <algorithm>
#include <cstdint>
#include <optional>

namespace lethe {

// The client does not say where an unreadable batch ends. Brokers send whole batches, so reading from any of
// its offsets fails, and from the one behind it succeeds: the search doubles its steps, then halves them.
// Thread safety: none.
class UnreadableBatch {
 public:
  // The batch begins at `base`; `needed` is its first offset that must be read.
  UnreadableBatch(int64_t base, int64_t needed) : base_(base), inside_(std::max(base, needed)) {}

  // The next offset to read from. `log_end`: one past the last.
  int64_t Probe(int64_t log_end) {
    probe_ = behind_ ? inside_ + (*behind_ - inside_) / 2
                     : std::max(std::min(inside_ + step_, log_end), inside_ + 1);
    return probe_;
  }

  // The probe failed, too: its batch begins at `base`.
  void Unreadable(int64_t base) {
    if (base > base_) {
      SetBehind(std::min(base, probe_));  // another batch
    } else {
      inside_ = std::max(inside_, probe_);
      step_ *= 2;
    }
  }
  // The probe has found a record or the end of the log.
  void Readable() { SetBehind(probe_); }

  // One past the last offset of the batch, once known.
  std::optional<int64_t> end() const { return behind_ && *behind_ <= inside_ + 1 ? behind_ : std::nullopt; }

 private:
  void SetBehind(int64_t offset) { behind_ = behind_ ? std::min(*behind_, offset) : offset; }

  int64_t base_;
  int64_t inside_;                 // the largest offset known to be in the batch
  std::optional<int64_t> behind_;  // the smallest known to be behind it
  int64_t step_ = 1;
  int64_t probe_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_UNREADABLE_BATCH_H_
