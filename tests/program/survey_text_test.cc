// The report of a survey: what it says, and that it fits a terminal.
#include "src/cli/terminal/survey_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace lethe {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr TextStyle kPlain = {};

// A survey with some of everything.
SurveyText Rich(int64_t memory_bytes = 64 << 20) {
  Survey survey({.id = *IdSpec::Parse("key"), .memory_bytes = memory_bytes});
  for (int i = 0; i < 60000; ++i) {
    const std::string key = i % 50 == 0 ? "unknown" : absl::StrCat("k", i % 97 == 0 ? i - 90 : i);
    SurveyRecord record;
    if (i % 1000 != 1) record.record.key = key;
    const std::string value = absl::StrCat(i);
    record.record.value = i % 3 == 0 ? absl::string_view("same") : absl::string_view(value);
    record.partition = i % 3;
    record.offset = i;
    record.time_ms = 1'700'000'000'000 + 700 * int64_t{i};
    survey.Add(record);
  }
  return {.brokers = "localhost:9092",
          .input = "orders",
          .id_was_given = true,
          .partitions = 3,
          .in_topic = 1'000'000,
          .to_read = 60000,
          .report = survey.Report()};
}

std::string Written(const SurveyText& text, const TextStyle& style = kPlain) {
  std::ostringstream out;
  WriteSurvey(text, style, out);
  return out.str();
}

// Columns of UTF-8 text.
size_t Columns(absl::string_view line) {
  size_t columns = 0;
  for (const char c : line) columns += (c & 0xC0) != 0x80;
  return columns;
}

// 500 records of ten milliseconds say nothing of the rate of a day.
TEST(SurveyText, ABurstIsNoRate) {
  Survey survey({.id = *IdSpec::Parse("key"), .memory_bytes = 64 << 20});
  for (int i = 0; i < 500; ++i) {
    const std::string key = absl::StrCat("k", i);
    SurveyRecord record;
    record.record.key = key;
    record.record.value = key;
    record.offset = i;
    record.time_ms = 1'700'000'000'000 + i / 50;
    survey.Add(record);
  }
  const SurveyedTopic topic = {"orders",
                               SurveyText{.brokers = "localhost:9092",
                                          .input = "orders",
                                          .in_topic = 500,
                                          .to_read = 500,
                                          .report = survey.Report()},
                               ""};
  std::ostringstream out;
  WriteSurveys({topic}, kPlain, out);
  EXPECT_THAT(out.str(), HasSubstr("memory: 64MiB"));
}

TEST(SurveyText, FitsATerminal) {
  for (const int64_t memory : {int64_t{64} << 20, int64_t{1} << 20}) {
    for (const bool blocks : {false, true}) {
      const std::string text = Written(Rich(memory), {.colour = false, .blocks = blocks});
      for (absl::string_view line : absl::StrSplit(text, '\n')) EXPECT_LE(Columns(line), 80u) << line;
    }
  }
}

TEST(SurveyText, ReportsFindingsAndRemedies) {
  const std::string text = Written(Rich());
  for (const char* part :
       {"3 partitions, 1,000,000 records; the newest 60,000 were read", "records without a usable id",
        "partition 1 offset 1: key is null", "that differ from the first one", "How late the copies come",
        "One id is in 1,200 records", "The id is doubtful: "}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("\033")));
  EXPECT_THAT(Written(Rich(), {.colour = true, .blocks = true}), HasSubstr("\033[1m"));
}

// A producer chooses the names of headers and fields; neither may reach the terminal's controls.
TEST(SurveyText, NamesFromRecordsObeyNothing) {
  Survey survey({});
  const std::string header = "id\033]0;title\007\u009b2J'";
  for (int i = 0; i < 100; ++i) {
    const std::string id = absl::StrCat("id", i);
    const std::string value = absl::StrCat(R"({"a\u001b[31m":")", i, R"("})");
    const std::pair<absl::string_view, std::optional<absl::string_view>> headers[] = {{header, id}};
    SurveyRecord record;
    record.record.value = value;
    record.headers = headers;
    record.time_ms = 1'700'000'000'000 + i;
    survey.Add(record);
  }
  const SurveyText text = {
      .brokers = "b:1", .input = "orders", .in_topic = 100, .to_read = 100, .report = survey.Report()};
  const std::string written = Written(text);
  EXPECT_THAT(written, HasSubstr(R"(header:id\x1b]0;title\x07\xc2\x9b2J')"));
  EXPECT_THAT(written, HasSubstr(R"(json:/a\x1b[31m)"));
  EXPECT_THAT(written, AnyOf(HasSubstr(R"(--id $'header:id\x1b]0;title\x07\xc2\x9b2J\'')"),
                             HasSubstr(R"(--id $'json:/a\x1b[31m')")));
  EXPECT_THAT(written, Not(HasSubstr("\033")));
  EXPECT_THAT(written, Not(HasSubstr("\u009b")));
}

TEST(SurveyText, FramesWithoutARegistryAskForIt) {
  const auto survey_of = [](const std::string& payload) {
    Survey survey({});
    for (int i = 0; i < 200; ++i) {
      const std::string value = absl::StrCat(absl::string_view("\0\0\0\0\7", 5),
                                             absl::StrReplaceAll(payload, {{"#", absl::StrCat(i)}}));
      SurveyRecord record;
      record.record.value = value;
      survey.Add(record);
    }
    return SurveyText{
        .brokers = "b:1", .input = "orders", .in_topic = 200, .to_read = 200, .report = survey.Report()};
  };
  SurveyText avro = survey_of("\6avro#");
  EXPECT_TRUE(WantsRegistry(avro));
  EXPECT_THAT(Written(avro), HasSubstr("--schema-registry"));
  avro.has_registry = true;
  EXPECT_FALSE(WantsRegistry(avro));
  EXPECT_FALSE(WantsRegistry(survey_of(R"({"id":"o#"})"))) << "JSON needs none";
}

TEST(SurveyText, QuotesWordsForTheShell) {
  Survey survey({.id = *IdSpec::Parse("json:/order id")});
  const std::string value = R"({"order id":"1"})";
  SurveyRecord record;
  record.record.value = value;
  record.time_ms = 1;
  survey.Add(record);
  const SurveyText text = {.brokers = "b:1",
                           .input = "orders",
                           .id_was_given = true,
                           .in_topic = 1,
                           .to_read = 1,
                           .report = survey.Report()};
  EXPECT_THAT(Written(text), HasSubstr("--id 'json:/order id' --horizon 24h"));
}

TEST(SurveyText, TheCommandsHaveThePropertiesThatWereGivenButNoSecrets) {
  SurveyText text = Rich();
  text.properties = {{"security.protocol", "SASL_SSL"}, {"client.rack", "rack 7"}};
  text.secrets = {"sasl.password"};
  const std::string written = Written(text);
  EXPECT_THAT(written, HasSubstr("--kafka security.protocol=SASL_SSL"));
  EXPECT_THAT(written, HasSubstr("--kafka 'client.rack=rack 7'"));
  EXPECT_THAT(written, Not(HasSubstr("--kafka sasl.password")));
  EXPECT_THAT(written, HasSubstr("add sasl.password"));
}

// Of transactions and compacted topics: no record is missed, there are fewer.
TEST(SurveyText, OffsetsWithoutARecordAreNotCalledRecords) {
  SurveyText text = Rich();
  text.in_topic = text.to_read = 70000;
  EXPECT_THAT(Written(text), HasSubstr("70,000 offsets; all 60,000 records were read"));
}

TEST(SurveyText, AnEarlyEndIsReported) {
  SurveyText text = Rich();
  text.is_whole = false;
  text.to_read = 90000;
  EXPECT_THAT(Written(text), HasSubstr("ended early: 60,000 of the newest 90,000"));
}

TEST(SurveyText, ProposesAHorizonOneStepLongerThanNeeded) {
  IdFigures figures;
  EXPECT_EQ(ProposedHorizon({}, figures), std::nullopt);
  figures.copies.value = 1;
  for (size_t needed = 0; needed <= kHorizons.size(); ++needed) {
    for (size_t i = 0; i < kHorizons.size(); ++i) figures.caught_share[i].value = i < needed ? 0.9 : 1;
    const size_t next = std::min(needed + 1, kHorizons.size() - 1);
    EXPECT_EQ(ProposedHorizon({}, figures), std::max(kHorizons[next], absl::Minutes(10))) << needed;
  }
}

TEST(SurveyText, TheOutputIsCreatedLikeTheInput) {
  SurveyText text = Rich();
  text.topic = {.name = "orders", .partitions = 3, .config = {{"retention.ms", "86400000"}}, .replicas = 3};
  EXPECT_THAT(absl::StrReplaceAll(Written(text), {{" \\\n       ", ""}}),
              HasSubstr("--create --topic orders-unique --partitions 3 --replication-factor 3 "
                        "--config retention.ms=86400000\n"))
      << Written(text);
}

// Seconds taken for milliseconds are January 1970, at a thousand times the rate.
TEST(SurveyText, TimesInAnotherUnitAreSaidAndGiveNoRateAndNoHorizon) {
  Survey survey({.id = *IdSpec::Parse("key"), .memory_bytes = 64 << 20});
  for (int i = 0; i < 500; ++i) {
    const std::string key = absl::StrCat("k", i % 400);
    SurveyRecord record;
    record.record.key = key;
    record.record.value = key;
    record.offset = i;
    record.time_ms = 1'700'000'000 + i;
    survey.Add(record);
  }
  const SurveyText text = {.brokers = "localhost:9092",
                           .input = "orders",
                           .in_topic = 500,
                           .to_read = 500,
                           .report = survey.Report()};
  EXPECT_THAT(text.report.wrong_times, HasSubstr("likely seconds"));
  EXPECT_EQ(text.report.rate, 0);
  EXPECT_EQ(ProposedHorizon(text.report, text.report.candidates.front().figures), std::nullopt);
  const std::string written = Written(text);
  EXPECT_THAT(absl::StrReplaceAll(written, {{"\n    ", " "}}), HasSubstr("likely seconds")) << written;
  EXPECT_THAT(written, Not(HasSubstr("records a second")));
  EXPECT_THAT(written, Not(HasSubstr("How late")));
  std::ostringstream json;
  WriteSurveyJson(text, json);
  EXPECT_THAT(json.str(), HasSubstr("\"begin_ms\":null,\"end_ms\":null,\"wrong_times\":\"500 of 500"));
  std::ostringstream list;
  WriteSurveys({{"orders", text, ""}}, kPlain, list);
  EXPECT_THAT(list.str(), HasSubstr("likely seconds"));
}

}  // namespace
}  // namespace lethe
