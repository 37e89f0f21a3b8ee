// The results of a benchmark of some tables among those of earlier ones.
#include "tests/bench/partial_run.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lethe::bench {
namespace {

using Section = Report::Section;

constexpr char kReport[] = R"(Machine: some.

### Small, target 1

| a |
| --- |
| 1 |

### Large, target 1

A text.

| b |
| --- |
| 2 |
)";

std::string Put(const std::vector<Section>& sections, const std::vector<std::string>& order) {
  Report report = ParseReport(kReport);
  for (const Section& section : sections) PutSection(section, order, &report);
  return ReportText(report);
}

TEST(PartialRun, AReportIsReadAndWrittenAsItIs) {
  EXPECT_EQ(Put({}, {}), kReport);
  EXPECT_EQ(ReportText(ParseReport("\n" + std::string(kReport) + "\n")), kReport);
  const Report empty = ParseReport("\n");
  EXPECT_EQ(empty.sections.size(), 0u);
  EXPECT_EQ(empty.preamble, "\n");
}

TEST(PartialRun, ATableTakesThePlaceOfTheOneWithItsHeading) {
  EXPECT_EQ(
      Put({{"Small, target 1", "### Small, target 1\n\n| new |\n"}}, {"Small, target 1", "Large, target 1"}),
      R"(Machine: some.

### Small, target 1

| new |

### Large, target 1

A text.

| b |
| --- |
| 2 |
)");
}

TEST(PartialRun, ANewTableGoesToItsPlace) {
  const std::vector<std::string> order = {"First", "Small, target 1", "Middle", "Large, target 1", "Last"};
  const auto headings = [&](const std::vector<Section>& sections, const std::vector<std::string>& in) {
    Report report = ParseReport(kReport);
    for (const Section& section : sections) PutSection(section, in, &report);
    std::string all;
    for (const Section& section : report.sections) all += section.heading + ";";
    return all;
  };
  EXPECT_EQ(headings({{"Last", ""}, {"Middle", ""}, {"First", ""}}, order),
            "First;Small, target 1;Middle;Large, target 1;Last;");
  // One that the program does not know any more stays.
  EXPECT_EQ(headings({{"Last", ""}}, {"Last", "Large, target 1"}), "Small, target 1;Last;Large, target 1;");
  EXPECT_EQ(headings({{"Last", ""}}, {"Last"}), "Small, target 1;Large, target 1;Last;");
}

TEST(PartialRun, FiguresTakeThePlaceOfThoseWithTheirKey) {
  const std::string first = R"({"layout": "compact", "window": 100000, "target_fpp": 1e-06, "fpp": 1})";
  const std::string other = R"({"layout": "compact", "window": 100000, "target_fpp": 0.0001, "fpp": 2})";
  const std::string again = R"({"layout": "compact", "window": 100000, "target_fpp": 1e-06, "fpp": 3})";
  const std::string large = R"({"layout": "compact", "window": 1000000, "target_fpp": 1e-06, "fpp": 4})";
  const std::string whole = PutFigures("", {first, other});
  EXPECT_EQ(whole, "[\n  " + first + ",\n  " + other + "\n]\n");
  EXPECT_EQ(PutFigures(whole, {}), whole);
  EXPECT_EQ(PutFigures(whole, {large, again}), "[\n  " + again + ",\n  " + other + ",\n  " + large + "\n]\n");
}

}  // namespace
}  // namespace lethe::bench
