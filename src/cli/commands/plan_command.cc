#include "src/cli/commands/plan_command.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/text/format.h"

namespace lethe {
namespace {

void WriteText(const Plan& plan, std::ostream& out) {
  out << absl::StreamFormat("rate         %.6g unique events a second\n", plan.rate)
      << absl::StreamFormat("horizon      %s, with %.4g ids in it\n", DurationText(plan.horizon), plan.ids)
      << absl::StreamFormat("target       %.3g: some %s good events dropped a day\n", plan.target_fpp,
                            plan.false_drops_per_day < 100
                                ? absl::StrFormat("%.3g", plan.false_drops_per_day)
                                : FormatCount(std::llround(plan.false_drops_per_day)))
      << absl::StreamFormat(
             "memory       %s as the limit: twice what the filters need, since a restart\n"
             "             remembers copies for longer, and an eighth for the audit;\n"
             "             scope: topic needs an eighth more\n",
             FormatBytes(plan.memory_bytes))
      << absl::StreamFormat("filter       %s, %.1f bits for each id\n", FormatBytes(plan.filter_bytes),
                            plan.bits_per_id)
      << absl::StreamFormat("             N = %d past generations, t = %s, fingerprints of %d bits\n",
                            plan.past_generations, DurationText(plan.refresh_period), plan.fingerprint_bits)
      << absl::StreamFormat("exact set    %s, some %.0f bits for each id\n", FormatBytes(plan.exact_bytes),
                            plan.exact_bits_per_id);
}

void WriteJson(const Plan& plan, std::ostream& out) {
  out << absl::StreamFormat(
      "{\"rate\":%.17g,\"horizon_ms\":%d,\"target_fpp\":%.17g,\"memory_bytes\":%d,\"filter_bytes\":%d,\"past_"
      "generations\":%d,\"refresh_period_ms\":%.17g,\"fingerprint_bits\":%d,\"ids\":%.17g,\"bits_per_id\":%."
      "17g,\"false_drops_per_day\":%.17g,\"exact_bytes\":%d,\"exact_bits_per_id\":%.17g}\n",
      plan.rate, absl::ToInt64Milliseconds(plan.horizon), plan.target_fpp, plan.memory_bytes,
      plan.filter_bytes, plan.past_generations, absl::ToDoubleMilliseconds(plan.refresh_period),
      plan.fingerprint_bits, plan.ids, plan.bits_per_id, plan.false_drops_per_day, plan.exact_bytes,
      plan.exact_bits_per_id);
}

}  // namespace

absl::Status RunPlan(const PlanCommandOptions& options, std::ostream& out) {
  const absl::StatusOr<Plan> plan = MakePlan(options.request);
  if (!plan.ok()) return plan.status();
  options.format == ReportFormat::kJson ? WriteJson(*plan, out) : WriteText(*plan, out);
  return absl::OkStatus();
}

}  // namespace lethe
