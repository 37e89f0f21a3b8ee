// Whether memory is enough.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_MEMORY_RULES_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_MEMORY_RULES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/finding.h"

namespace lethe {

inline constexpr char kMemoryCheck[] = "memory";

// For the records a second of one input, which are not known yet if its log is young; nullopt: its engine has
// no plan.
std::optional<Finding> ApplyMemoryRule(const DaemonOptions& options, const std::string& input, double rate,
                                       bool is_young);

// What topics need together of the memory of their process.
struct MemoryNeed {
  int64_t topics = 0;
  int64_t partitions = 0;
  int64_t least_bytes = 0;    // for the smallest filters
  double rate = 0;            // records a second
  int64_t planned_bytes = 0;  // for `rate`, where it can be planned

  void Add(const DaemonOptions& topic, int32_t its_partitions, double its_rate);
};
Finding ApplyMemoryRule(const MemoryNeed& need, int64_t limit_bytes);

// The limit that `lethe plan` proposes for the rate; 0: the rate is too low to tell, or the engine has no
// plan.
absl::StatusOr<int64_t> PlannedMemory(const DaemonOptions& options, double rate);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_MEMORY_RULES_H_
