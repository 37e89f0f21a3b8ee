// `lethe plan`: the memory that a stream needs, or what fits in a memory limit.
//
//   lethe plan --rate 20000 --horizon 24h --fpp 1e-6
#ifndef LETHE_SRC_CLI_COMMANDS_PLAN_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_PLAN_COMMAND_H_

#include <ostream>

#include "absl/status/status.h"
#include "src/cli/config/setting.h"
#include "src/engines/plan.h"

namespace lethe {

struct PlanCommandOptions {
  PlanRequest request;
  ReportFormat format = ReportFormat::kText;
};

// Writes the plan to `out`. The error is MakePlan's.
absl::Status RunPlan(const PlanCommandOptions& options, std::ostream& out);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_PLAN_COMMAND_H_
