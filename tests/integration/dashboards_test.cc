// The dashboards: their models, and their queries, asked of a real Prometheus that watches lethe while the
// load rises and falls. With LETHE_WRITE=1 in the environment the pictures of dashboards/ are drawn again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "tests/support/dashboard.h"
#include "tests/support/dashboard_answers.h"
#include "tests/support/dashboard_picture.h"
#include "tests/support/flow.h"
#include "tests/support/prometheus.h"
#include "tests/support/redis_server.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

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
  EXPECT_THAT(panel.links[0], HasSubstr("/d/lethe-"));
  ASSERT_FALSE(panel.queries.empty());
  std::set<std::string> ids;
  for (const PanelQuery& query : panel.queries) {
    EXPECT_TRUE(ids.insert(query.id).second) << query.id << " is there twice";
    EXPECT_EQ(query.datasource, "${datasource}");
    // The metrics of `lethe verify` come by another job, such as node_exporter's.
    const bool is_of_verify = absl::StrContains(query.expression, "lethe_verify_");
    EXPECT_THAT(query.expression, HasSubstr(is_of_verify ? "$topic" : "$job"));
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
      EXPECT_THAT(link, HasSubstr(absl::StrCat("${", variable, ":queryparam}")));
    }
  }
}

// A day in a minute, with a horizon of 6 s: a night, a load that rises and falls, and a night in which a
// filter that followed it has come back. The engines compact and published judge the same records.
class WatchedDay {
 public:
  WatchedDay()
      : flow_(TwoPartitions()),
        redis_(RedisServer::Start().value()),
        compact_(flow_.Start(
            kFilter + Args{"--kafka=statistics.interval.ms=1000",
                           absl::StrCat("--counter=name=orders,mode=total,key=json:/id,output=",
                                        UniqueName("totals"), ",store=redis://127.0.0.1:", redis_->port()),
                           "--schema-registry=http://127.0.0.1:1"})),  // for its metrics
        published_(StartPublished()),
        prometheus_(
            Prometheus::Start({compact_->port(), published_->port()}, kFolder + "/alerts.yml").value()) {}

  void Run() {
    EXPECT_TRUE(compact_->AwaitReady());
    EXPECT_TRUE(published_->AwaitReady());
    from_ = absl::Now();
    for (absl::Time tick = from_; tick < from_ + kDay; tick += kTick) {
      SendOneTick(tick - from_);
      absl::SleepFor(tick + kTick - absl::Now());  // the load is what is tested: so many in a second
    }
    for (Daemon* daemon : {compact_.get(), published_.get()}) {
      EXPECT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_lag_records") == 0; }));
    }
    to_ = absl::Now();
  }

  const Prometheus& prometheus() const { return *prometheus_; }
  absl::Time from() const { return from_; }
  absl::Time to() const { return to_; }
  std::string compact() const { return flow_.group(); }
  std::string published() const { return flow_.group() + "-published"; }

  DashboardView view(const std::string& group) const {
    return DashboardView::Of(*prometheus_, from_, to_,
                             {{"group", group}, {"topic", flow_.input()}, {"partition", ".*"}});
  }

  static constexpr absl::Duration kHorizon = absl::Seconds(6);

 private:
  static constexpr absl::Duration kDay = absl::Seconds(54);
  static constexpr absl::Duration kSunrise = absl::Seconds(7);  // the filters are filled
  static constexpr absl::Duration kSunset = absl::Seconds(35);
  static constexpr absl::Duration kTick = absl::Milliseconds(100);
  static inline const Args kFilter = {absl::StrCat("--horizon=", absl::FormatDuration(kHorizon)),
                                      "--fpp=1e-6", "--memory=4MiB"};

  static FlowOptions TwoPartitions() {
    FlowOptions options;
    options.program = LETHE_PROGRAM;
    options.partitions = 2;
    return options;
  }

  std::unique_ptr<Daemon> StartPublished() {
    const std::string output = flow_.output() + "-published";
    EXPECT_OK(SharedClient().CreateTopic(output, 2));
    return flow_.Start(kFilter + Args{"--engine=published", "--output=" + output, "--group=" + published()});
  }

  static double RecordsPerSecond(absl::Duration at) {
    constexpr double kByNight = 100;
    constexpr double kAtNoon = 4000;
    if (at < kSunrise || at > kSunset) return kByNight;
    const double sun = std::sin(M_PI * absl::FDivDuration(at - kSunrise, kSunset - kSunrise));
    return kByNight + (kAtNoon - kByNight) * sun * sun;
  }

  // One in ten is a copy of one of the last thousand.
  void SendOneTick(absl::Duration at) {
    std::vector<Record> records;
    for (int i = 0; i < RecordsPerSecond(at) * absl::ToDoubleSeconds(kTick); ++i, ++sent_) {
      const int64_t id =
          sent_ % 10 == 9 ? sent_ - 1 - (sent_ * 7919) % std::min<int64_t>(sent_, 1000) / 10 * 10 : sent_;
      records.push_back(
          WithId(absl::StrCat("id ", id), static_cast<int32_t>(id % 2), absl::ToUnixMillis(absl::Now())));
    }
    flow_.Send(records);
  }

  Flow flow_;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<Daemon> compact_;
  std::unique_ptr<Daemon> published_;
  std::unique_ptr<Prometheus> prometheus_;
  absl::Time from_;
  absl::Time to_;
  int64_t sent_ = 0;
};

bool HasData(const std::vector<Series>& series) {
  for (const Series& one : series) {
    for (const auto& [time, value] : one.points) {
      if (std::isfinite(value)) return true;
    }
  }
  return false;
}

// What is drawn only once enough ids were audited, which takes longer than the test, is asked for without
// that.
std::string WithoutThreshold(const std::string& expression) {
  return absl::StrReplaceAll(expression, {{">= 1000", "> 0"}});
}

// The answers to a panel's queries, each of which must have some. Of a panel that is in sight on a day like
// any other, one line at least is not flat at zero.
void CheckPanelAnswers(const DashboardView& view, const Panel& panel) {
  SCOPED_TRACE(panel.title);
  bool is_zero = true;
  for (PanelQuery query : panel.queries) {
    query.expression = WithoutThreshold(query.expression);
    EXPECT_THAT(Filled(query.expression, view.variables), Not(HasSubstr("$"))) << query.expression;
    const auto series = AskQuery(view, query);
    ASSERT_OK(series);
    EXPECT_TRUE(HasData(*series)) << query.expression;
    for (const Series& one : *series) {
      is_zero = is_zero && std::none_of(one.points.begin(), one.points.end(), [](const auto& point) {
                  return std::isfinite(point.second) && point.second != 0;
                });
    }
  }
  EXPECT_FALSE(is_zero && panel.type == "timeseries" && !panel.is_folded);
}

// The choices that a user has: of each variable there is at least one.
void CheckVariables(const DashboardView& view, const Dashboard& dashboard) {
  constexpr absl::string_view kBegin = "label_values(";
  for (const DashboardVariable& variable : dashboard.variables) {
    if (variable.definition.empty()) continue;
    const size_t comma = variable.definition.rfind(", ");
    ASSERT_TRUE(absl::StartsWith(variable.definition, kBegin) && comma != std::string::npos) << variable.name;
    const std::string selector = variable.definition.substr(kBegin.size(), comma - kBegin.size());
    const std::string label = variable.definition.substr(comma + 2, variable.definition.size() - comma - 3);
    EXPECT_EQ(label, variable.name);
    const auto series = view.prometheus.Query(Filled(selector, view.variables), view.to);
    ASSERT_OK(series);
    ASSERT_FALSE(series->empty()) << variable.definition;
    for (const Series& one : *series) EXPECT_TRUE(one.labels.contains(label)) << variable.definition;
  }
}

// At a limit that is not reached there is nothing to see.
void CheckAnnotations(const DashboardView& view, const Dashboard& dashboard) {
  for (const Annotation& annotation : dashboard.annotations) {
    const auto steps = AskAnnotation(view, annotation);
    ASSERT_OK(steps);
    EXPECT_EQ(steps->empty(), absl::StrContains(annotation.name, "limit")) << annotation.name;
  }
}

// The picture of adaptation in the README is of another day: `make demo-adapt`.
void Draw(const std::string& name, const DashboardView& view, const Dashboard& dashboard) {
  const bool writes = std::getenv("LETHE_WRITE") != nullptr && name != "adaptation";
  const std::string path = absl::StrCat(writes ? kFolder + "/" : testing::TempDir(), name, ".png");
  const auto answers = AskDashboard(view, dashboard);
  ASSERT_OK(answers);
  EXPECT_THAT(DrawDashboard(dashboard, *answers), Not(HasSubstr("no data"))) << name;
  const absl::Status drawn = WritePicture(dashboard, *answers, path);
  ASSERT_OK(drawn);
  EXPECT_LT(std::filesystem::file_size(path), 150'000u);
}

// What a query answers for a group, in order of time; the first series, if there are several.
std::vector<double> Values(const WatchedDay& day, const std::string& group, const std::string& expression,
                           absl::Time from) {
  const auto answer =
      day.prometheus().QueryRange(Filled(expression, day.view(group).variables), from, day.to());
  EXPECT_OK(answer);
  std::vector<double> values;
  if (!answer.ok() || answer->empty()) return values;
  for (const auto& [time, value] : answer->front().points) values.push_back(value);
  return values;
}

double Highest(const std::vector<double>& values) {
  return values.empty() ? -INFINITY : *std::max_element(values.begin(), values.end());
}

double Lowest(const std::vector<double>& values) {
  return values.empty() ? INFINITY : *std::min_element(values.begin(), values.end());
}

// At noon twice what it is in the evening and the morning, or more.
void RisesAndFalls(const std::vector<double>& values) {
  ASSERT_FALSE(values.empty());
  EXPECT_LE(2 * values.front(), Highest(values));
  EXPECT_LE(2 * values.back(), Highest(values));
}

// Prometheus has evaluated every rule of alerts.yml, and what is to be recorded is there.
testing::AssertionResult RulesAreSound(const WatchedDay& day) {
  const auto answer = day.prometheus().Get("/api/v1/rules");
  if (!answer.ok()) return testing::AssertionFailure() << answer.status();
  simdjson::dom::parser parser;
  int recorded = 0;
  for (const simdjson::dom::element group : parser.parse(*answer)["data"]["groups"].get_array()) {
    for (const simdjson::dom::element rule : group["rules"].get_array()) {
      const std::string name(rule["name"].get_string().value());
      if (rule["health"].get_string().value() != "ok") return testing::AssertionFailure() << name;
      if (rule["type"].get_string().value() != "recording") continue;
      const auto series = day.prometheus().QueryRange(name, day.from(), day.to());
      if (!series.ok() || !HasData(*series)) return testing::AssertionFailure() << name << " has no data";
      ++recorded;
    }
  }
  return recorded > 0 ? testing::AssertionSuccess() : testing::AssertionFailure() << "there are no rules";
}

// After the first horizon, when the filters are filled: what each engine adapts goes up and comes down again.
void CheckAdaptation(const WatchedDay& day) {
  const absl::Time filled = day.from() + WatchedDay::kHorizon;
  const auto values = [&](const std::string& group, const std::string& expression) {
    return Values(day, group, expression, filled);
  };
  for (const char* metric : {"lethe_filter_ids", "lethe_filter_lines", "lethe_filter_memory_bytes"}) {
    SCOPED_TRACE(metric);
    RisesAndFalls(values(day.compact(), absl::StrCat("sum(", metric, "{group=\"$group\"})")));
  }
  RisesAndFalls(values(day.published(), "max(lethe_filter_past_generations{group=\"$group\"})"));
  RisesAndFalls(values(day.published(), "1 / max(lethe_filter_refresh_period_seconds{group=\"$group\"})"));
  for (const auto& [group, kind] : {std::pair(day.compact(), "unfold"),
                                    {day.compact(), "fold"},
                                    {day.published(), "scale_up"},
                                    {day.published(), "scale_down"}}) {
    const std::string steps =
        absl::StrCat("sum(lethe_adaptation_steps_total{group=\"$group\",kind=\"", kind, "\"})");
    EXPECT_GT(Highest(values(group, steps)), 0) << kind;
  }
  // And what is promised was kept all the time.
  for (const std::string& group : {day.compact(), day.published()}) {
    SCOPED_TRACE(group);
    const std::string share =
        "max(lethe_filter_fpp_modelled_ratio{group=\"$group\"} / lethe_filter_fpp_target_ratio)";
    EXPECT_LE(Highest(Values(day, group, share, day.from())), 1);
    const std::string window = "min(lethe_filter_window_seconds{group=\"$group\"})";
    EXPECT_GE(Lowest(Values(day, group, window, day.from() + 4 * WatchedDay::kHorizon)),
              absl::ToDoubleSeconds(WatchedDay::kHorizon));
  }
}

TEST(DashboardsTest, EveryQueryHasAnAnswerAndAdaptationIsVisible) {
  WatchedDay day;
  day.Run();
  for (const char* name : kDashboards) {
    SCOPED_TRACE(name);
    // Both engines, where the dashboard tells them apart.
    const DashboardView view =
        day.view(name == absl::string_view("adaptation") ? absl::StrCat(day.compact(), "|", day.published())
                                                         : day.compact());
    const Dashboard dashboard = Read(name);
    for (const Panel& panel : dashboard.panels) {
      if (panel.type != "row") CheckPanelAnswers(view, panel);
    }
    CheckVariables(view, dashboard);
    CheckAnnotations(view, dashboard);
    Draw(name, view, dashboard);
  }
  CheckAdaptation(day);
  EXPECT_TRUE(RulesAreSound(day));
}

}  // namespace
}  // namespace lethe::test
