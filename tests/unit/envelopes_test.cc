// Known envelopes, as their own encoders write them: the survey names each, and proposes its specification's
// id.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/record/event_list.h"
#include "src/survey/survey.h"
#include "tests/support/survey_samples.h"

namespace lethe {
namespace {

using testing::HasSubstr;

using test::Sample;

std::optional<std::string> TextOf(const nlohmann::json& element) {
  if (!element.is_string()) return std::nullopt;
  return element.get<std::string>();
}

// One JSON object a line. Their encoders: cloudevents 2.2.0 of Python, to_binary and to_structured of its
// Kafka binding, where each of two sources counts its ids; Debezium 3.6.1 embedded with PostgreSQL 15 and the
// JSON converter, of inserts, updates and deletes, and its EventRouter; segment-analytics-python 2.4.0;
// snowplow-tracker 1.1.0, and its events enriched by hand through snowplow-analytics-sdk 0.2.3;
// opentelemetry-sdk 1.45.2, to_json of a log record and its OTLP encoder as JSON.
std::vector<Sample> Read(const std::string& name) {
  std::ifstream file(absl::StrCat(LETHE_SOURCE_DIR, "/tests/unit/envelopes/", name, ".ndjson"));
  std::vector<Sample> samples;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json record = nlohmann::json::parse(line);
    Sample& sample = samples.emplace_back();
    sample.key = TextOf(record["key"]);
    sample.value = TextOf(record["value"]);
    for (const auto& [header, text] : record["headers"].items()) {
      sample.headers[header] = *TextOf(text);
    }
  }
  EXPECT_FALSE(samples.empty()) << name;
  return samples;
}

SurveyReport Surveyed(const std::vector<Sample>& samples, std::optional<IdSpec> id = std::nullopt) {
  Survey survey({.id = std::move(id), .memory_bytes = 64 << 20});
  int64_t offset = 0;
  for (const Sample& sample : samples) {
    test::AddTo(survey, sample, offset, 1'795'860'000'000 + 20 * offset);
    ++offset;
  }
  return survey.Report();
}

// Nothing that would drop a record that differs from the first with its id is called good.
void ExpectNoLossCalledGood(const SurveyReport& report) {
  for (const IdCandidate& candidate : report.candidates) {
    if (candidate.quality != IdQuality::kGood) continue;
    EXPECT_EQ(candidate.figures.changed.value, 0) << candidate.id.ToString() << ": " << candidate.remark;
  }
}

// A third of the records is sent again: the id finds these, and no other.
void ExpectIdOf(const std::string& name, const std::string& envelope, const std::string& id) {
  SCOPED_TRACE(name);
  std::vector<Sample> samples = Read(name);
  const size_t events = samples.size();
  int64_t copies = 0;
  for (size_t i = 0; i < events; i += 3) {
    if (!samples[i].value) continue;
    samples.push_back(samples[i]);
    ++copies;
  }
  const SurveyReport report = Surveyed(samples);
  const IdCandidate& best = report.candidates.at(0);
  EXPECT_EQ(report.envelope, envelope);
  EXPECT_EQ(best.id.ToString(), id) << best.remark;
  EXPECT_EQ(best.quality, IdQuality::kGood) << best.remark;
  EXPECT_EQ(best.figures.copies.value, copies) << best.remark;
  EXPECT_EQ(best.figures.changed.value, 0) << best.remark;
  ExpectNoLossCalledGood(report);
}

TEST(EnvelopesTest, EachIsNamedAndItsSpecificationsIdProposed) {
  ExpectIdOf("cloudevents_binary", "CloudEvents, binary", "header:ce_id+header:ce_source");
  ExpectIdOf("cloudevents_structured", "CloudEvents, structured", "json:/id+json:/source");
  ExpectIdOf("debezium", "Debezium change events", "key+json:/source/lsn");
  ExpectIdOf("debezium_schema", "Debezium change events", "key+json:/payload/source/lsn");
  ExpectIdOf("debezium_outbox", "Debezium outbox", "header:id");
  ExpectIdOf("segment", "Segment", "json:/messageId");
  ExpectIdOf("snowplow_enriched", "Snowplow", "json:/event_id");
  ExpectIdOf("otel_logs", "OpenTelemetry logs", "json:/attributes/log.record.uid");
}

// 2,050 events with one value: their identity is in the headers.
TEST(EnvelopesTest, BinaryCloudEventsWithEqualValues) {
  const std::vector<Sample> from = Read("cloudevents_binary");
  std::vector<Sample> samples;
  for (int i = 0; i < 2050; ++i) {
    Sample sample = from[static_cast<size_t>(i) % from.size()];
    sample.headers["ce_id"] = absl::StrCat(i / 2);
    sample.headers["ce_time"] = absl::StrCat("2026-11-28T09:00:00.", 100'000 + i, "Z");
    samples.push_back(sample);
  }
  const SurveyReport report = Surveyed(samples);
  EXPECT_EQ(report.candidates.at(0).id.ToString(), "header:ce_id+header:ce_source");
  EXPECT_EQ(report.candidates.at(0).quality, IdQuality::kGood) << report.candidates.at(0).remark;
  ExpectNoLossCalledGood(report);
  for (const char* id : {"header:ce_type", "header:ce_id", "value"}) {
    const SurveyReport given = Surveyed(samples, *IdSpec::Parse(id));
    EXPECT_EQ(given.candidates.at(0).quality, IdQuality::kPoor) << id << ": " << given.candidates[0].remark;
  }
  const std::string remark = Surveyed(samples, *IdSpec::Parse("header:ce_id")).candidates.at(0).remark;
  EXPECT_THAT(remark, HasSubstr("1,025")) << "how many it would drop";
}

TEST(EnvelopesTest, TombstonesOfDebeziumHaveNoPartInThePresence) {
  const std::vector<Sample> all = Read("debezium");
  std::vector<Sample> without;
  int64_t tombstones = 0;
  for (const Sample& sample : all) {
    tombstones += !sample.value;
    if (sample.value) without.push_back(sample);
  }
  ASSERT_GT(tombstones, 5);
  for (const bool has_tombstones : {true, false}) {
    const SurveyReport report = Surveyed(has_tombstones ? all : without);
    const IdCandidate& best = report.candidates.at(0);
    EXPECT_EQ(report.tombstones, has_tombstones ? tombstones : 0);
    EXPECT_EQ(best.present_share, 1);
    EXPECT_EQ(best.tombstones, report.tombstones);
    EXPECT_EQ(best.id.ToString(), "key+json:/source/lsn") << best.remark;
    EXPECT_EQ(best.quality, IdQuality::kGood) << best.remark;
    for (const IdCandidate& candidate : report.candidates) {
      const std::string id = candidate.id.ToString();
      if (id.find("/ts_") == id.npos && id != "json:/source/lsn") continue;
      EXPECT_EQ(candidate.quality, IdQuality::kPoor) << id << ": " << candidate.remark;
    }
  }
}

// A restarted connector sends events again with another time of its own in them.
TEST(EnvelopesTest, ChangeEventsThatAreSentAgainDifferAndTheIdStays) {
  std::vector<Sample> samples;
  for (int i = 0; i < 20; ++i) {
    for (Sample sample : Read("debezium")) {
      if (!sample.value) continue;
      sample.key = absl::StrCat(*sample.key, i);
      samples.push_back(sample);
    }
  }
  for (size_t i = 0; i < 30; ++i) {
    Sample again = samples[i];
    *again.value += " ";
    samples.push_back(again);
  }
  const SurveyReport report = Surveyed(samples);
  const IdCandidate& best = report.candidates.at(0);
  EXPECT_EQ(best.id.ToString(), "key+json:/source/lsn");
  EXPECT_EQ(best.quality, IdQuality::kDoubtful) << best.remark;
  EXPECT_THAT(best.remark, HasSubstr("30 "));
}

// What the encoders themselves send holds several events: lethe judges it as one record.
TEST(EnvelopesTest, ListsOfEventsAreRecognized) {
  struct Case {
    const char* sample;
    const char* envelope;
    const char* pointer;
    int64_t records, events;
  };
  for (const Case& each :
       {Case{"segment_batch", "Segment", "/batch", 2, 14}, Case{"snowplow_batch", "Snowplow", "/data", 3, 12},
        Case{"otlp_logs", "OpenTelemetry logs", "/resourceLogs", 4, 12},
        Case{"otlp_logs_of_one", "OpenTelemetry logs", "", 0, 0}}) {
    const SurveyReport report = Surveyed(Read(each.sample));
    EXPECT_EQ(report.envelope, each.envelope);
    EXPECT_EQ(report.lists.pointer, each.pointer) << each.sample;
    EXPECT_EQ(report.lists.records, each.records) << each.sample;
    EXPECT_EQ(report.lists.events, each.events) << each.sample;
    EXPECT_EQ(report.candidates.at(0).id.ToString(), "value") << each.sample;
  }
  for (const char* sample :
       {"segment", "debezium", "debezium_schema", "cloudevents_structured", "otel_logs"}) {
    EXPECT_EQ(Surveyed(Read(sample)).lists.records, 0) << sample;
  }
}

TEST(EnvelopesTest, PartsOfAnEventAreNoList) {
  EventListFinder finder;
  for (const char* value : {R"({"id":1,"records":[{"id":1},{"id":2}]})", R"({"order":7,"events":[1,2]})",
                            R"({"order":7,"lines":[{"id":1},{"id":2}]})", R"({"data":[{"x":1},{"x":2}]})",
                            "[1,2]", "[]", "{", "text", ""}) {
    EXPECT_FALSE(finder.Find(value)) << value;
  }
  const auto list = finder.Find(R"( [{"messageId":"a"},{"messageId":"b"}])");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->events, 2);
  EXPECT_TRUE(IsOfOneElement(*IdSpec::Parse("json:/0/messageId"), *list));
  EXPECT_FALSE(IsOfOneElement(*IdSpec::Parse("json:/id"), *list));
  EXPECT_TRUE(IsOfOneElement(*IdSpec::Parse("key+json:/batch/0/id"), {"/batch", 2}));
  EXPECT_FALSE(IsOfOneElement(*IdSpec::Parse("json:/batch/id"), {"/batch", 2}));
}

}  // namespace
}  // namespace lethe
