// What is to be known of a daemon that is ready all the same.
#ifndef LETHE_SRC_PIPELINE_REPORT_REMARKS_H_
#define LETHE_SRC_PIPELINE_REPORT_REMARKS_H_

#include <optional>
#include <string>
#include <vector>

#include "src/pipeline/report/report.h"

namespace lethe {

// What the memory limit does to the partition at present: its filter was kept from growing, and covers less
// than the horizon or loses more good events than the target allows. nullopt: nothing.
std::optional<std::string> MemoryRemark(const std::string& input, const PartitionReport& partition,
                                        absl::Duration horizon);

// One of each kind and lane.
std::vector<std::string> Remarks(const DaemonReport& report);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_REMARKS_H_
