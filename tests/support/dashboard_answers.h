// The answers of a real Prometheus to a dashboard's queries.
#ifndef LETHE_TESTS_SUPPORT_DASHBOARD_ANSWERS_H_
#define LETHE_TESTS_SUPPORT_DASHBOARD_ANSWERS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/support/dashboard.h"
#include "tests/support/dashboard_picture.h"
#include "tests/support/prometheus.h"

namespace lethe::test {

// What a user has chosen in Grafana, and what Grafana adds.
struct DashboardView {
  const Prometheus& prometheus;  // outlives it
  absl::Time from;
  absl::Time to;
  std::map<std::string, std::string> variables;  // group, topic and partition: regular expressions

  // `chosen`, the job `lethe`, and rates over 5 s.
  static DashboardView Of(const Prometheus& prometheus, absl::Time from, absl::Time to,
                          std::map<std::string, std::string> chosen);
};

absl::StatusOr<std::vector<Series>> AskQuery(const DashboardView& view, const PanelQuery& query);
absl::StatusOr<std::vector<NamedSeries>> AskPanel(const DashboardView& view, const Panel& panel);
// When steps were seen first (Unix seconds); a query that looks back for some seconds shows each for as long.
absl::StatusOr<std::vector<double>> AskAnnotation(const DashboardView& view, const Annotation& annotation);
absl::StatusOr<DashboardAnswers> AskDashboard(const DashboardView& view, const Dashboard& dashboard);

// Writes a PNG file again with so many colours, by Debian's package pngquant, and with the hash of what it
// was drawn from (pictures.py).
absl::Status FinishPicture(const std::string& drawn, int colors, const std::string& png_path);

// Draws it as a PNG file, by Debian's package librsvg2-bin, and finishes it.
absl::Status WritePicture(const Dashboard& dashboard, const DashboardAnswers& answers,
                          const std::string& png_path);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_DASHBOARD_ANSWERS_H_
