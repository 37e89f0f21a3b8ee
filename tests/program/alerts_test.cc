// The rules of dashboards/, by Prometheus' own tool, and what they and the dashboards speak of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "src/cli/metrics/metrics.h"
#include "src/cli/verify/verify_text.h"

namespace lethe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const std::string kFolder = LETHE_SOURCE_DIR "/dashboards/";

std::string FileText(const std::string& name) {
  std::ifstream file(kFolder + name);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Its exit code, and what it says.
std::pair<int, std::string> Promtool(const std::string& arguments) {
  FILE* promtool = popen(absl::StrCat("promtool ", arguments, " 2>&1").c_str(), "r");
  if (promtool == nullptr) return {-1, "popen"};
  std::string said;
  for (int c = 0; (c = fgetc(promtool)) != EOF;) said += static_cast<char>(c);
  return {pclose(promtool), said};
}

TEST(AlertsTest, PromtoolAcceptsTheConfigurationWithItsRules) {
  const auto [code, said] = Promtool(absl::StrCat("check config ", kFolder, "prometheus.yml"));
  EXPECT_EQ(code, 0) << said << "\npromtool comes with Debian's package prometheus";
}

TEST(AlertsTest, FireWhenTheyShouldAndNotOtherwise) {
  const auto [code, said] = Promtool(absl::StrCat("test rules ", kFolder, "alerts_test.yml"));
  EXPECT_EQ(code, 0) << said;
}

struct Alert {
  std::string name;
  std::string text;  // of the whole rule
};

std::vector<Alert> Alerts() {
  std::vector<Alert> alerts;
  for (const absl::string_view line : absl::StrSplit(FileText("alerts.yml"), '\n')) {
    constexpr absl::string_view kBegin = "      - alert: ";
    if (absl::StartsWith(line, kBegin)) alerts.push_back({std::string(line.substr(kBegin.size())), ""});
    if (!alerts.empty()) absl::StrAppend(&alerts.back().text, line, "\n");
  }
  return alerts;
}

TEST(AlertsTest, EachNamesTheRemedyAndItsSectionOfTheRunbook) {
  const std::string runbook = FileText("runbook.md");
  const std::string tests = FileText("alerts_test.yml");
  const std::string page = FileText("README.md");
  std::set<std::string> names;
  for (const Alert& alert : Alerts()) {
    SCOPED_TRACE(alert.name);
    names.insert(alert.name);
    EXPECT_THAT(alert.text, HasSubstr("labels: {severity: "));
    EXPECT_THAT(alert.text, HasSubstr("          summary: "));
    EXPECT_THAT(alert.text, HasSubstr("          description: "));
    EXPECT_THAT(alert.text,
                HasSubstr(absl::StrCat("runbook_url: '{{ with $externalLabels.runbook }}{{ . }}{{ else }}"
                                       "dashboards/runbook.md{{ end }}#",
                                       absl::AsciiStrToLower(alert.name), "'\n")));
    const size_t section = runbook.find(absl::StrCat("\n## ", alert.name, "\n"));
    ASSERT_NE(section, std::string::npos);
    const std::string text = runbook.substr(section, runbook.find("\n## ", section + 1) - section);
    for (const char* part : {"*Means:* ", "*Look:* ", "*Do:* "}) EXPECT_THAT(text, HasSubstr(part));
    EXPECT_THAT(tests, HasSubstr(absl::StrCat("alertname: ", alert.name, "\n"))) << "is not tested";
    const size_t severity = alert.text.find("{severity: ") + 11;
    const std::string row =
        absl::StrCat("\n| ", alert.text.substr(severity, alert.text.find('}', severity) - severity));
    const size_t begin = page.find(row);
    ASSERT_NE(begin, std::string::npos) << row;
    EXPECT_THAT(page.substr(begin, page.find('\n', begin + 1) - begin), HasSubstr(alert.name)) << row;
  }
  EXPECT_EQ(names.size(), Alerts().size());
  for (const absl::string_view line : absl::StrSplit(runbook, '\n')) {
    if (absl::StartsWith(line, "## ")) {
      EXPECT_TRUE(names.contains(std::string(line.substr(3)))) << line;
    }
  }
}

// Names of lethe's and the process's metrics, and not of recorded series, which have a colon.
std::set<std::string> MetricNames(const std::string& text) {
  static const std::regex name("(^|[^:a-z_/-])((lethe|process)_[a-z_]+)(?!:)\\b");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
    names.insert((*it)[2]);
  }
  return names;
}

TEST(AlertsTest, TheMetricsOfRulesAndDashboardsAreDefined) {
  std::set<std::string> defined;
  for (const MetricDefinition& metric : MetricDefinitions()) {
    defined.insert(metric.name);
    if (metric.type != kHistogram) continue;
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      defined.insert(absl::StrCat(metric.name, suffix));
    }
  }
  for (const std::string& name : MetricNames(VerifiedMetrics({{}}, absl::Now()))) defined.insert(name);
  for (const char* file : {"alerts.yml", "alerts_test.yml", "runbook.md", "README.md", "overview.json",
                           "adaptation.json", "pipeline.json"}) {
    const std::set<std::string> used = MetricNames(FileText(file));
    EXPECT_FALSE(used.empty()) << file;
    for (const std::string& name : used) EXPECT_TRUE(defined.contains(name)) << file << ": " << name;
  }
}

// In a stack each line is as high as all beneath it: one that is 0 paints over the one that is not.
TEST(AlertsTest, NoPanelStacksSeriesThatAreMostlyZero) {
  for (const char* file : {"overview.json", "adaptation.json", "pipeline.json"}) {
    EXPECT_THAT(FileText(file), Not(HasSubstr("\"stacking\""))) << file;
  }
}

// A verdict has its own colour wherever it is drawn, and m is in bits, as in the paper.
TEST(AlertsTest, VerdictsHaveColoursAndMIsInBits) {
  const std::string overview = FileText("overview.json");
  for (const char* verdict : {"unique", "duplicate", "missing_id", "malformed", "undeliverable"}) {
    EXPECT_THAT(overview, HasSubstr(absl::StrCat("\"options\": \"", verdict, "\""))) << verdict;
  }
  const std::string adaptation = FileText("adaptation.json");
  for (size_t at = adaptation.find("lethe_filter_generation_bytes"); at != std::string::npos;
       at = adaptation.find("lethe_filter_generation_bytes", at + 1)) {
    EXPECT_THAT(adaptation.substr(0, at), EndsWith("8 * max by (engine) ("));
  }
}

// A recorded series that is used is recorded.
TEST(AlertsTest, RecordedSeriesExist) {
  const std::string rules = FileText("alerts.yml");
  static const std::regex recorded("[a-z_]+:lethe_[a-z_]+:[a-z0-9_]+");
  for (std::sregex_iterator it(rules.begin(), rules.end(), recorded), end; it != end; ++it) {
    EXPECT_THAT(rules, HasSubstr(absl::StrCat("- record: ", it->str(), "\n"))) << it->str();
  }
}

}  // namespace
}  // namespace lethe
