// A Grafana dashboard's model, as far as tests look at it.
#ifndef LETHE_TESTS_SUPPORT_DASHBOARD_H_
#define LETHE_TESTS_SUPPORT_DASHBOARD_H_

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace lethe::test {

struct PanelQuery {
  std::string id;  // refId
  std::string expression;
  std::string legend;
  std::string datasource;
  bool instant = false;
};

// What an override says of the series of one name, or of those that a /regular expression/ finds.
struct SeriesStyle {
  std::string unit;  // empty: the panel's
  std::string color;
  bool right_axis = false;
  bool dashed = false;
};

struct Panel {
  int id = 0;
  std::string type;
  std::string title;
  std::string description;
  std::string datasource;
  int x = 0, y = 0, w = 0, h = 0;
  std::string unit;
  std::vector<PanelQuery> queries;
  std::vector<std::pair<double, std::string>> thresholds;  // from a value on, this colour
  std::vector<std::string> links;                          // their addresses
  std::map<std::string, SeriesStyle> styles;
  std::map<std::string, std::string> value_texts;  // shown instead of a value
  bool logarithmic = false;
  bool stacked = false;
  bool bars = false;
  bool from_zero = false;
  double maximum = std::numeric_limits<double>::infinity();  // of its axis
  int folded = 0;                                            // panels of a collapsed row
  bool is_folded = false;                                    // in a collapsed row
};

struct Annotation {
  std::string name;
  std::string expression;
  std::string color;
};

struct DashboardVariable {
  std::string name;
  std::string definition;  // label_values(SELECTOR, LABEL); empty if it is no query
};

struct Dashboard {
  std::string uid;
  std::string title;
  std::string description;
  std::vector<DashboardVariable> variables;
  std::vector<Annotation> annotations;
  std::vector<std::string> links;
  std::vector<Panel> panels;  // with its rows, of type "row", and those in them
};

// Throws simdjson's errors where the model is not what Grafana expects.
Dashboard ReadDashboard(const std::string& path);

// The expression with its variables replaced, longer names first.
std::string Filled(std::string expression, const std::map<std::string, std::string>& variables);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_DASHBOARD_H_
