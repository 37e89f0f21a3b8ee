// From what a user knows of a stream to what a filter takes, and back: the same model and the same table of
// layouts as the filter's own (src/fpp/sliced_model.h), under a steady load.
#ifndef LETHE_ADAPT_PLAN_H_
#define LETHE_ADAPT_PLAN_H_

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
  // The limit to state: twice what the filters need, and the audit's eighth. Filters grow by doubling, and
  // first come is first served: with that much each partition of even load finds its room, whatever their
  // number.
  int64_t memory_bytes = 0;

  // What the filters need at least, as one filter in a budget of its own, with all intervals full.
  int64_t filter_bytes = 0;
  int past_generations = 0;         // N
  absl::Duration refresh_period;    // t
  int64_t bits_per_generation = 0;  // m
  int bits_set_per_id = 0;          // k, in one generation

  double ids = 0;          // unique events in the horizon
  double bits_per_id = 0;  // filter_bytes in bits, for each of them
  double false_drops_per_day = 0;

  // An exact set of 64-bit hashes for the same ids.
  int64_t exact_bytes = 0;
  double exact_bits_per_id = 0;

  // For each id, where the engine epoch_table (fingerprints with epochs) holds the target in fewer bits.
  std::optional<double> epoch_table_bits_per_id = std::nullopt;
};

// InvalidArgument if not exactly three values are given, if one of them is out of its range, or if they
// cannot be met together; it says what is wrong and the nearest that can be. Takes some 50 ms at most.
absl::StatusOr<Plan> MakePlan(const PlanRequest& request);

}  // namespace lethe

#endif  // LETHE_ADAPT_PLAN_H_
