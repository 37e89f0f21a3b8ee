#include "tests/support/dashboard_answers.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/process.h"

namespace lethe::test {
namespace {

std::string Legend(const PanelQuery& query, const Series& series) {
  std::string name = query.legend;
  for (const auto& [label, value] : series.labels) {
    name = absl::StrReplaceAll(name, {{absl::StrCat("{{", label, "}}"), value}});
  }
  return name;
}

absl::Status RunTool(const std::vector<std::string>& args) {
  ProcessOptions program;
  program.args = args;
  const auto done = RunToEnd(program, absl::Minutes(1));
  if (!done.ok()) {
    return absl::Status(
        done.status().code(),
        absl::StrCat(done.status().message(), "; Debian's packages are librsvg2-bin, pngquant and python3"));
  }
  if (done->exit_code != 0) return absl::InternalError(absl::StrCat(args[0], ": ", done->err));
  return absl::OkStatus();
}

}  // namespace

DashboardView DashboardView::Of(const Prometheus& prometheus, absl::Time from, absl::Time to,
                                std::map<std::string, std::string> chosen) {
  chosen["job"] = "lethe";
  chosen["__rate_interval"] = "5s";
  chosen["__range"] = absl::StrCat(absl::ToInt64Seconds(to - from), "s");
  return {prometheus, from, to, std::move(chosen)};
}

absl::StatusOr<std::vector<Series>> AskQuery(const DashboardView& view, const PanelQuery& query) {
  const std::string expression = Filled(query.expression, view.variables);
  return query.instant ? view.prometheus.Query(expression, view.to)
                       : view.prometheus.QueryRange(expression, view.from, view.to);
}

absl::StatusOr<std::vector<NamedSeries>> AskPanel(const DashboardView& view, const Panel& panel) {
  std::vector<NamedSeries> all;
  for (const PanelQuery& query : panel.queries) {
    auto answer = AskQuery(view, query);
    if (!answer.ok()) return answer.status();
    for (Series& series : *answer) {
      std::string name = Legend(query, series);
      all.push_back({std::move(name), std::move(series)});
    }
  }
  return all;
}

absl::StatusOr<std::vector<double>> AskAnnotation(const DashboardView& view, const Annotation& annotation) {
  const auto series =
      view.prometheus.QueryRange(Filled(annotation.expression, view.variables), view.from, view.to);
  if (!series.ok()) return series.status();
  std::vector<double> steps;
  for (const Series& one : *series) {
    double before = 0;
    for (const auto& [time, value] : one.points) {
      if (time - before > 1.5) steps.push_back(time);
      before = time;
    }
  }
  return steps;
}

absl::StatusOr<DashboardAnswers> AskDashboard(const DashboardView& view, const Dashboard& dashboard) {
  DashboardAnswers answers;
  answers.from = absl::ToDoubleSeconds(view.from - absl::UnixEpoch());
  answers.to = absl::ToDoubleSeconds(view.to - absl::UnixEpoch());
  for (const Panel& panel : dashboard.panels) {
    if (panel.type == "row") continue;
    auto answer = AskPanel(view, panel);
    if (!answer.ok()) return answer.status();
    answers.panels[panel.id] = *std::move(answer);
  }
  for (const Annotation& annotation : dashboard.annotations) {
    const auto steps = AskAnnotation(view, annotation);
    if (!steps.ok()) return steps.status();
    for (const double time : *steps) answers.annotations.emplace_back(time, annotation.color);
  }
  return answers;
}

absl::Status FinishPicture(const std::string& drawn, int colors, const std::string& png_path) {
  if (absl::Status reduced =
          RunTool({"pngquant", "--force", "--speed=1", "--output=" + png_path, absl::StrCat(colors), drawn});
      !reduced.ok()) {
    return reduced;
  }
  return RunTool({"python3", "-B", LETHE_SOURCE_DIR "/tests/support/pictures.py", "write", png_path});
}

absl::Status WritePicture(const Dashboard& dashboard, const DashboardAnswers& answers,
                          const std::string& png_path) {
  const std::string svg_path = png_path + ".svg";
  std::ofstream(svg_path) << DrawDashboard(dashboard, answers);
  absl::Status drawn = RunTool({"rsvg-convert", "-o", png_path, svg_path});
  std::filesystem::remove(svg_path);
  return drawn.ok() ? FinishPicture(png_path, 64, png_path) : drawn;
}

}  // namespace lethe::test
