// Steps of adaptation, counted.
#ifndef LETHE_SRC_ADAPT_STEP_COUNTS_H_
#define LETHE_SRC_ADAPT_STEP_COUNTS_H_

#include <cstdint>
#include <vector>

#include "lethe/status.h"

namespace lethe {

// A handful of kinds and reasons, so a search by hand is the fastest.
inline void CountSteps(const StepCount& steps, std::vector<StepCount>* counts) {
  for (StepCount& known : *counts) {
    if (known.kind == steps.kind && known.reason == steps.reason) {
      known.count += steps.count;
      return;
    }
  }
  counts->push_back(steps);
}

}  // namespace lethe

#endif  // LETHE_SRC_ADAPT_STEP_COUNTS_H_
