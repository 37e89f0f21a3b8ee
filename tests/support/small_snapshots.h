// A snapshot of a few events: what the fuzzer begins with.
#ifndef LETHE_TESTS_SUPPORT_SMALL_SNAPSHOTS_H_
#define LETHE_TESTS_SUPPORT_SMALL_SNAPSHOTS_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"

namespace lethe {

inline const SnapshotOrigin kSmallOrigin = {.topic = "t"};

inline StageOptions SmallStage() {
  return {.horizon = absl::Seconds(10),
          .target_fpp = 1e-2,
          .memory_limit_bytes = 1 << 20,
          .audit_share = 0.1,
          .hash_seed = 7};
}

// The first quarter of the ids comes twice.
inline void JudgeSome(Partition& partition, int events, absl::Duration step) {
  for (int i = 0; i < events; ++i) {
    const absl::Time time = absl::FromUnixMillis(1'700'000'000'000) + i * step;
    partition.Judge(absl::StrCat(i % (events / 4 * 3)), time).status().IgnoreError();
  }
}

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_SMALL_SNAPSHOTS_H_
