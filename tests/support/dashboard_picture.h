// A dashboard drawn from the answers to its queries: its layout, titles and series, roughly as Grafana would.
#ifndef LETHE_TESTS_SUPPORT_DASHBOARD_PICTURE_H_
#define LETHE_TESTS_SUPPORT_DASHBOARD_PICTURE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/dashboard.h"
#include "tests/support/prometheus.h"

namespace lethe::test {

struct NamedSeries {
  std::string name;  // the legend, filled in
  Series series;
};

struct DashboardAnswers {
  double from = 0;  // Unix seconds
  double to = 0;
  std::map<int, std::vector<NamedSeries>> panels;           // by their id
  std::vector<std::pair<double, std::string>> annotations;  // when, and in which colour
};

// An SVG image.
std::string DrawDashboard(const Dashboard& dashboard, const DashboardAnswers& answers);

// A value in a unit of Grafana's.
std::string InUnit(double value, const std::string& unit);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_DASHBOARD_PICTURE_H_
