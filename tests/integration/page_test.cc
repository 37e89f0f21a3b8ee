// The status page in a real browser, on a daemon that works: it says what /metrics says.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/support/browser.h"
#include "tests/support/flow.h"
#include "tests/support/free_port.h"
#include "tests/support/process.h"
#include "tests/support/shared_broker.h"

namespace lethe::test {
namespace {

using nlohmann::json;

constexpr int kPartitions = 3;
constexpr int kIds = 3000;  // of each partition; a third comes twice
constexpr int64_t kStart = 1'700'000'000'000;

// Records whose time runs through two horizons of an hour, so that the filter refreshes.
std::vector<Record> Records() {
  std::vector<Record> records;
  for (int32_t partition = 0; partition < kPartitions; ++partition) {
    for (int i = 0; i < kIds; ++i) {
      const Record record =
          WithId(absl::StrCat("p", partition, "-", i), partition, kStart + int64_t{i} * 7'200'000 / kIds);
      records.push_back(record);
      if (i % 3 == 0) records.push_back(record);
    }
  }
  return records;
}

// The texts of the table's row of a partition, by the names of their cells.
std::string CellsScript(int partition) {
  return absl::StrCat("const cells = {}; for (const cell of document.querySelectorAll('tr[data-partition=\"",
                      partition, "\"] td')) cells[cell.dataset.cell] = cell.textContent; return cells;");
}

double Number(const json& text) {
  double number = -1;
  EXPECT_TRUE(absl::SimpleAtod(absl::StrReplaceAll(text.get<std::string>(), {{",", ""}}), &number)) << text;
  return number;
}

// Every text that can be seen, with the contrast to what is behind it (WCAG 2.1, relative luminance).
constexpr char kContrastScript[] = R"(
  const channels = color => color.match(/[\d.]+/g).map(Number);
  const luminance = color => channels(color).slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      const parts = channels(color);
      if (parts.length < 4 || parts[3] === 1) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const low = [];
  let texts = 0;
  for (const element of document.querySelectorAll('body *')) {
    if (['SCRIPT', 'STYLE'].includes(element.tagName)) continue;
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim() !== '');
    if (!own || element.getClientRects().length === 0) continue;
    ++texts;
    const style = getComputedStyle(element);
    const front = luminance(element instanceof SVGElement ? style.fill : style.color);
    const back = luminance(behind(element));
    const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    if (contrast < 4.5) low.push(element.textContent + ': ' + contrast.toFixed(2));
  }
  return {texts, low};)";

class PageTest : public testing::Test {
 protected:
  PageTest() : flow_({.program = LETHE_PROGRAM, .partitions = kPartitions, .input = {}, .output = {}}) {}

  void SetUp() override {
    auto browser = Browser::Start();
    ASSERT_TRUE(browser.ok()) << browser.status();
    browser_ = *std::move(browser);
    const std::vector<Record> records = Records();
    flow_.Send(records);
    daemon_ = flow_.Start({"--horizon=1h", "--commit-interval=20ms"});
    ASSERT_TRUE(daemon_->Await([&] {
      return daemon_->Metric("lethe_records_total") == static_cast<double>(records.size()) &&
             daemon_->Metric("lethe_lag_records") == 0;
    }));
    ASSERT_TRUE(browser_->Resize(1280, 900).ok());
    ASSERT_TRUE(browser_->Open(Url()).ok());
    ASSERT_TRUE(
        browser_
            ->Await(absl::StrCat("document.querySelectorAll('#partitions tr').length === ", kPartitions,
                                 " && document.querySelectorAll('#steps li').length > 0"))
            .ok());
  }

  std::string Url() const { return absl::StrCat("http://127.0.0.1:", daemon_->port(), "/"); }

  Flow flow_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Browser> browser_;
};

// Of each counter its largest keys, as this instance knows them, while they change.
TEST(CountersPageTest, ShowsTheLargestLiveAndNamesUnknownOnes) {
  Flow flow({.program = LETHE_PROGRAM, .partitions = 2, .input = {}, .output = {}});
  int sent = 0;
  const auto send = [&](const std::string& key, const std::string& n, int32_t partition) {
    Record record = WithId(absl::StrCat(sent++), partition);
    record.value = absl::StrCat(R"({"id":")", sent, R"(","key":")", key, R"(","n":)", n, "}");
    flow.Send({record});
  };
  // In two partitions, with a sum that 64 bits do not hold.
  send("large", "9223372036854775807", 0);
  send("large", "9223372036854775807", 1);
  send("<b>page</b>", "7", 0);
  for (int i = 0; i < 25; ++i) send(absl::StrCat("small ", i), "1", i % 2);
  const std::string totals = UniqueName("totals"), deltas = UniqueName("deltas");
  ASSERT_TRUE(SharedClient().CreateTopic(deltas, 1, {}).ok());
  const Args args = {
      absl::StrCat("--counter=name=likes,mode=total,key=json:/key,delta=json:/n,output=", totals),
      absl::StrCat("--counter=name=changes,key=json:/key,delta=json:/n,output=", deltas),
      // Nobody listens there.
      absl::StrCat("--counter=name=kept,mode=total,key=json:/key,output=", UniqueName("totals"),
                   ",store=redis://127.0.0.1:", FreePort())};
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 28; }));
  auto started = Browser::Start();
  ASSERT_TRUE(started.ok()) << started.status();
  Browser& browser = **started;
  ASSERT_TRUE(browser.Open(absl::StrCat("http://127.0.0.1:", daemon->port(), "/")).ok());
  const std::string likes = "document.querySelector('[data-counter=likes]')";
  const auto row = [&](int i) {
    return absl::StrCat("[...", likes, ".querySelectorAll('tbody tr:nth-child(", i,
                        ") td')].map(cell => cell.textContent).join('|')");
  };
  const auto await = [&](const std::string& condition) {
    EXPECT_TRUE(browser.Await(condition).ok()) << condition << "\n" << daemon->Get("/counters").body;
  };
  await(absl::StrCat(likes, " && ", row(1), " === 'large|18,446,744,073,709,551,614'"));
  await(absl::StrCat(row(2), " === '<b>page</b>|7'"));
  await(absl::StrCat(likes, ".querySelectorAll('tbody tr').length === 20"));
  await("document.getElementById('counted').textContent === 'of all 2 partitions'");
  await("document.querySelector('[data-counter=changes]').textContent.includes('lethe counters --topic " +
        deltas + "')");
  await("document.querySelector('[data-counter=kept]').textContent.includes('Connection refused')");
  // Live.
  send("new", "1000", 1);
  await(absl::StrCat(row(2), " === 'new|1,000'"));
  // Another instance has a part.
  Args other = args;
  other.emplace_back("--instance=other");
  const auto second = flow.Start(other);
  await("document.getElementById('counted').textContent.startsWith('of 1 of 2 partitions')");
  EXPECT_EQ(browser.ConsoleProblems().value(), std::vector<std::string>());
  const json view = json::parse(second->Get("/counters?top=1").body);
  EXPECT_EQ(view["counters"].size(), 3u);
  EXPECT_EQ(view["all_partitions"], 2);
  EXPECT_TRUE(second->Await([&] {
    const json counters = json::parse(second->Get("/counters?top=1").body);
    return counters["partitions"].size() == 1 && counters["counters"][0]["top"].size() == 1 &&
           counters["counters"][0]["top"][0]["total"] == "9223372036854775807";
  })) << second->Get("/counters").body;
  EXPECT_TRUE(second->Stop());
  EXPECT_TRUE(daemon->Stop());
}

TEST_F(PageTest, SaysWhatTheMetricsSay) {
  for (int partition = 0; partition < kPartitions; ++partition) {
    const std::string label = absl::StrCat("partition=\"", partition, "\"");
    const auto metric = [&](absl::string_view name) { return daemon_->Metric(name, {label}); };
    auto cells = browser_->Run(CellsScript(partition));
    ASSERT_TRUE(cells.ok()) << cells.status();
    // The page asks once a second.
    EXPECT_TRUE(daemon_->Await([&] {
      cells = browser_->Run(CellsScript(partition));
      return cells.ok() && Number(cells->at("ids")) == metric("lethe_filter_ids");
    })) << cells.status();
    ASSERT_TRUE(cells.ok()) << cells.status();
    EXPECT_EQ(cells->at("state"), "active");
    EXPECT_EQ(Number(cells->at("N")), metric("lethe_filter_past_generations"));
    EXPECT_EQ(Number(cells->at("lag")), 0);
    EXPECT_GT(metric("lethe_filter_refreshes_total"), 0);
  }
  // The first partition is looked at, unless another is chosen.
  ASSERT_TRUE(browser_->Run("document.querySelector('tr[data-partition=\"1\"] button').click();").ok());
  const std::string name = absl::StrCat(flow_.input(), "-1");
  ASSERT_TRUE(
      browser_->Await(absl::StrCat("document.getElementById('detail-name').textContent === '", name, "'"))
          .ok());
  const auto facts = browser_->Run("return document.getElementById('facts').textContent;");
  ASSERT_TRUE(facts.ok()) << facts.status();
  const std::string text = absl::StrReplaceAll(facts->get<std::string>(), {{",", ""}});
  for (const std::string verdict : {"unique", "duplicate", "missing_id", "malformed", "undeliverable"}) {
    const double count = daemon_->Metric("lethe_records_total",
                                         {"partition=\"1\"", absl::StrCat("verdict=\"", verdict, "\"")});
    EXPECT_TRUE(absl::StrContains(text, absl::StrCat(count, " ", absl::StrReplaceAll(verdict, {{"_", " "}}))))
        << verdict << " " << count << ": " << text;
  }
  // All generations are drawn: the present and N past ones.
  const double generations = 1 + daemon_->Metric("lethe_filter_past_generations", {"partition=\"1\""});
  EXPECT_TRUE(
      browser_
          ->Await(absl::StrCat("document.querySelectorAll('#filter .generation').length === ", generations))
          .ok());
}

TEST_F(PageTest, OpensWithTheCurvesOfBefore) {
  // A second sample of the daemon's own, beside that of its start.
  ASSERT_TRUE(daemon_->Await([&] {
    const json status = json::parse(daemon_->Get("/status?partition=1&history=1").body, nullptr, false);
    return status.is_object() && status.at("partitions").at(1).at("history").at("seconds_ago").size() >= 2;
  }));
  ASSERT_TRUE(browser_->Open(Url()).ok());
  const std::string early = "(history.get(0) || []).some(s => s.time < performance.timeOrigin - 3000)";
  EXPECT_TRUE(browser_->Await(early).ok());
  // Of each partition when it is looked at; what was read before its first sample makes no rate.
  ASSERT_TRUE(browser_->Run("document.querySelector('tr[data-partition=\"1\"] button').click();").ok());
  EXPECT_TRUE(
      browser_->Await("(history.get(1) || []).some(s => s.time < performance.timeOrigin - 3000)").ok());
  const auto ordered = browser_->Run(
      "return history.get(1).every((s, i, all) => i === 0 ? s.unique === null : s.time > all[i - 1].time);");
  ASSERT_TRUE(ordered.ok()) << ordered.status();
  EXPECT_TRUE(ordered->get<bool>());
  const auto problems = browser_->ConsoleProblems();
  ASSERT_TRUE(problems.ok()) << problems.status();
  EXPECT_EQ(*problems, std::vector<std::string>());
}

TEST_F(PageTest, AsksNobodyButTheDaemonAndHasNoErrors) {
  // Some polls, and curves.
  ASSERT_TRUE(browser_
                  ->Await("document.querySelector('#chart-fpp path') && "
                          "(history.get(0) || []).length >= 3")
                  .ok());
  const auto problems = browser_->ConsoleProblems();
  ASSERT_TRUE(problems.ok()) << problems.status();
  EXPECT_EQ(*problems, std::vector<std::string>());
  const auto requests = browser_->Requests();
  ASSERT_TRUE(requests.ok()) << requests.status();
  EXPECT_GE(requests->size(), 4);
  for (const std::string& url : *requests) {
    EXPECT_TRUE(absl::StartsWith(url, Url()) || absl::StartsWith(url, "data:")) << url;
  }
  // A script that a record's text brought into the page would not run.
  const auto injected = browser_->Run(
      "const script = document.createElement('script'); script.textContent = 'window.injected = true';"
      "document.body.append(script); return window.injected === true;");
  ASSERT_TRUE(injected.ok()) << injected.status();
  EXPECT_EQ(*injected, false);
}

TEST_F(PageTest, IsReadableInLightAndDarkOnADeskAndOnAPhone) {
  ASSERT_TRUE(browser_->Await("document.querySelector('#chart-fpp path')").ok());
  const std::filesystem::path pictures = std::filesystem::path(LETHE_PROGRAM).parent_path() / "tests/page";
  std::filesystem::create_directories(pictures);
  for (const bool dark : {false, true}) {
    for (const int width : {1280, 390}) {
      ASSERT_TRUE(browser_->PreferDark(dark).ok());
      ASSERT_TRUE(browser_->Resize(width, 900).ok());
      const std::string name = absl::StrCat(dark ? "dark" : "light", "-", width);
      const auto contrast = browser_->Run(kContrastScript);
      ASSERT_TRUE(contrast.ok()) << contrast.status();
      EXPECT_GT(contrast->at("texts").get<int>(), 60);
      EXPECT_EQ(contrast->at("low"), json::array()) << name;
      const auto wide = browser_->Run(
          "return document.documentElement.scrollWidth > document.documentElement.clientWidth;");
      ASSERT_TRUE(wide.ok()) << wide.status();
      EXPECT_FALSE(wide->get<bool>()) << name << ": must be scrolled sideways";
      EXPECT_TRUE(browser_->Screenshot(pictures / (name + ".png")).ok());
    }
  }
}

// Answers that come a few milliseconds apart hold the same figures: no rate comes of them.
TEST_F(PageTest, DrawsNoOutageWhenItOpensOrIsClicked) {
  for (const int partition : {1, 2, 0}) {
    ASSERT_TRUE(browser_
                    ->Run(absl::StrCat("document.querySelector('tr[data-partition=\"", partition,
                                       "\"] button').click();"))
                    .ok());
    ASSERT_TRUE(browser_->Await(absl::StrCat("remembered === ", partition)).ok());
  }
  const auto close = browser_->Run(
      "return [...history.values()].flatMap(samples => samples.filter((s, i) => i > 0 && s.unique !== null"
      " && s.time - samples[i - 1].time < 900).map(s => s.unique));");
  ASSERT_TRUE(close.ok()) << close.status();
  EXPECT_EQ(*close, json::array());
}

// Records that come in bursts, three seconds apart, are no outages.
TEST_F(PageTest, ARateIsTakenOverFiveSeconds) {
  const auto rates = browser_->Run(
      "const status = structuredClone(lastStatus), one = status.partitions[0];"
      "delete one.history; one.partition = 77; one.phase = 'active'; status.partitions = [one];"
      "for (let second = 0; second < 20; ++second) {"
      "  one.records.unique += second % 3 === 0 ? 300 : 0;"
      "  one.actions.passed += second % 3 === 0 ? 300 : 0;"
      "  remember(one, 1e12 + 1000 * second);"
      "}"
      "const all = history.get(77).slice(6); history.delete(77);"
      "return all.flatMap(s => [s.unique, s.passed, s.all]);");
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(rates->size(), 42);
  for (const json& rate : *rates) {
    EXPECT_GE(rate.get<double>(), 60);
    EXPECT_LE(rate.get<double>(), 120);
  }
}

TEST_F(PageTest, PartitionsAreSortedAndFiltered) {
  const std::string shown =
      "return [...document.querySelectorAll('#partitions tr')].map(row => row.dataset.partition).join();";
  const auto type = [&](const std::string& text) {
    return browser_->Run(absl::StrCat("const field = document.getElementById('wanted'); field.value = '",
                                      text, "'; field.dispatchEvent(new Event('input')); ", shown));
  };
  EXPECT_EQ(*type("2"), "2");
  EXPECT_EQ(*type("activ"), "0,1,2");
  EXPECT_EQ(*type("failed"), "");
  EXPECT_EQ(*type(""), "0,1,2");
  const std::string click = "document.querySelector('[data-sort=partition]').click(); ";
  EXPECT_EQ(*browser_->Run(absl::StrCat(click, shown)), "2,1,0");
  EXPECT_EQ(*browser_->Run(absl::StrCat(click, shown)), "0,1,2");
}

// The page of 60 partitions: what the chosen one is like is seen without a search for it.
TEST_F(PageTest, TheDetailIsWhereTheEyeIsAndAPhoneShowsWhatMatters) {
  const std::string many =
      "const status = structuredClone(lastStatus); const one = status.partitions[0];"
      "status.partitions = [...Array(60).keys()].map(i => ({...structuredClone(one), partition: i}));"
      "show(status, Date.now()); ";
  const auto place = browser_->Run(
      absl::StrCat(many,
                   "return [document.querySelectorAll('#partitions tr').length,"
                   "document.getElementById('detail').getBoundingClientRect().top, innerHeight];"));
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(place->at(0), 60);
  EXPECT_LT(place->at(1).get<double>(), place->at(2).get<double>());
  ASSERT_TRUE(browser_->Resize(390, 844).ok());
  const auto right = browser_->Run(
      "const cell = document.querySelector('tr[data-partition=\"0\"] [data-cell=unique]');"
      "return [cell, cell.closest('.card')].map(part => part.getBoundingClientRect().right);");
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_LE(right->at(0).get<double>(), right->at(1).get<double>());
  EXPECT_LE(right->at(1).get<double>(), 390);
}

TEST_F(PageTest, MovesAtARefreshAndSaysWhenTheDaemonIsGone) {
  const auto refreshes = [&] { return daemon_->Metric("lethe_filter_refreshes_total", {"partition=\"0\""}); };
  const double before = refreshes();
  const auto steps = browser_->Run("return document.querySelector('#steps').textContent;");
  std::vector<Record> later;
  for (int i = 0; i < 500; ++i) {
    later.push_back(WithId(absl::StrCat("later-", i), 0, kStart + 7'200'000 + int64_t{i} * 7'200));
  }
  flow_.Send(later);
  ASSERT_TRUE(daemon_->Await([&] { return refreshes() > before; }));
  EXPECT_TRUE(browser_->Await(absl::StrCat("drawnRefreshes > ", before)).ok());
  EXPECT_TRUE(
      browser_->Await(absl::StrCat("document.querySelector('#steps').textContent !== ", steps->dump())).ok());

  ASSERT_TRUE(daemon_->Stop());
  EXPECT_TRUE(browser_->Await("document.getElementById('state').textContent.startsWith('no answer')").ok());
  const auto stale = browser_->Run("return document.body.classList.contains('stale');");
  ASSERT_TRUE(stale.ok()) << stale.status();
  EXPECT_TRUE(stale->get<bool>());
}

}  // namespace
}  // namespace lethe::test
