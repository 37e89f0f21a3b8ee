#include "src/cli/metrics/metrics_page.h"

#include "absl/strings/str_cat.h"
#include "src/cli/metrics/metrics.h"

namespace lethe {
namespace {

const char* TypeName(prometheus::MetricType type) {
  return type == kCounter ? "counter" : type == kHistogram ? "histogram" : "gauge";
}

const char* FoldName(Fold fold) {
  switch (fold) {
    case Fold::kNone:
      return "";
    case Fold::kSum:
      return "the sum";
    case Fold::kMax:
      return "the highest";
    case Fold::kMin:
      return "the lowest";
    case Fold::kOneAudit:
      return "as one audit";
    case Fold::kLeftOut:
      return "left out";
  }
  return "";
}

}  // namespace

std::string MetricsPage() {
  std::string page =
      "The metrics of lethe: type and unit, labels, meaning, and what to do when one looks wrong.\n";
  for (const MetricDefinition& metric : MetricDefinitions()) {
    absl::StrAppend(&page, "\n", metric.name, "\n  ", TypeName(metric.type), "; unit: ", metric.unit);
    if (*metric.labels != '\0') absl::StrAppend(&page, "; labels: ", metric.labels);
    if (metric.fold != Fold::kNone) absl::StrAppend(&page, "; with metrics: topic: ", FoldName(metric.fold));
    absl::StrAppend(&page, "\n  ", metric.meaning, "\n  ", metric.remedy, "\n");
  }
  return page;
}

}  // namespace lethe
