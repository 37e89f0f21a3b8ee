#include "src/cli/commands/plan_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>

#include "absl/strings/numbers.h"
#include "tests/support/naive_json.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

constexpr double kTarget = 4e-7;

PlanCommandOptions OneDay(ReportFormat format) {
  return {{.rate = 20000, .horizon = absl::Hours(24), .target_fpp = kTarget}, format};
}

std::string Printed(const PlanCommandOptions& options) {
  std::ostringstream out;
  EXPECT_OK(RunPlan(options, out));
  return out.str();
}

TEST(PlanCommand, TextHasAllThatIsPlanned) {
  const std::string text = Printed(OneDay(ReportFormat::kText));
  for (const char* part : {"20000 unique events a second", "24h, with 1.728e+09 ids",
                           "4e-07: some 691 good events", " as the limit", "bits for each id",
                           "N = 16 past generations, t = 1h30m, fingerprints of", "exact set    24.1 GiB"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(PlanCommand, JsonHasTheValuesOfThePlan) {
  const PlanCommandOptions options = OneDay(ReportFormat::kJson);
  const Plan plan = *MakePlan(options.request);
  const std::optional<test::NaiveJson> json = test::NaiveParser::Parse(Printed(options));
  ASSERT_TRUE(json.has_value());
  const auto value = [&](const std::string& name) {
    const auto at = std::find(json->names.begin(), json->names.end(), name);
    double number = -1;
    EXPECT_TRUE(
        at != json->names.end() &&
        absl::SimpleAtod(*json->values.at(static_cast<size_t>(at - json->names.begin())).text, &number))
        << name;
    return number;
  };
  EXPECT_EQ(value("rate"), 20000);
  EXPECT_EQ(value("horizon_ms"), 86'400'000);
  EXPECT_EQ(value("target_fpp"), kTarget);
  EXPECT_EQ(value("memory_bytes"), static_cast<double>(plan.memory_bytes));
  EXPECT_EQ(value("filter_bytes"), static_cast<double>(plan.filter_bytes));
  EXPECT_EQ(value("past_generations"), plan.past_generations);
  EXPECT_EQ(value("refresh_period_ms"), absl::ToDoubleMilliseconds(plan.refresh_period));
  EXPECT_EQ(value("fingerprint_bits"), plan.fingerprint_bits);
  EXPECT_EQ(value("ids"), plan.ids);
  EXPECT_EQ(value("bits_per_id"), plan.bits_per_id);
  EXPECT_EQ(value("false_drops_per_day"), plan.false_drops_per_day);
  EXPECT_EQ(value("exact_bytes"), static_cast<double>(plan.exact_bytes));
  EXPECT_EQ(value("exact_bits_per_id"), plan.exact_bits_per_id);
  EXPECT_EQ(json->names.size(), 13u);
}

TEST(PlanCommand, WhatCannotBeMetIsRefusedAndNothingPrinted) {
  std::ostringstream out;
  const absl::Status status = RunPlan({{.rate = 1}, ReportFormat::kText}, out);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace lethe
