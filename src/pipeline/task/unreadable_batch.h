// Where a batch ends that cannot be read.
#ifndef LETHE_SRC_PIPELINE_TASK_UNREADABLE_BATCH_H_
#define LETHE_SRC_PIPELINE_TASK_UNREADABLE_BATCH_H_

#include <algorithm>
#include <cstdint>
#include <optional>

namespace lethe {

// The client says that the batch at an offset cannot be read, and not where the batch ends. Brokers send
// whole batches, so reading from any offset of it fails, and from the one behind it does not: the end is
// searched, first in steps that double, then by halves.
//
// Thread safety: none.
class UnreadableBatch {
 public:
  // `base` is the offset at which the batch begins, `needed` the first of it that is still to be read.
  UnreadableBatch(int64_t base, int64_t needed) : base_(base), inside_(std::max(base, needed)) {}

  // Where to read from next. `log_end`: one past the last offset, from which nothing is read.
  int64_t Probe(int64_t log_end) {
    probe_ = behind_ ? inside_ + (*behind_ - inside_) / 2
                     : std::max(std::min(inside_ + step_, log_end), inside_ + 1);
    return probe_;
  }

  // What came of the last probe: the batch there, which begins at `base`, is not readable either.
  void Unreadable(int64_t base) {
    if (base > base_) {
      SetBehind(std::min(base, probe_));  // that is another one
    } else {
      inside_ = std::max(inside_, probe_);
      step_ *= 2;
    }
  }
  // It is readable, or there is nothing yet.
  void Readable() { SetBehind(probe_); }

  // One past the last offset of the batch, once that is known.
  std::optional<int64_t> end() const { return behind_ && *behind_ <= inside_ + 1 ? behind_ : std::nullopt; }
  int64_t probe() const { return probe_; }

 private:
  void SetBehind(int64_t offset) { behind_ = behind_ ? std::min(*behind_, offset) : offset; }

  int64_t base_;
  int64_t inside_;                 // the largest offset that is known to be in it
  std::optional<int64_t> behind_;  // the smallest that is known to be behind it
  int64_t step_ = 1;
  int64_t probe_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_UNREADABLE_BATCH_H_
