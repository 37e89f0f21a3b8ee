// From what a user knows of a stream to what a compact filter takes, and back: with the filter's own formats
// (src/filter/compact_formats.h), under a steady load.
#ifndef LETHE_SRC_ENGINES_PLAN_H_
#define LETHE_SRC_ENGINES_PLAN_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lethe {

// Three of the four are given; the plan finds the fourth.
struct PlanRequest {
  std::optional<double> rate = std::nullopt;  // unique events in a second
  std::optional<absl::Duration> horizon = std::nullopt;
  std::optional<double> target_fpp = std::nullopt;
  std::optional<int64_t> memory_bytes = std::nullopt;  // the limit that a user states
};

struct Plan {
  double rate = 0;
  absl::Duration horizon;
  double target_fpp = 0;
  // The limit to state: twice what the filters need, since a restart remembers copies for longer, and the
  // audit's eighth.
  int64_t memory_bytes = 0;

  // What the filters need, with the ids of one slice more than the horizon: an epoch is forgotten as a whole.
  int64_t filter_bytes = 0;
  int past_generations = 0;       // N: epochs in a horizon
  absl::Duration refresh_period;  // t
  int fingerprint_bits = 0;

  double ids = 0;          // unique events in the horizon
  double bits_per_id = 0;  // filter_bytes in bits, for each of them
  double false_drops_per_day = 0;

  // An exact set of 64-bit hashes for the same ids.
  int64_t exact_bytes = 0;
  double exact_bits_per_id = 0;
};

// InvalidArgument if not exactly three values are given, if one of them is out of its range, or if they
// cannot be met together; it says what is wrong and the nearest that can be. Takes some 50 ms at most.
absl::StatusOr<Plan> MakePlan(const PlanRequest& request);

}  // namespace lethe

#endif  // LETHE_SRC_ENGINES_PLAN_H_
