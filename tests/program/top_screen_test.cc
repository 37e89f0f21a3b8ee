#include "src/cli/terminal/top_screen.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lethe/filter.h"
#include "src/cli/service/status_json.h"

namespace lethe {
namespace {

DaemonReport Report(int partitions, int64_t unique) {
  DaemonReport report;
  report.input = "orders";
  report.output = "orders-unique";
  report.group = "lethe";
  report.horizon = absl::Hours(24);
  report.fpp_target = 1e-6;
  report.lanes.resize(1);
  for (int i = 0; i < partitions; ++i) {
    PartitionReport partition;
    partition.partition = i;
    partition.phase = Phase::kActive;
    partition.counts.unique = unique;
    partition.counts.duplicate = unique / 10;
    partition.filter.filter.fpp_target = 1e-6;
    partition.filter.filter.fpp_estimated = 5e-7;
    partition.filter.filter.fpp_estimated_deviation = 4e-9;
    partition.filter.filter.past_generations = 14;
    partition.filter.filter.window = absl::InfiniteDuration();
    report.lanes[0].partitions.push_back(partition);
  }
  return report;
}

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

TEST(TopScreen, RatesAreThoseSinceTheLastAnswer) {
  TopScreen screen;
  const auto first = screen.Draw(StatusJson(Report(2, 1000), std::nullopt), kNow, {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(absl::StrContains(*first, "- unique/s, - duplicates/s")) << *first;
  EXPECT_TRUE(absl::StrContains(*first, "orders -> orders-unique")) << *first;
  EXPECT_TRUE(absl::StrContains(*first, " 5.0e-07 ")) << *first;
  const auto second = screen.Draw(StatusJson(Report(2, 1500), std::nullopt), kNow + absl::Seconds(2), {});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(absl::StrContains(*second, "500 unique/s, 50 duplicates/s")) << *second;
  EXPECT_FALSE(absl::StrContains(*second, "suspects")) << *second;
  // After a restart: no rate, rather than a negative one.
  const auto third = screen.Draw(StatusJson(Report(2, 10), std::nullopt), kNow + absl::Seconds(3), {});
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_TRUE(absl::StrContains(*third, "- unique/s")) << *third;
}

TEST(TopScreen, TellsOfSuspects) {
  DaemonReport report = Report(2, 1000);
  report.lanes[0].partitions[0].counts.suspect = 4;
  report.lanes[0].partitions[1].counts.suspect = 3;
  TopScreen screen;
  const auto text = screen.Draw(StatusJson(report, std::nullopt), kNow, {});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(absl::StrContains(*text, "duplicates/s, 7 suspects so far; filters")) << *text;
}

// Figures that are as long as they get.
TEST(TopScreen, NoColumnIsCutAt80AndTheBarsComeWithMore) {
  DaemonReport report = Report(1, 9'999'000);
  PartitionReport& partition = report.lanes[0].partitions[0];
  partition.partition = 9999;
  partition.phase = Phase::kRestoring;
  partition.high_watermark = 99'990'000;
  partition.filter.filter.refresh_period = absl::Seconds(7199.4);
  partition.filter.filter.window = absl::Hours(24) * 365 * 2;
  partition.filter.filter.ids = 99'990'000;
  partition.filter.filter.memory_bytes = (int64_t{1} << 30) - 1;
  report.memory_used_bytes = report.memory_limit_bytes = (int64_t{1} << 30) - 1;
  for (const int width : {80, 90, 120}) {
    TopScreen screen;
    ASSERT_TRUE(screen.Draw(StatusJson(Report(1, 0), std::nullopt), kNow, {}).ok());
    const auto text = screen.Draw(StatusJson(report, std::nullopt), kNow, {.width = width});
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_TRUE(absl::StrContains(*text, "MEMORY\n")) << *text;
    EXPECT_TRUE(absl::StrContains(*text, "1024M\n")) << *text;
    EXPECT_TRUE(absl::StrContains(*text, "horizon 24.0h, target 1.0e-06\n")) << *text;
    EXPECT_EQ(absl::StrContains(*text, "[#####.....]"), width >= 90) << *text;
    const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
    EXPECT_EQ(lines[lines.size() - 3].size(), lines[lines.size() - 2].size()) << "columns in line\n" << *text;
  }
}

TEST(TopScreen, FitsTheTerminal) {
  DaemonReport report = Report(100, 1000);
  report.group = std::string(200, 'g');
  report.not_ready = std::vector<std::string>(20, "a reason that is longer than the terminal is wide");
  TopScreen screen;
  const auto text = screen.Draw(StatusJson(report, std::nullopt), kNow, {.width = 40, .height = 20});
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  EXPECT_EQ(lines.size(), 20 + 1);  // nothing behind the last newline
  for (const std::string& line : lines) EXPECT_LE(line.size(), 40) << line;
  EXPECT_TRUE(absl::StrContains(lines[19], " partitions")) << lines[19];
}

// The numbers of the partitions that a screen shows, in their order.
std::vector<std::string> Shown(const std::string& screen) {
  std::vector<std::string> shown;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(screen, '\n'))) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() > 5 && words[1] == "active") shown.push_back(words[0]);
  }
  return shown;
}

TEST(TopScreen, ScrollsThroughAllPartitions) {
  const TopScreenOptions options = {.width = 80, .height = 20, .has_keys = true};
  TopScreen screen;
  const auto top = screen.Draw(StatusJson(Report(60, 1), std::nullopt), kNow, options);
  ASSERT_TRUE(top.ok()) << top.status();
  const size_t rows = Shown(*top).size();
  EXPECT_GT(rows, 10u);
  EXPECT_EQ(Shown(*top).front(), "0");
  EXPECT_TRUE(absl::StrContains(*top, absl::StrCat("1 to ", rows, " of 60 partitions"))) << *top;
  screen.Scroll(1);
  EXPECT_EQ(Shown(*screen.Redraw(options)).front(), "1");
  screen.Scroll(1000);
  EXPECT_EQ(Shown(*screen.Redraw(options)).back(), "59");
  EXPECT_EQ(Shown(*screen.Redraw(options)).size(), rows);
  screen.Scroll(-1);
  EXPECT_EQ(Shown(*screen.Redraw(options)).back(), "58");
  screen.Scroll(-1000);
  EXPECT_EQ(Shown(*screen.Redraw(options)).front(), "0");
}

TEST(TopScreen, SortsByTheLargestFigure) {
  DaemonReport report = Report(3, 1000);
  report.lanes[0].partitions[1].high_watermark = 50;
  report.lanes[0].partitions[2].filter.filter.fpp_estimated = 9e-7;
  TopScreen screen;
  ASSERT_TRUE(screen.Draw(StatusJson(report, std::nullopt), kNow, {}).ok());
  report.lanes[0].partitions[2].counts.unique += 5;
  ASSERT_TRUE(screen.Draw(StatusJson(report, std::nullopt), kNow + absl::Seconds(1), {}).ok());
  const std::vector<std::string> firsts = {"0", "1", "2",
                                           "0", "2", "0"};  // the partition, lag, unique/s, ...
  for (const std::string& first : firsts) {
    EXPECT_EQ(Shown(*screen.Redraw({})).front(), first);
    screen.SortByNext();
  }
}

TEST(TopScreen, TheTotalsAreThoseOfAllPartitions) {
  DaemonReport report = Report(3, 1000);
  for (PartitionReport& partition : report.lanes[0].partitions) partition.high_watermark = 50;
  report.lanes[0].partitions[1].phase = Phase::kRestoring;
  TopScreen screen;
  ASSERT_TRUE(screen.Draw(StatusJson(report, std::nullopt), kNow, {}).ok());
  for (PartitionReport& partition : report.lanes[0].partitions) partition.counts.unique += 10;
  const auto text = screen.Draw(StatusJson(report, std::nullopt), kNow + absl::Seconds(1), {});
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string line = text->substr(text->find("\n all ") + 1);
  const std::vector<std::string> words =
      absl::StrSplit(line.substr(0, line.find('\n')), ' ', absl::SkipEmpty());
  EXPECT_EQ(std::vector<std::string>(words.begin(), words.begin() + 6),
            (std::vector<std::string>{"all", "2/3", "30", "0", "150", "5.0e-07"}));
}

TEST(TopScreen, ControlsOfTheTerminalStayOut) {
  DaemonReport report = Report(1, 1);
  report.not_ready = {"\033[2Jgone \u009b2J"};
  const auto text = TopScreen().Draw(StatusJson(report, std::nullopt), kNow, {});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_FALSE(absl::StrContains(*text, "\033")) << *text;
  EXPECT_FALSE(absl::StrContains(*text, "\u009b")) << *text;
  EXPECT_TRUE(absl::StrContains(*text, "?[2Jgone ?2J")) << *text;
  const auto colored = TopScreen().Draw(StatusJson(report, std::nullopt), kNow, {.colors = true});
  ASSERT_TRUE(colored.ok()) << colored.status();
  EXPECT_TRUE(absl::StrContains(*colored, "\033[32mactive")) << *colored;
}

TEST(TopScreen, AnythingButAStatusIsAnError) {
  for (const std::string text : {"", "no JSON", "[]", "{}", "{\"partitions\":[{}]}", "{\"partitions\":7}"}) {
    const auto drawn = TopScreen().Draw(text, kNow, {});
    EXPECT_EQ(drawn.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(StatusJson, HoldsGenerationsAndStepsOfThePartitionThatWasAskedFor) {
  DaemonReport report = Report(2, 1);
  report.lanes[0].partitions[1].problem = "bad \xff bytes";
  for (PartitionReport& partition : report.lanes[0].partitions) {
    partition.filter.filter.generations.resize(3);
    partition.filter.filter.steps.push_back({AdaptationStep::Kind::kUnfold, kNoStreamTime, 64, "because"});
  }
  const std::string plain = StatusJson(report, std::nullopt);
  EXPECT_FALSE(absl::StrContains(plain, "generations\":[")) << plain;
  const std::string detailed = StatusJson(report, StatusDetail{.partition = 1});
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(detailed, "\"generations\":[")).size(), 2) << detailed;
  EXPECT_TRUE(absl::StrContains(
      detailed, "{\"kind\":\"unfold\",\"reason\":\"because\",\"stream_time\":null,\"generation_bits\":64}"))
      << detailed;
  EXPECT_TRUE(absl::StrContains(detailed, "bad \xef\xbf\xbd bytes")) << detailed;
  EXPECT_TRUE(absl::StrContains(detailed, "\"fpp_estimated\":5e-07,\"fpp_estimated_deviation\":4e-09"))
      << detailed;
}

TEST(StatusJson, HoldsTheHistoryThatWasAskedFor) {
  StatusHistory history;
  for (int i = 0; i < 3; ++i) history.Add(Report(2, 100 * i), kNow + i * StatusHistory::kEvery);
  StatusDetail detail = {.partition = 1};
  EXPECT_FALSE(absl::StrContains(StatusJson(Report(2, 1), detail), "\"history\""));
  detail.history = history.Of(1);
  detail.now = kNow + 3 * StatusHistory::kEvery;
  const std::string text = StatusJson(Report(2, 1), detail);
  EXPECT_TRUE(absl::StrContains(
      text, R"("history":{"seconds_ago":[15.0,10.0,5.0],"unique":[0,100,200],"duplicate":[0,10,20],)"
            R"("fpp_estimated":[5e-07,5e-07,5e-07],"past_generations":[14,14,14],)"
            R"("refresh_period_seconds":[0.0,0.0,0.0]})"))
      << text;
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(text, "\"history\"")).size(), 2) << "of one partition";
}

TEST(StatusHistory, IsBoundedAndForgetsAbsentPartitions) {
  StatusHistory history;
  for (size_t i = 0; i < 2 * StatusHistory::kSamples; ++i) {
    history.Add(Report(2, static_cast<int64_t>(i)), kNow + static_cast<int64_t>(i) * StatusHistory::kEvery);
  }
  const std::vector<StatusSample> kept = history.Of(1);
  ASSERT_EQ(kept.size(), StatusHistory::kSamples);
  EXPECT_EQ(kept.back().unique, 2 * StatusHistory::kSamples - 1);
  EXPECT_EQ(kept.front().unique, StatusHistory::kSamples);
  history.Add(Report(1, 0), kNow);
  EXPECT_TRUE(history.Of(1).empty());
  EXPECT_EQ(history.Of(0).size(), StatusHistory::kSamples);
  history.Add(Report(StatusHistory::kMostPartitions + 10, 0), kNow);
  EXPECT_EQ(history.Of(StatusHistory::kMostPartitions - 1).size(), 1u);
  EXPECT_TRUE(history.Of(StatusHistory::kMostPartitions).empty());
}

TEST(StatusJson, HoldsTheFirstStageIfThereIsOne) {
  DaemonReport report = Report(1, 1);
  EXPECT_FALSE(absl::StrContains(StatusJson(report, std::nullopt), "routing"));
  report.lanes[0].partitions[0].counts.tagged = 5;
  report.routing_input = "web-orders";
  report.routing_lanes.resize(1);
  report.routing_lanes[0].partitions.resize(1);
  report.routing_lanes[0].partitions[0].counts.unique = 7;
  const std::string text = StatusJson(report, std::nullopt);
  EXPECT_TRUE(absl::StrContains(text, R"("routing_input":"web-orders")")) << text;
  EXPECT_TRUE(absl::StrContains(text, R"("routed_records":7,"undeliverable_records":0)")) << text;
  EXPECT_TRUE(absl::StrContains(text, R"("tagged":5)")) << text;
  const auto screen = TopScreen().Draw(text, kNow, {});
  ASSERT_TRUE(screen.ok()) << screen.status();
  EXPECT_TRUE(absl::StrContains(*screen, "web-orders -> orders-unique")) << *screen;
}

}  // namespace
}  // namespace lethe
