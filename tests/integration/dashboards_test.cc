// The dashboards: their models, and their queries, asked of a real Prometheus that watches lethe while the
// load rises and falls. With LETHE_WRITE=1 in the environment the pictures of dashboards/ are drawn again.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/dashboard.h"
#include "tests/support/dashboard_picture.h"
#include "tests/support/flow.h"
#include "tests/support/prometheus.h"
#include "tests/support/redis_server.h"
#include "tests/support/shared_broker.h"

namespace lethe::test {
namespace {

const std::string kFolder = LETHE_SOURCE_DIR "/dashboards";
constexpr const char* kDashboards[] = {"overview", "adaptation", "pipeline"};

Dashboard Read(const std::string& name) { return ReadDashboard(absl::StrCat(kFolder, "/", name, ".json")); }

bool Overlap(const Panel& a, const Panel& b) {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

void CheckPanel(const Panel& panel) {
  SCOPED_TRACE(panel.title);
  EXPECT_FALSE(panel.title.empty());
  EXPECT_GE(panel.x, 0);
  EXPECT_LE(panel.x + panel.w, 24);
  if (panel.type == "row") return;
  EXPECT_GT(panel.description.size(), 20u);
  EXPECT_FALSE(panel.unit.empty());
  EXPECT_FALSE(panel.thresholds.empty());
  EXPECT_EQ(panel.datasource, "${datasource}");
  ASSERT_FALSE(panel.links.empty());
  EXPECT_TRUE(absl::StrContains(panel.links[0], "/d/lethe-")) << panel.links[0];
  ASSERT_FALSE(panel.queries.empty());
  std::set<std::string> ids;
  for (const PanelQuery& query : panel.queries) {
    EXPECT_TRUE(ids.insert(query.id).second) << query.id << " is there twice";
    EXPECT_EQ(query.datasource, "${datasource}");
    EXPECT_TRUE(absl::StrContains(query.expression, "$job")) << query.expression;
  }
}

TEST(DashboardsTest, AreWhole) {
  std::set<std::string> uids;
  std::set<std::string> linked;
  for (const char* name : kDashboards) {
    SCOPED_TRACE(name);
    const Dashboard dashboard = Read(name);
    EXPECT_TRUE(uids.insert(dashboard.uid).second);
    EXPECT_FALSE(dashboard.description.empty());
    std::vector<std::string> variables;
    for (const DashboardVariable& variable : dashboard.variables) variables.push_back(variable.name);
    EXPECT_EQ(variables, (std::vector<std::string>{"datasource", "job", "group", "topic", "partition"}));
    EXPECT_EQ(dashboard.links.size(), 2u);
    linked.insert(dashboard.links.begin(), dashboard.links.end());
    std::set<int> ids;
    for (size_t i = 0; i < dashboard.panels.size(); ++i) {
      const Panel& panel = dashboard.panels[i];
      EXPECT_TRUE(ids.insert(panel.id).second) << panel.id << " is there twice";
      CheckPanel(panel);
      for (size_t j = 0; j < i; ++j) {
        EXPECT_FALSE(Overlap(panel, dashboard.panels[j])) << panel.title << ", " << dashboard.panels[j].title;
      }
    }
  }
  for (const std::string& link : linked) {
    EXPECT_TRUE(uids.contains(link.substr(3, link.find('?') - 3))) << link;
    for (const char* variable : {"job", "group", "topic", "partition"}) {
      EXPECT_TRUE(absl::StrContains(link, absl::StrCat("${", variable, ":queryparam}"))) << link;
    }
  }
}

// What watches lethe while the load rises and falls: a horizon of 8 s, so that it is over in a minute.
class WatchedFlow {
 public:
  WatchedFlow()
      : flow_(TwoPartitions()),
        redis_(RedisServer::Start().value()),
        daemon_(flow_.Start(
            {"--horizon=8s", "--fpp=1e-6", "--memory=64MiB", "--kafka=statistics.interval.ms=1000",
             absl::StrCat("--counter=name=orders,mode=total,key=json:/id,output=", UniqueName("totals"),
                          ",store=redis://127.0.0.1:", redis_->port())})),
        prometheus_(Prometheus::Start(daemon_->port(), kFolder + "/alerts.yml").value()) {}

  void Run() {
    EXPECT_TRUE(daemon_->AwaitReady());
    from_ = absl::Now();
    SendFor(absl::Seconds(12), 100);
    SendFor(absl::Seconds(14), 4000);
    SendFor(absl::Seconds(22), 100);
    EXPECT_TRUE(daemon_->Await([&] { return daemon_->Metric("lethe_lag_records") == 0; }));
    to_ = absl::Now();
  }

  const Prometheus& prometheus() const { return *prometheus_; }
  absl::Time from() const { return from_; }
  absl::Time to() const { return to_; }

  // What Grafana would put for its variables.
  std::map<std::string, std::string> variables() const {
    return {{"job", "lethe"},          {"group", flow_.group()},
            {"topic", flow_.input()},  {"partition", ".*"},
            {"__rate_interval", "5s"}, {"__range", absl::StrCat(absl::ToInt64Seconds(to_ - from_), "s")}};
  }

 private:
  static FlowOptions TwoPartitions() {
    FlowOptions options;
    options.program = LETHE_PROGRAM;
    options.partitions = 2;
    return options;
  }

  // One in ten is a copy of one of the last thousand.
  void SendFor(absl::Duration duration, int in_a_second) {
    constexpr absl::Duration kTick = absl::Milliseconds(100);
    const absl::Time end = absl::Now() + duration;
    for (absl::Time tick = absl::Now(); tick < end; tick += kTick) {
      std::vector<Record> records;
      for (int i = 0; i < in_a_second / 10; ++i, ++sent_) {
        const int id = sent_ % 10 == 9 ? sent_ - 1 - (sent_ * 7919) % std::min(sent_, 1000) / 10 * 10 : sent_;
        records.push_back(WithId(absl::StrCat("id ", id), id % 2, absl::ToUnixMillis(absl::Now())));
      }
      flow_.Send(records);
      absl::SleepFor(tick + kTick - absl::Now());  // the load is what is tested: so many in a second
    }
  }

  Flow flow_;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Prometheus> prometheus_;
  absl::Time from_;
  absl::Time to_;
  int sent_ = 0;
};

bool HasData(const std::vector<Series>& series) {
  for (const Series& one : series) {
    for (const auto& [time, value] : one.points) {
      if (std::isfinite(value)) return true;
    }
  }
  return false;
}

std::string Legend(const PanelQuery& query, const Series& series) {
  std::string name = query.legend;
  for (const auto& [label, value] : series.labels) {
    const std::string place = absl::StrCat("{{", label, "}}");
    for (size_t at = name.find(place); at != std::string::npos; at = name.find(place)) {
      name.replace(at, place.size(), value);
    }
  }
  return name;
}

// The answers to a panel's queries, each of which must have some.
std::vector<NamedSeries> Ask(const WatchedFlow& flow, const Panel& panel) {
  std::vector<NamedSeries> all;
  for (const PanelQuery& query : panel.queries) {
    const std::string expression = Filled(query.expression, flow.variables());
    EXPECT_FALSE(absl::StrContains(expression, '$')) << expression;
    auto answer = query.instant ? flow.prometheus().Query(expression, flow.to())
                                : flow.prometheus().QueryRange(expression, flow.from(), flow.to());
    if (!answer.ok()) {
      ADD_FAILURE() << panel.title << ": " << answer.status();
      continue;
    }
    EXPECT_TRUE(HasData(*answer)) << panel.title << ": " << expression;
    for (Series& series : *answer) {
      std::string name = Legend(query, series);
      all.push_back({std::move(name), std::move(series)});
    }
  }
  return all;
}

// The choices that a user has: of each variable there is at least one.
void CheckVariables(const WatchedFlow& flow, const Dashboard& dashboard) {
  constexpr absl::string_view kBegin = "label_values(";
  for (const DashboardVariable& variable : dashboard.variables) {
    if (variable.definition.empty()) continue;
    const size_t comma = variable.definition.rfind(", ");
    ASSERT_TRUE(absl::StartsWith(variable.definition, kBegin) && comma != std::string::npos) << variable.name;
    const std::string selector = variable.definition.substr(kBegin.size(), comma - kBegin.size());
    const std::string label = variable.definition.substr(comma + 2, variable.definition.size() - comma - 3);
    EXPECT_EQ(label, variable.name);
    const auto series = flow.prometheus().Query(Filled(selector, flow.variables()), flow.to());
    ASSERT_TRUE(series.ok()) << series.status();
    ASSERT_FALSE(series->empty()) << variable.definition;
    for (const Series& one : *series) EXPECT_TRUE(one.labels.contains(label)) << variable.definition;
  }
}

// When steps were seen first; a query that looks back for some seconds shows each for as long.
void AddAnnotations(const WatchedFlow& flow, const Dashboard& dashboard, DashboardAnswers* answers) {
  for (const Annotation& annotation : dashboard.annotations) {
    const std::string expression = Filled(annotation.expression, flow.variables());
    const auto series = flow.prometheus().QueryRange(expression, flow.from(), flow.to());
    ASSERT_TRUE(series.ok()) << series.status();
    // At a limit that is not reached there is nothing to see.
    EXPECT_EQ(HasData(*series), !absl::StrContains(annotation.name, "limit")) << annotation.name;
    for (const Series& one : *series) {
      double before = 0;
      for (const auto& [time, value] : one.points) {
        if (time - before > 1.5) answers->annotations.emplace_back(time, annotation.color);
        before = time;
      }
    }
  }
}

void Draw(const std::string& name, const Dashboard& dashboard, const DashboardAnswers& answers) {
  const std::string svg_path = absl::StrCat(testing::TempDir(), name, ".svg");
  const std::string png_path =
      absl::StrCat(std::getenv("LETHE_WRITE") != nullptr ? kFolder + "/" : testing::TempDir(), name, ".png");
  const std::string svg = DrawDashboard(dashboard, answers);
  EXPECT_FALSE(absl::StrContains(svg, "no data")) << name;
  std::ofstream(svg_path) << svg;
  for (const std::vector<std::string>& args : {
           std::vector<std::string>{"rsvg-convert", "-o", png_path, svg_path},
           std::vector<std::string>{"pngquant", "--force", "--speed=1", "--output=" + png_path, "64",
                                    png_path},
       }) {
    ProcessOptions program;
    program.args = args;
    const auto done = test::RunToEnd(program, absl::Minutes(1));
    ASSERT_TRUE(done.ok()) << done.status() << "; Debian's packages are librsvg2-bin and pngquant";
    EXPECT_EQ(done->exit_code, 0) << done->err;
  }
  EXPECT_LT(std::filesystem::file_size(png_path), 150'000u);
  std::filesystem::remove(svg_path);
}

// The highest and the lowest of a query's values.
std::pair<double, double> Extremes(const WatchedFlow& flow, const std::string& expression) {
  std::pair<double, double> extremes = {INFINITY, -INFINITY};
  const auto answer =
      flow.prometheus().QueryRange(Filled(expression, flow.variables()), flow.from(), flow.to());
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) return extremes;
  for (const Series& series : *answer) {
    for (const auto& [time, value] : series.points) {
      extremes = {std::min(extremes.first, value), std::max(extremes.second, value)};
    }
  }
  return extremes;
}

// Prometheus has evaluated every rule of alerts.yml, and what is to be recorded is there.
testing::AssertionResult RulesAreSound(const WatchedFlow& flow) {
  const auto answer = flow.prometheus().Get("/api/v1/rules");
  if (!answer.ok()) return testing::AssertionFailure() << answer.status();
  simdjson::dom::parser parser;
  int recorded = 0;
  for (const simdjson::dom::element group : parser.parse(*answer)["data"]["groups"].get_array()) {
    for (const simdjson::dom::element rule : group["rules"].get_array()) {
      const std::string name(rule["name"].get_string().value());
      if (rule["health"].get_string().value() != "ok") return testing::AssertionFailure() << name;
      if (rule["type"].get_string().value() != "recording") continue;
      const auto series = flow.prometheus().QueryRange(name, flow.from(), flow.to());
      if (!series.ok() || !HasData(*series)) return testing::AssertionFailure() << name << " has no data";
      ++recorded;
    }
  }
  return recorded > 0 ? testing::AssertionSuccess() : testing::AssertionFailure() << "there are no rules";
}

TEST(DashboardsTest, EveryQueryHasAnAnswerAndAdaptationIsVisible) {
  WatchedFlow flow;
  flow.Run();
  for (const char* name : kDashboards) {
    SCOPED_TRACE(name);
    const Dashboard dashboard = Read(name);
    DashboardAnswers answers;
    answers.from = absl::ToDoubleSeconds(flow.from() - absl::UnixEpoch());
    answers.to = absl::ToDoubleSeconds(flow.to() - absl::UnixEpoch());
    for (const Panel& panel : dashboard.panels) {
      if (panel.type != "row") answers.panels[panel.id] = Ask(flow, panel);
    }
    CheckVariables(flow, dashboard);
    AddAnnotations(flow, dashboard, &answers);
    Draw(name, dashboard, answers);
  }
  // More load made the filters larger; less load made them smaller again.
  const auto lines = Extremes(flow, "max(lethe_filter_lines{group=\"$group\"}) > 0");
  EXPECT_LT(2 * lines.first, lines.second);
  const auto generations = Extremes(flow, "max(lethe_filter_past_generations{group=\"$group\"})");
  EXPECT_LT(generations.first, generations.second);
  for (const char* kind : {"refresh", "unfold", "fold"}) {
    const std::string steps =
        absl::StrCat("sum(lethe_adaptation_steps_total{group=\"$group\",kind=\"", kind, "\"})");
    EXPECT_GT(Extremes(flow, steps).second, 0) << kind;
  }
  // And what is promised was kept all the time.
  const auto fpp = Extremes(flow, "max(lethe_filter_fpp_modelled_ratio / lethe_filter_fpp_target_ratio)");
  EXPECT_LE(fpp.second, 1);
  const auto window = Extremes(flow,
                               "min(lethe_filter_window_seconds) >= 0 and "
                               "min(lethe_filter_past_generations offset 10s) > 0");
  EXPECT_GE(window.first, 8);
  EXPECT_TRUE(RulesAreSound(flow));
}

}  // namespace
}  // namespace lethe::test
