#include "src/pipeline/preflight/memory_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/engines/plan.h"
#include "src/pipeline/options/stage_options.h"
#include "src/text/format.h"

namespace lethe {
namespace {

using Severity = Finding::Severity;

// Fewer records per second say nothing about the load to plan for.
constexpr double kLeastRate = 0.1;

std::string LoadText(double rate) {
  return absl::StrFormat("has %.4g records a second in the last hour, for which the plan is ", rate);
}

Finding LimitFinding(const std::string& where, double rate, int64_t planned_bytes, int64_t limit_bytes) {
  const std::string what = absl::StrCat(LoadText(rate), "a limit of ", FormatBytes(planned_bytes),
                                        "; memory is ", FormatBytes(limit_bytes));
  if (limit_bytes >= planned_bytes) return {Severity::kOk, kMemoryCheck, where, what, ""};
  return {Severity::kWarning, kMemoryCheck, where, what,
          absl::StrCat("set memory to ", BytesSetting(planned_bytes), ", or see lethe plan")};
}

}  // namespace

std::optional<Finding> ApplyMemoryRule(const DaemonOptions& options, const std::string& input, double rate,
                                       bool is_young) {
  if (options.stage.engine != Engine::kCompact) return std::nullopt;
  const std::string where = absl::StrCat("input topic ", input);
  if (rate < kLeastRate) {
    return Finding{Severity::kOk, kMemoryCheck, where,
                   is_young
                       ? "has records of a few minutes only, which tell no rate: memory is not estimated; "
                         "see lethe plan"
                       : "has too few records in the last hour to estimate memory",
                   ""};
  }
  const auto planned = PlannedMemory(options, rate);
  if (!planned.ok()) {
    return Finding{Severity::kWarning, kMemoryCheck, where,
                   absl::StrCat(LoadText(rate), "none: ", planned.status().message()), "see lethe plan"};
  }
  return LimitFinding(where, rate, *planned, options.stage.memory_limit_bytes);
}

void MemoryNeed::Add(const DaemonOptions& topic, int32_t its_partitions, double its_rate) {
  ++topics;
  partitions += its_partitions;
  if (its_partitions > 0) least_bytes += LeastMemory(topic, its_partitions);
  rate += its_rate;
  planned_bytes += PlannedMemory(topic, its_rate).value_or(0);
}

Finding ApplyMemoryRule(const MemoryNeed& need, int64_t limit_bytes) {
  const std::string where = absl::StrCat("process of ", need.topics, " topics");
  if (limit_bytes < need.least_bytes) {
    return {Severity::kWarning, kMemoryCheck, where,
            absl::StrCat("has memory ", BytesSetting(limit_bytes), ", and its ", need.partitions,
                         " partitions need at least ", BytesSetting(need.least_bytes),
                         " where one instance has all of them: partitions without memory for the smallest "
                         "filter are not read"),
            absl::StrCat("set memory to ", BytesSetting(std::max(need.least_bytes, need.planned_bytes)),
                         " or more, or run more instances")};
  }
  if (need.planned_bytes == 0) {
    return {
        Severity::kOk, kMemoryCheck, where,
        absl::StrCat("has memory ", BytesSetting(limit_bytes), ", enough for the smallest filters of its ",
                     need.partitions, " partitions; too few records come to plan for more"),
        ""};
  }
  return LimitFinding(where, need.rate, need.planned_bytes, limit_bytes);
}

absl::StatusOr<int64_t> PlannedMemory(const DaemonOptions& options, double rate) {
  if (options.stage.engine != Engine::kCompact || rate < kLeastRate) return 0;
  PlanRequest request;
  request.rate = rate;
  const bool is_routed = options.scope == Scope::kTopic;
  request.horizon = (is_routed ? JudgingOptions(options) : options).stage.horizon;
  request.target_fpp = options.stage.target_fpp;
  const auto plan = MakePlan(request);
  if (!plan.ok()) return plan.status();
  return plan->memory_bytes;
}

}  // namespace lethe
