// The steps by which a filter has adapted itself.
#ifndef LETHE_SRC_ADAPT_STEP_LOG_H_
#define LETHE_SRC_ADAPT_STEP_LOG_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "lethe/status.h"
#include "src/snapshot/fields.h"

namespace lethe {

// A handful of kinds and reasons, so a search by hand is the fastest.
inline void CountSteps(const StepCount& steps, std::vector<StepCount>* counts) {
  for (StepCount& known : *counts) {
    // Reasons are constants: nearly always the same one.
    if (known.kind == steps.kind &&
        (known.reason.data() == steps.reason.data() || known.reason == steps.reason)) {
      known.count += steps.count;
      return;
    }
  }
  counts->push_back(steps);
}

// The latest steps, and how many there were of each kind. Allocates when it is made only, if `counted` has
// all that will be recorded. Thread safety: none.
class StepLog {
 public:
  // Counts from zero on, so that the first of a kind is seen as an increase.
  StepLog(size_t most, absl::Span<const StepCount> counted)
      : most_(most), counts_(counted.begin(), counted.end()) {
    steps_.reserve(most);
  }

  static int64_t HeapBytes(size_t most, size_t counted) {
    return static_cast<int64_t>(most * sizeof(AdaptationStep) + counted * sizeof(StepCount));
  }

  void Record(const AdaptationStep& step) {
    CountSteps({step.kind, step.reason, 1}, &counts_);
    if (steps_.size() < most_) {
      steps_.push_back(step);
    } else {
      steps_[next_] = step;
      next_ = (next_ + 1) % most_;
    }
  }

  bool IsLast(AdaptationStep::Kind kind) const {
    return !steps_.empty() && steps_[(next_ + steps_.size() - 1) % steps_.size()].kind == kind;
  }

  void Describe(FilterStatus* status) const {
    const auto oldest = steps_.begin() + static_cast<std::ptrdiff_t>(next_);
    status->steps.assign(oldest, steps_.end());
    status->steps.insert(status->steps.end(), steps_.begin(), oldest);
    status->step_counts = counts_;
  }

  // The steps in a snapshot; counts are of this process. `self` is const to save. A reason is saved as its
  // place in the array kReasons.
  template <const auto& kReasons, typename Self, typename Fields>
  static void Transfer(Self& self, Fields& fields) {
    TransferList(self.steps_, self.most_, fields, [&](auto& step) { TransferStep<kReasons>(step, fields); });
    fields.Int(self.next_, 0, static_cast<int64_t>(self.most_) - 1);
  }
  bool IsSound() const { return next_ < std::max<size_t>(1, steps_.size()); }

 private:
  template <const auto& kReasons, typename Step, typename Fields>
  static void TransferStep(Step& step, Fields& fields) {
    fields.Int(step.kind, 0, static_cast<int>(AdaptationStep::Kind::kScaleDown));
    fields.Time(step.stream_time_ms);
    fields.Count(step.bits_per_generation);
    auto reason = std::find(std::begin(kReasons), std::end(kReasons), step.reason) - kReasons;
    if (reason == std::ssize(kReasons)) reason = 0;
    fields.Int(reason, 0, std::ssize(kReasons) - 1);
    if constexpr (!std::is_const_v<Step>) step.reason = kReasons[reason];
  }

  size_t most_;
  std::vector<AdaptationStep> steps_;  // a ring
  size_t next_ = 0;
  std::vector<StepCount> counts_;
};

}  // namespace lethe

#endif  // LETHE_SRC_ADAPT_STEP_LOG_H_
