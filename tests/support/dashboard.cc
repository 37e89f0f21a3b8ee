#include "tests/support/dashboard.h"

#include <simdjson.h>

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace lethe::test {
namespace {

using simdjson::dom::element;

std::string Text(const element& parent, const char* key) {
  std::string_view text;
  return parent[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

int Whole(const element& parent, const char* key) {
  return static_cast<int>(parent[key].get_int64().value());
}

template <typename Use>
void ForEach(simdjson::simdjson_result<element> list, const Use& use) {
  simdjson::dom::array array;
  if (list.get(array) != simdjson::SUCCESS) return;
  for (const element entry : array) use(entry);
}

std::string DatasourceOf(const element& parent) {
  std::string_view uid;
  return parent["datasource"]["uid"].get(uid) == simdjson::SUCCESS ? std::string(uid) : std::string();
}

void ReadDefaults(const element& defaults, Panel* panel) {
  panel->unit = Text(defaults, "unit");
  ForEach(defaults["thresholds"]["steps"], [&](const element& step) {
    double from = -std::numeric_limits<double>::infinity();
    if (step["value"].get(from) != simdjson::SUCCESS) from = -std::numeric_limits<double>::infinity();
    panel->thresholds.emplace_back(from, Text(step, "color"));
  });
  ForEach(defaults["links"], [&](const element& link) { panel->links.push_back(Text(link, "url")); });
  ForEach(defaults["mappings"], [&](const element& mapping) {
    for (const auto option : mapping["options"].get_object()) {
      panel->value_texts[std::string(option.key)] = Text(option.value, "text");
    }
  });
  double low = 0;
  panel->from_zero = defaults["min"].get(low) == simdjson::SUCCESS && low == 0;
  double high = 0;
  if (defaults["max"].get(high) == simdjson::SUCCESS) panel->maximum = high;
  element custom;
  if (defaults["custom"].get(custom) != simdjson::SUCCESS) return;
  element scale;
  panel->logarithmic =
      custom["scaleDistribution"].get(scale) == simdjson::SUCCESS && Text(scale, "type") == "log";
  element stacking;
  panel->stacked =
      custom["stacking"].get(stacking) == simdjson::SUCCESS && Text(stacking, "mode") == "normal";
  panel->bars = Text(custom, "drawStyle") == "bars";
}

void ReadOverride(const element& override, Panel* panel) {
  SeriesStyle& style = panel->styles[Text(override["matcher"], "options")];
  ForEach(override["properties"], [&](const element& property) {
    const std::string id = Text(property, "id");
    if (id == "unit") style.unit = Text(property, "value");
    if (id == "color") style.color = Text(property["value"], "fixedColor");
    if (id == "custom.axisPlacement") style.right_axis = Text(property, "value") == "right";
    if (id == "custom.lineStyle") style.dashed = Text(property["value"], "fill") == "dash";
  });
}

Panel ReadPanel(const element& model) {
  Panel panel;
  panel.id = Whole(model, "id");
  panel.type = Text(model, "type");
  panel.title = Text(model, "title");
  panel.description = Text(model, "description");
  panel.datasource = DatasourceOf(model);
  const element position = model["gridPos"];
  panel.x = Whole(position, "x");
  panel.y = Whole(position, "y");
  panel.w = Whole(position, "w");
  panel.h = Whole(position, "h");
  if (panel.type == "row") return panel;
  ForEach(model["targets"], [&](const element& target) {
    PanelQuery query = {Text(target, "refId"), Text(target, "expr"), Text(target, "legendFormat"),
                        DatasourceOf(target)};
    bool instant = false;
    query.instant = target["instant"].get(instant) == simdjson::SUCCESS && instant;
    panel.queries.push_back(std::move(query));
  });
  ReadDefaults(model["fieldConfig"]["defaults"], &panel);
  ForEach(model["fieldConfig"]["overrides"],
          [&](const element& override) { ReadOverride(override, &panel); });
  return panel;
}

}  // namespace

Dashboard ReadDashboard(const std::string& path) {
  simdjson::dom::parser parser;
  const element root = parser.load(path);
  Dashboard dashboard;
  dashboard.uid = Text(root, "uid");
  dashboard.title = Text(root, "title");
  dashboard.description = Text(root, "description");
  ForEach(root["templating"]["list"], [&](const element& variable) {
    dashboard.variables.push_back({Text(variable, "name"), Text(variable, "definition")});
  });
  ForEach(root["annotations"]["list"], [&](const element& annotation) {
    dashboard.annotations.push_back(
        {Text(annotation, "name"), Text(annotation, "expr"), Text(annotation, "iconColor")});
  });
  ForEach(root["links"], [&](const element& link) { dashboard.links.push_back(Text(link, "url")); });
  ForEach(root["panels"], [&](const element& panel) {
    dashboard.panels.push_back(ReadPanel(panel));
    const size_t row = dashboard.panels.size() - 1;
    ForEach(panel["panels"], [&](const element& folded) {
      dashboard.panels.push_back(ReadPanel(folded));
      dashboard.panels.back().is_folded = true;
      ++dashboard.panels[row].folded;
    });
  });
  return dashboard;
}

std::string Filled(std::string expression, const std::map<std::string, std::string>& variables) {
  std::vector<std::pair<std::string, std::string>> replacements;
  for (const auto& [name, value] : variables) replacements.emplace_back(absl::StrCat("$", name), value);
  return absl::StrReplaceAll(expression, replacements);  // prefers longer names by itself
}

}  // namespace lethe::test
