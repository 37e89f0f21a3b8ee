// How fast lethe's own work is on this machine, without a broker.
#ifndef LETHE_SRC_CLI_DEMO_DEMO_PACE_H_
#define LETHE_SRC_CLI_DEMO_DEMO_PACE_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace lethe {

struct DemoPace {
  double records_per_second = 0;  // of one core: processor time of this thread
  int64_t records = 0;
  int64_t ids = 0;  // in the filter
  int64_t filter_bytes = 0;
};

// Reads the id of each sending of `events` events from its JSON and judges it, in batches as the daemon does.
absl::StatusOr<DemoPace> MeasurePace(int64_t events, double target_fpp, uint64_t seed);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_DEMO_DEMO_PACE_H_
