// Waits for an answer.
#ifndef LETHE_SRC_PIPELINE_CLOCK_PATIENTLY_H_
#define LETHE_SRC_PIPELINE_CLOCK_PATIENTLY_H_

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe {

// Asks again while the answer is Unavailable, for as long as `patience`.
template <class Ask>
auto Patiently(absl::Duration patience, const Ask& ask) {
  const absl::Time deadline = SteadyNow() + patience;
  for (;;) {
    auto answer = ask();
    if (!absl::IsUnavailable(answer.status()) || SteadyNow() > deadline) return answer;
    absl::SleepFor(absl::Milliseconds(50));
  }
}

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_CLOCK_PATIENTLY_H_
