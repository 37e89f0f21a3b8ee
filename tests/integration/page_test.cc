// The status page in a real browser, on a daemon that works: it says what /metrics says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/support/browser.h"
#include "tests/support/dashboard_answers.h"
#include "tests/support/flow.h"
#include "tests/support/free_port.h"
#include "tests/support/process.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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
    ASSERT_OK(browser);
    browser_ = *std::move(browser);
    const std::vector<Record> records = Records();
    flow_.Send(records);
    daemon_ = flow_.Start({"--horizon=1h", "--commit-interval=20ms"});
    ASSERT_TRUE(daemon_->Await([&] {
      return daemon_->Metric("lethe_records_total") == static_cast<double>(records.size()) &&
             daemon_->Metric("lethe_lag_records") == 0;
    }));
    ASSERT_OK(browser_->Resize(1280, 900));
    ASSERT_OK(browser_->Open(Url()));
    ASSERT_OK(
        browser_->Await(absl::StrCat("document.querySelectorAll('#partitions tr').length === ", kPartitions,
                                     " && document.querySelectorAll('#steps li').length > 0")));
  }

  std::string Url() const { return absl::StrCat("http://127.0.0.1:", daemon_->port(), "/"); }

  // Records at some 600 a second, whose time runs 60 times as fast.
  void SendLive(absl::Duration duration) {
    constexpr absl::Duration kTick = absl::Milliseconds(200);
    const absl::Time start = absl::Now();
    for (int tick = 0; tick * kTick < duration; ++tick) {
      const int64_t at = kStart + 7'200'000 + tick * 60 * absl::ToInt64Milliseconds(kTick);
      std::vector<Record> records;
      for (int32_t partition = 0; partition < kPartitions; ++partition) {
        const int ids = static_cast<int>(40 + 20 * std::sin(tick / 200.0 + partition));
        for (int i = 0; i < ids; ++i) {
          records.push_back(WithId(absl::StrCat("live-", tick, "-", i), partition, at));
          if (i % 11 == 0) records.push_back(records.back());
        }
      }
      flow_.Send(records);
      absl::SleepFor(start + (tick + 1) * kTick - absl::Now());
    }
  }

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
  ASSERT_OK(SharedClient().CreateTopic(deltas, 1, {}));
  const Args args = {
      absl::StrCat("--counter=name=likes,mode=total,key=json:/key,delta=json:/n,output=", totals),
      absl::StrCat("--counter=name=changes,key=json:/key,delta=json:/n,output=", deltas),
      // Nobody listens there.
      absl::StrCat("--counter=name=kept,mode=total,key=json:/key,output=", UniqueName("totals"),
                   ",store=redis://127.0.0.1:", FreePort())};
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 28; }));
  auto started = Browser::Start();
  ASSERT_OK(started);
  Browser& browser = **started;
  ASSERT_OK(browser.Open(absl::StrCat("http://127.0.0.1:", daemon->port(), "/")));
  const std::string likes = "document.querySelector('[data-counter=likes]')";
  const auto row = [&](int i) {
    return absl::StrCat("[...", likes, ".querySelectorAll('tbody tr:nth-child(", i,
                        ") td')].map(cell => cell.textContent).join('|')");
  };
  const auto await = [&](const std::string& condition) {
    EXPECT_OK(browser.Await(condition)) << condition << "\n" << daemon->Get("/counters").body;
  };
  await(absl::StrCat(likes, " && ", row(1), " === 'large|18,446,744,073,709,551,614'"));
  await(absl::StrCat(row(2), " === '<b>page</b>|7'"));
  await(absl::StrCat(likes, ".querySelectorAll('tbody tr').length === 20"));
  await("document.getElementById('counted').textContent === 'of all 2 partitions'");
  await(absl::StrCat(
      "document.querySelector('[data-counter=changes] code').textContent === 'lethe counters --brokers ",
      SharedBroker().bootstrap(), " --topic ", deltas, "'"));
  await("document.querySelector('[data-counter=kept]').textContent.includes('Connection refused')");
  // Live.
  send("new", "1000", 1);
  await(absl::StrCat(row(2), " === 'new|1,000'"));
  Args other = args;
  other.emplace_back("--instance=other");
  // Whoever reaches the port need not see what is counted.
  Args hidden = other;
  hidden.emplace_back("--http-counters=false");
  {
    const auto hiding = flow.Start(hidden);
    EXPECT_TRUE(hiding->Await([&] {
      const std::string body = hiding->Get("/counters").body;
      return absl::StrContains(body, "\"partitions\":[") && !absl::StrContains(body, "\"partitions\":[]");
    }));
    const json counter = json::parse(hiding->Get("/counters").body)["counters"][0];
    EXPECT_GT(counter["keys"], 0);
    EXPECT_TRUE(counter["top"].is_null()) << counter;
    ASSERT_OK(browser.Open(absl::StrCat("http://127.0.0.1:", hiding->port(), "/")));
    const std::string shown = "document.querySelector('[data-counter=likes]')";
    EXPECT_OK(browser.Await(absl::StrCat(shown, " && ", shown, ".textContent.includes('http_counters')")));
    EXPECT_TRUE(hiding->Stop());
  }
  ASSERT_OK(browser.Open(absl::StrCat("http://127.0.0.1:", daemon->port(), "/")));
  // Another instance has a part.
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

// Several topics: a list of them first, the worst on top, and the partitions of one on a click.
TEST(TopicsPageTest, ListsTopicsFirstAndThePartitionsOfOneOnAClick) {
  const std::string name = UniqueName("page");
  const auto topic = [&](absl::string_view of) { return absl::StrCat(name, ".", of); };
  for (const char* each : {"bills", "bills-out", "clicks", "clicks-out", "orders"}) {
    ASSERT_OK(SharedClient().CreateTopic(topic(each), 2, {{"retention.ms", "-1"}}));
  }
  std::vector<Record> records;
  for (int i = 0; i < 100; ++i) {
    records.push_back(WithId(absl::StrCat(i), i % 2));
    if (i % 4 == 0) records.push_back(records.back());  // 25 copies
  }
  ASSERT_OK(SharedClient().Produce(topic("clicks"), records));
  const std::string config = absl::StrCat(testing::TempDir(), "/", name, ".yaml");
  std::ofstream(config) << "brokers: " << SharedBroker().bootstrap() << "\ngroup: " << name
                        << "\nid: json:/id\nhorizon: 30d\nmemory: 64MiB\ntopics:\n"
                        << "  - {input: " << topic("bills") << ", output: " << topic("bills-out") << "}\n"
                        << "  - {input: " << topic("clicks") << ", output: " << topic("clicks-out") << "}\n"
                        << "  - {input: " << topic("orders") << ", output: " << topic("orders-out") << "}\n";
  const int port = FreePort();
  ProcessOptions process;
  process.args = {LETHE_PROGRAM, "run", "--config", config, absl::StrCat("--http=127.0.0.1:", port)};
  auto started = Process::Start(process);
  ASSERT_OK(started);
  Daemon daemon(*std::move(started), port);
  ASSERT_TRUE(daemon.Await([&] { return daemon.Metric("lethe_records_total") == 125; })) << daemon.Log();

  // Programs can ask for the partitions of one topic, or of none.
  const auto partitions = [&](const std::string& query) {
    const json status = json::parse(daemon.Get("/status" + query).body);
    EXPECT_EQ(status.at("topics").size(), 3) << query;
    return status.at("partitions").size();
  };
  EXPECT_EQ(partitions(""), 4);
  EXPECT_EQ(partitions("?topic=" + topic("clicks")), 2);
  EXPECT_EQ(partitions("?topic="), 0);

  auto opened = Browser::Start();
  ASSERT_OK(opened);
  Browser& browser = **opened;
  ASSERT_OK(browser.Resize(1280, 900));
  ASSERT_OK(browser.Open(absl::StrCat("http://127.0.0.1:", port, "/")));
  const auto await = [&](const std::string& condition) {
    EXPECT_OK(browser.Await(condition)) << condition << "\n" << daemon.Get("/status").body;
  };
  const auto texts = [](absl::string_view of) {
    return absl::StrCat("[...document.querySelectorAll('[data-topic=\"", of,
                        "\"] td')].map(cell => cell.textContent)");
  };
  const std::string shown =
      "[...document.querySelectorAll('#topic-rows tr')].map(row => row.dataset.topic).join()";
  await(absl::StrCat(shown, " === '", topic("orders"), ",", topic("bills"), ",", topic("clicks"), "'"));
  await(absl::StrCat(texts(topic("orders")), "[1] === 'not read'"));
  await(absl::StrCat(texts(topic("orders")), "[7].includes('", topic("orders-out"), " does not exist')"));
  await(
      absl::StrCat(texts(topic("clicks")), ".slice(1, 6).join('|') === 'active|0|0.0|20.0 % since start|2'"));
  await("document.getElementById('partition-table').hidden && document.getElementById('detail').hidden");
  const std::filesystem::path pictures = std::filesystem::path(LETHE_PROGRAM).parent_path() / "tests/page";
  std::filesystem::create_directories(pictures);
  EXPECT_OK(browser.Screenshot(pictures / "topics.png"));

  const auto click = [&](absl::string_view of) {
    return browser.Run(absl::StrCat("document.querySelector('[data-topic=\"", of, "\"] button').click();"));
  };
  ASSERT_OK(click(topic("clicks")));
  await(
      absl::StrCat("[...document.querySelectorAll('#partitions tr')].map(row => row.dataset.partition)"
                   ".sort().join() === '",
                   topic("clicks"), "-0,", topic("clicks"), "-1'"));
  await("document.querySelectorAll('#filter .generation').length > 0");
  EXPECT_OK(browser.Screenshot(pictures / "topic.png"));
  ASSERT_OK(click(topic("clicks")));
  await("document.getElementById('partition-table').hidden");

  // Hundreds of topics: the worst first, and a bounded number of rows.
  const auto many = browser.Run(absl::StrCat(
      "const status = structuredClone(lastStatus); const one = status.topics.find(topic => topic.phase);"
      "status.topics = [...Array(300).keys()].map(i => ({...structuredClone(one), input: `t${i}`, origin: "
      "`t${i}`}));"
      "status.topics[170].phase = 'failed'; status.topics[170].problem = 'broken';"
      "status.topics[290].lag_records = 2000000;"
      "show(status, Date.now()); const rows = () => [...document.querySelectorAll('#topic-rows tr')].map(row "
      "=> row.dataset.topic); const first = rows();"
      "const field = document.getElementById('topic-wanted'); field.value = 't29';"
      "field.dispatchEvent(new Event('input')); const found = rows();"
      "field.value = ''; field.dispatchEvent(new Event('input'));"
      "document.getElementById('more-topics').click();"
      "return [first.slice(0, 2), first.length, found.length, rows().length];"));
  ASSERT_OK(many);
  EXPECT_EQ(*many, json::parse(R"([["t170", "t290"], 25, 11, 125])"));

  // A long name and a long problem leave room for their labels and for what is beside them.
  for (const int width : {1280, 1030, 500, 320}) {
    ASSERT_OK(browser.Resize(width, 900));
    const auto boxes = browser.Run(
        "const status = structuredClone(lastStatus), name = 'events.of.a.long.name.'.repeat(8);"
        "const one = {...status.topics.find(topic => topic.phase), input: name, origin: name, phase: "
        "'failed',"
        "  problem: 'broken '.repeat(40)};"
        "status.topics = [one, {...one, input: 'b', origin: 'b'}]; show(status, Date.now());"
        "const page = document.documentElement;"
        "return [...document.querySelectorAll('#topic-rows td')].map(cell => {"
        "  const box = cell.getBoundingClientRect(), inner = cell.firstChild.getBoundingClientRect();"
        "  return [cell.dataset.label, inner.left - box.left, box.right - inner.right];"
        "}).concat([['page', 0, page.clientWidth - page.scrollWidth]]);");
    ASSERT_OK(boxes);
    EXPECT_EQ(boxes->size(), 17) << *boxes;
    for (const json& box : *boxes) {
      const bool label = width < 1000 && (box.at(0) == "problem" || box.at(0) == "topic");
      EXPECT_GE(box.at(1).get<double>(), label ? 30 : 0) << width << ": " << box;
      EXPECT_GE(box.at(2).get<double>(), 0) << width << ": " << box;
    }
  }
  EXPECT_EQ(browser.ConsoleProblems().value(), std::vector<std::string>());
  EXPECT_TRUE(daemon.Stop());
}

TEST_F(PageTest, SaysWhatTheMetricsSay) {
  for (int partition = 0; partition < kPartitions; ++partition) {
    const std::string label = absl::StrCat("partition=\"", partition, "\"");
    const auto metric = [&](absl::string_view name) { return daemon_->Metric(name, {label}); };
    auto cells = browser_->Run(CellsScript(partition));
    ASSERT_OK(cells);
    // The page asks once a second.
    EXPECT_TRUE(daemon_->Await([&] {
      cells = browser_->Run(CellsScript(partition));
      return cells.ok() && Number(cells->at("ids")) == metric("lethe_filter_ids");
    })) << cells.status();
    ASSERT_OK(cells);
    EXPECT_EQ(cells->at("state"), "active");
    EXPECT_EQ(Number(cells->at("lag")), 0);
    EXPECT_GT(metric("lethe_filter_refreshes_total"), 0);
  }
  // The first partition is looked at, unless another is chosen.
  ASSERT_OK(browser_->Run("document.querySelector('tr[data-partition=\"1\"] button').click();"));
  const std::string name = absl::StrCat(flow_.input(), "-1");
  ASSERT_OK(
      browser_->Await(absl::StrCat("document.getElementById('detail-name').textContent === '", name, "'")));
  const auto facts = browser_->Run("return document.getElementById('facts').textContent;");
  ASSERT_OK(facts);
  const std::string text = absl::StrReplaceAll(facts->get<std::string>(), {{",", ""}});
  for (const std::string verdict : {"unique", "duplicate", "missing_id", "malformed", "undeliverable"}) {
    const double count = daemon_->Metric("lethe_records_total",
                                         {"partition=\"1\"", absl::StrCat("verdict=\"", verdict, "\"")});
    const std::string fact = absl::StrCat(count, " ", absl::StrReplaceAll(verdict, {{"_", " "}}));
    EXPECT_EQ(absl::StrContains(text, fact), count > 0) << fact << ": " << text;
  }
  // The tiles have the totals of all partitions.
  const auto total = browser_->Run(
      "return ['passed-total', 'dropped-total'].map(id => parseInt(document.getElementById(id).textContent"
      ".replaceAll(',', '')));");
  ASSERT_OK(total);
  EXPECT_EQ(*total, json::array({daemon_->Metric("lethe_record_actions_total", {"action=\"passed\""}),
                                 daemon_->Metric("lethe_records_total", {"verdict=\"duplicate\""})}));
  // All generations are drawn: the present and N past ones.
  const double generations = 1 + daemon_->Metric("lethe_filter_past_generations", {"partition=\"1\""});
  EXPECT_OK(browser_->Await(
      absl::StrCat("document.querySelectorAll('#filter .generation').length === ", generations)));
}

TEST_F(PageTest, OpensWithTheCurvesOfBefore) {
  // A second sample of the daemon's own, beside that of its start.
  ASSERT_TRUE(daemon_->Await([&] {
    const json status = json::parse(daemon_->Get("/status?partition=1&history=1").body, nullptr, false);
    return status.is_object() && status.at("partitions").at(1).at("history").at("seconds_ago").size() >= 2;
  }));
  ASSERT_OK(browser_->Open(Url()));
  const std::string early = "(history.get(0) || []).some(s => s.time < performance.timeOrigin - 3000)";
  EXPECT_OK(browser_->Await(early));
  // Of each partition when it is looked at; what was read before its first sample makes no rate.
  ASSERT_OK(browser_->Run("document.querySelector('tr[data-partition=\"1\"] button').click();"));
  EXPECT_OK(browser_->Await("(history.get(1) || []).some(s => s.time < performance.timeOrigin - 3000)"));
  const auto ordered = browser_->Run(
      "return history.get(1).every((s, i, all) => i === 0 ? s.unique === null : s.time > all[i - 1].time);");
  ASSERT_OK(ordered);
  EXPECT_TRUE(ordered->get<bool>());
  const auto problems = browser_->ConsoleProblems();
  ASSERT_OK(problems);
  EXPECT_EQ(*problems, std::vector<std::string>());
}

TEST_F(PageTest, AsksNobodyButTheDaemonAndHasNoErrors) {
  // Some polls, and curves.
  ASSERT_OK(
      browser_->Await("document.querySelector('#chart-fpp path') && "
                      "(history.get(0) || []).length >= 3"));
  const auto problems = browser_->ConsoleProblems();
  ASSERT_OK(problems);
  EXPECT_EQ(*problems, std::vector<std::string>());
  const auto requests = browser_->Requests();
  ASSERT_OK(requests);
  EXPECT_GE(requests->size(), 4);
  for (const std::string& url : *requests) {
    EXPECT_THAT(url, AnyOf(StartsWith(Url()), StartsWith("data:")));
  }
  // A script that a record's text brought into the page would not run.
  const auto injected = browser_->Run(
      "const script = document.createElement('script'); script.textContent = 'window.injected = true';"
      "document.body.append(script); return window.injected === true;");
  ASSERT_OK(injected);
  EXPECT_EQ(*injected, false);
}

// With LETHE_WRITE=1 in the environment the picture of the documents is taken again: four hours of stream
// time in as many minutes, under a load that rises and falls.
TEST_F(PageTest, IsReadableInLightAndDarkOnADeskAndOnAPhone) {
  for (const std::string chart : {"fpp", "rate", "ids", "memory"}) {
    ASSERT_OK(browser_->Await("document.querySelector('#chart-" + chart + " path')")) << chart;
  }
  const bool writes = std::getenv("LETHE_WRITE") != nullptr;
  if (writes) SendLive(absl::Minutes(4));
  const std::filesystem::path pictures = std::filesystem::path(LETHE_PROGRAM).parent_path() / "tests/page";
  std::filesystem::create_directories(pictures);
  for (const bool dark : {false, true}) {
    for (const int width : {1280, 390}) {
      ASSERT_OK(browser_->PreferDark(dark));
      ASSERT_OK(browser_->Resize(width, 900));
      const std::string name = absl::StrCat(dark ? "dark" : "light", "-", width);
      const auto contrast = browser_->Run(kContrastScript);
      ASSERT_OK(contrast);
      EXPECT_GT(contrast->at("texts").get<int>(), 60);
      EXPECT_EQ(contrast->at("low"), json::array()) << name;
      const auto wide = browser_->Run(
          "return document.documentElement.scrollWidth > document.documentElement.clientWidth;");
      ASSERT_OK(wide);
      EXPECT_FALSE(wide->get<bool>()) << name << ": must be scrolled sideways";
      EXPECT_OK(browser_->Screenshot(pictures / (name + ".png")));
      if (writes && name == "light-1280") {
        const absl::Status finished =
            FinishPicture(pictures / (name + ".png"), 128, LETHE_SOURCE_DIR "/dashboards/page.png");
        EXPECT_OK(finished);
      }
    }
  }
}

// Answers that come a few milliseconds apart hold the same figures: no rate comes of them.
TEST_F(PageTest, DrawsNoOutageWhenItOpensOrIsClicked) {
  for (const int partition : {1, 2, 0}) {
    ASSERT_OK(browser_->Run(
        absl::StrCat("document.querySelector('tr[data-partition=\"", partition, "\"] button').click();")));
    ASSERT_OK(browser_->Await(absl::StrCat("remembered === ", partition)));
  }
  const auto close = browser_->Run(
      "return [...history.values()].flatMap(samples => samples.filter((s, i) => i > 0 && s.unique !== null"
      " && s.time - samples[i - 1].time < 900).map(s => s.unique));");
  ASSERT_OK(close);
  EXPECT_EQ(*close, json::array());
}

// Records that come in bursts, three seconds apart, are no outages.
TEST_F(PageTest, ARateIsTakenOverFiveSeconds) {
  const auto rates = browser_->Run(
      "const status = structuredClone(lastStatus), one = status.partitions[0];"
      "delete one.history; one.partition = one.key = 77; one.phase = 'active'; status.partitions = [one];"
      "for (let second = 0; second < 20; ++second) {"
      "  one.records.unique += second % 3 === 0 ? 300 : 0;"
      "  one.actions.passed += second % 3 === 0 ? 300 : 0;"
      "  remember(one, 1e12 + 1000 * second);"
      "}"
      "const all = history.get(77).slice(6); history.delete(77);"
      "return all.flatMap(s => [s.unique, s.passed, s.all]);");
  ASSERT_OK(rates);
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
  EXPECT_EQ(*browser_->Run(absl::StrCat(click, shown)), "0,1,2");
  EXPECT_EQ(*browser_->Run(absl::StrCat(click, shown)), "2,1,0");
}

// The page of 60 partitions, of which `change` changes some, and what `rest` returns of it.
std::string OfSixty(absl::string_view change, absl::string_view rest) {
  return absl::StrCat(
      "const status = structuredClone(lastStatus); const one = status.partitions[0];"
      "status.partitions = [...Array(60).keys()].map(i => ({...structuredClone(one), partition: i}));"
      "const of = i => status.partitions[i];",
      change,
      "show(status, Date.now());"
      "const numbers = () => [...document.querySelectorAll('#partitions tr')].map(row => "
      "+row.dataset.partition);",
      rest);
}

TEST_F(PageTest, WhatIsNotAsItShouldBeIsNoGreenRow) {
  const std::string states =
      "return [0, 1, 2, 3, 4, 5].map(i => document.querySelector(`#partitions tr[data-partition=\"${i}\"] "
      ".state`))"
      ".concat(document.getElementById('state'))"
      ".map(state => state.textContent + ' is ' + state.className.replace('state ', ''));";
  const auto notices = browser_->Run(
      OfSixty("of(1).notices = ['short_history', 'keys_moved']; of(2).notices = ['keys_moved'];"
              "of(3).phase = 'held'; of(4).notices = ['duplicates_jumped']; of(5).notices = ['shared_id'];"
              "status.remarks = ['t-5: many records that differ share one id'];",
              states));
  ASSERT_OK(notices);
  EXPECT_EQ(*notices,
            json::array({"active is good", "active, short history is warn", "active, keys moved is warn",
                         "held is warn", "active, duplicates jumped is warn",
                         "active, events share an id is bad", "ready, with warnings is bad"}));
  // What loses events comes first, and a warning before what is fine.
  const auto order = browser_->Run(
      OfSixty("of(9).notices = ['keys_moved']; of(41).notices = ['shared_id']; of(7).phase = 'restoring';"
              "status.remarks = ['something'];",
              "return numbers().slice(0, 4).concat(document.getElementById('state').className.replace('state "
              "', ''));"));
  ASSERT_OK(order);
  EXPECT_EQ(*order, json::array({41, 7, 9, 0, "bad"}));
  // Without an answer of the brokers.
  const auto unknown = browser_->Run(
      OfSixty("for (const one of status.partitions.concat(status.topics)) {"
              "  one.phase = 'unknown'; one.lag_records = null;"
              "}"
              "status.remarks = [];",
              absl::StrCat("if (document.getElementById('lag').textContent !== 'unknown') return 'a lag'; ",
                           states)));
  ASSERT_OK(unknown);
  json expected = json::array();
  for (int i = 0; i < 6; ++i) expected.push_back("unknown: brokers silent is warn");
  expected.push_back("ready is good");
  EXPECT_EQ(*unknown, expected);
}

// At 8 % of the target, that much of the bar is full.
TEST_F(PageTest, TheBarOfTheFppIsLinear) {
  const auto widths = browser_->Run(
      OfSixty("status.partitions.forEach((one, i) => { one.filter.fpp_target = 1e-6; "
              "one.filter.fpp_estimated = i * 2e-8; });",
              "return Object.fromEntries([...document.querySelectorAll('#partitions tr')].map(row => "
              "[row.dataset.partition, row.querySelector('[data-cell=fpp] .meter i').style.width]));"));
  ASSERT_OK(widths);
  EXPECT_EQ(widths->at("4"), "8%");
  EXPECT_EQ(widths->at("5"), "10%");
}

// What needs somebody comes first; the rest, and the chosen one's detail, is not far.
TEST_F(PageTest, FailuresAndLagComeFirstAndAllPartitionsAreReachable) {
  const auto seen = browser_->Run(OfSixty(
      "of(41).phase = of(7).phase = 'failed'; of(30).phase = 'restoring'; of(52).lag_records = 2000000;"
      "of(19).lag_records = 5000;",
      "const first = numbers();"
      "const top = document.getElementById('detail').getBoundingClientRect().top;"
      "document.getElementById('more').click();"
      "return [first.slice(0, 5), top, innerHeight, numbers().length];"));
  ASSERT_OK(seen);
  EXPECT_EQ(seen->at(0), json::array({7, 41, 30, 52, 19}));
  EXPECT_LT(seen->at(1).get<double>(), seen->at(2).get<double>());
  EXPECT_EQ(seen->at(3), 60);

  // Equal messages are one, and failures come before the rest.
  const auto reasons = browser_->Run(OfSixty(
      "status.not_ready = ['t-3 is restoring: 7 offsets to go', 't-4 is restoring: 19 offsets to go'];"
      "for (const i of [5, 6, 59]) {"
      "  of(i).phase = 'failed'; of(i).problem = `t-${i} offset ${i * 1000}: broken`;"
      "  status.not_ready.push(of(i).problem);"
      "}",
      "return [...document.querySelectorAll('#reasons li')].map(line => line.textContent);"));
  ASSERT_OK(reasons);
  ASSERT_EQ(reasons->size(), 2) << *reasons;
  EXPECT_THAT(reasons->at(0).get<std::string>(), HasSubstr("t-5 offset 5000: broken")) << *reasons;
  EXPECT_THAT(reasons->at(0).get<std::string>(), HasSubstr("6, 59")) << *reasons;

  // A phone shows every figure.
  ASSERT_OK(browser_->Resize(390, 844));
  const auto right = browser_->Run(OfSixty(
      "for (const each of status.partitions) Object.assign(each.filter, {ids: 123456789, fpp_estimated: "
      "1.2e-11});",
      "return [...document.querySelectorAll('tr[data-partition=\"0\"] td, tr[data-partition=\"0\"] td > *')]"
      ".map(part => part.getBoundingClientRect()).map(box => [box.left, box.right]);"));
  ASSERT_OK(right);
  EXPECT_GE(right->size(), 18);
  for (const json& box : *right) {
    EXPECT_GE(box.at(0).get<double>(), 0);
    EXPECT_LE(box.at(1).get<double>(), 390);
  }
}

// Figures that say something: of a young filter, a rate far under its target, an audit that has only begun.
TEST_F(PageTest, FiguresSayWhatIsKnown) {
  const auto run = [&](const std::string& expression) {
    const auto value = browser_->Run("return " + expression + ";");
    EXPECT_OK(value);
    return value.ok() ? *value : json();
  };
  const std::string young = "{filter: {window_seconds: 119, fpp_target: 1e-9, memory_limit_hits: 0}}";
  const std::string cut = "{filter: {window_seconds: 7200, fpp_target: 1e-9, memory_limit_hits: 1}}";
  EXPECT_EQ(run("windowText(" + young + ", 86400)"), "119 s, since start");
  EXPECT_EQ(run("windowText(" + cut + ", 86400)"), "2 h of 24 h");
  EXPECT_EQ(run("windowText({filter: {window_seconds: null, fpp_target: 1e-9}}, 86400)"), "24 h");
  EXPECT_EQ(run("[0, 1e-30, 1e-3, 1, 50].map(barLength).map(x => +x.toFixed(3))"),
            json::array({0, 0, 0.001, 1, 1}));
  const auto fact = [&](int fresh) {
    return run(absl::StrCat("auditFact({false_drops: 0, fresh: ", fresh,
                            ", fpp_high: 1e-4, payload_mismatches: 0})"))
        .get<std::string>();
  };
  EXPECT_THAT(fact(50), HasSubstr("too few audited yet"));
  EXPECT_THAT(fact(50'000), HasSubstr("at most 1e-4"));
  // Only the paper's filter has k bits for an id.
  EXPECT_THAT(run("filterFact(lastStatus.partitions[0].filter)").get<std::string>(), Not(HasSubstr("k =")));
  EXPECT_THAT(run("(lastStatus.engine = 'published', filterFact(lastStatus.partitions[0].filter))")
                  .get<std::string>(),
              HasSubstr("k ="));

  // Marks of axes are round, and differ.
  const auto axes = browser_->Run(
      "return [[0, 0, 'whole'], [0, 1, 'whole'], [0, 17, 'whole'], [0, 118, 'linear'], [0, 5400, 'duration'],"
      "        [0, 110592, 'bytes'], [-11.3, -9, 'logarithmic'], [-15, -6, 'logarithmic'], [-12.5, -9, "
      "'logarithmic']]"
      ".map(([low, high, scaling]) => marks(low, high, scaling));");
  ASSERT_OK(axes);
  EXPECT_EQ(*axes,
            json::parse("[[0, 1], [0, 1], [0, 10, 20], [0, 50, 100, 150], [0, 1800, 3600, 5400],"
                        " [0, 65536, 131072], [-12, -11, -10, -9], [-15, -12, -9, -6], [-13, -11, -9]]"));
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
  EXPECT_OK(browser_->Await(absl::StrCat("drawnRefreshes > ", before)));
  EXPECT_OK(
      browser_->Await(absl::StrCat("document.querySelector('#steps').textContent !== ", steps->dump())));

  ASSERT_TRUE(daemon_->Stop());
  EXPECT_OK(browser_->Await("document.getElementById('state').textContent.startsWith('no answer')"));
  const auto stale = browser_->Run("return document.body.classList.contains('stale');");
  ASSERT_OK(stale);
  EXPECT_TRUE(stale->get<bool>());
}

}  // namespace
}  // namespace lethe::test
