// Streams whose truth is known: where the id is, what comes twice, what has none.
#include "src/survey/survey.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/survey/id_places.h"
#include "tests/support/encodings.h"
#include "tests/support/fake_schemas.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

constexpr int64_t kStart = 1'700'000'000'000;

using Headers = std::vector<std::pair<absl::string_view, std::optional<absl::string_view>>>;

class FakeHeaders : public RecordHeaders {
 public:
  explicit FakeHeaders(Headers headers) : headers_(std::move(headers)) {}
  std::optional<absl::string_view> Last(const std::string& name) const override {
    std::optional<absl::string_view> last;
    for (const auto& [other, value] : headers_) {
      if (other == name) last = value;
    }
    return last;
  }
  const Headers& all() const { return headers_; }

 private:
  Headers headers_;
};

class SurveyTest : public testing::Test {
 protected:
  void Look(absl::string_view id) { Make(*IdSpec::Parse(id)); }
  void LookForId() { Make(std::nullopt); }

  void Add(std::optional<std::string> key, std::optional<std::string> value, Headers headers = {}) {
    const FakeHeaders fake(std::move(headers));
    SurveyRecord record;
    record.record.key = key;
    record.record.value = value;
    record.record.headers = &fake;
    record.headers = fake.all();
    record.partition = static_cast<int32_t>(sent_ % 4);
    record.offset = sent_ / 4;
    record.time_ms = kStart + sent_ * 20;
    ++sent_;
    survey_->Add(record);
  }

  std::string Best() { return survey_->Report().candidates.at(0).id.ToString(); }

  // Each event a number, a tenth of them sent again a little later.
  template <class Send>
  int64_t WithRetries(int events, const Send& send) {
    std::vector<std::pair<int, int>> due;
    int64_t copies = 0;
    for (int i = 0; i < events; ++i) {
      send(i);
      if (random_() % 10 == 0) due.emplace_back(i + 1 + static_cast<int>(random_() % 50), i);
      while (!due.empty() && (due.front().first <= i || i + 1 == events)) {
        send(due.front().second);
        ++copies;
        due.erase(due.begin());
      }
    }
    return copies;
  }

  std::mt19937_64 random_{TestSeed()};
  std::unique_ptr<Survey> survey_;
  int64_t sent_ = 0;

 private:
  void Make(std::optional<IdSpec> id) {
    survey_ = std::make_unique<Survey>(SurveyOptions{.id = std::move(id), .memory_bytes = 64 << 20});
  }
};

std::string Order(int i) {
  // The customer is one of 300, the time is rounded, the id is nested.
  return absl::StrFormat(R"({"customer":"c%d","order":{"id":"o-%d","lines":[1,2]},"at":%d,"country":"is"})",
                         i % 300, i, i / 10);
}

TEST_F(SurveyTest, CountsWhatComesTwice) {
  Look("json:/order/id");
  const int64_t copies = WithRetries(20000, [&](int i) { Add("k", Order(i)); });
  const SurveyReport report = survey_->Report();
  ASSERT_EQ(report.candidates.size(), 1u);
  const IdFigures& figures = report.candidates[0].figures;
  EXPECT_EQ(report.records, sent_);
  EXPECT_EQ(figures.records, sent_);
  EXPECT_EQ(figures.copies.value, copies);
  EXPECT_EQ(figures.changed.value, 0);
  EXPECT_EQ(figures.caught[3].value, copies);  // within a minute
  EXPECT_EQ(report.candidates[0].quality, IdQuality::kGood);
  EXPECT_NEAR(report.rate, 50, 0.5);
}

TEST_F(SurveyTest, NamesRecordsWithoutAnId) {
  Look("json:/id");
  Add("a", R"({"id":1})");
  Add("a", R"({"id":null})");
  Add("a", R"({"name":2})");
  Add("a", R"({"id":)");
  Add("a", std::nullopt);
  const IdCandidate candidate = survey_->Report().candidates.at(0);
  EXPECT_EQ(candidate.missing, 3);
  EXPECT_EQ(candidate.malformed, 1);
  ASSERT_EQ(candidate.unusable.size(), 3u);
  EXPECT_EQ(candidate.unusable[0].partition, 1);
  EXPECT_EQ(candidate.unusable[0].offset, 0);
  EXPECT_EQ(candidate.unusable[0].reason, "json:/id is neither a string nor a number");
  EXPECT_EQ(candidate.figures.records, 1);
}

TEST_F(SurveyTest, FindsANestedId) {
  LookForId();
  const int64_t copies = WithRetries(10000, [&](int i) {
    Add(absl::StrCat("c", i % 300), Order(i), {{"source", "web"}});
  });
  const SurveyReport report = survey_->Report();
  const IdCandidate& best = report.candidates.at(0);
  EXPECT_EQ(best.id.ToString(), "json:/order/id");
  EXPECT_EQ(best.quality, IdQuality::kGood);
  EXPECT_EQ(best.figures.copies.value, copies);
  EXPECT_EQ(best.remark, "in every record; copies are equal byte for byte");
  for (const IdCandidate& other : report.candidates) {
    if (other.id.ToString() == "key" || other.id.ToString() == "json:/customer") {
      EXPECT_EQ(other.quality, IdQuality::kPoor) << other.id.ToString();
    }
  }
}

TEST_F(SurveyTest, FindsTheIdInTheKey) {
  LookForId();
  WithRetries(10000, [&](int i) { Add(absl::StrCat("id-", i), absl::StrCat("text ", i % 700)); });
  EXPECT_EQ(Best(), "key");
}

TEST_F(SurveyTest, FindsTheIdInAHeader) {
  LookForId();
  WithRetries(10000, [&](int i) {
    const std::string id = absl::StrCat("e", i);
    Add("k", absl::StrCat("text ", i), {{"event-id", absl::string_view(id)}, {"type", "text"}});
  });
  EXPECT_EQ(Best(), "header:event-id");
}

// A header of tracing is no part of the event; of another that differs the survey cannot know that.
TEST_F(SurveyTest, AFieldThatChangesWithEachSendingIsNoId) {
  for (const std::string header : {"trace-id", "send-no"}) {
    LookForId();
    WithRetries(10000, [&](int i) {
      const std::string sending = absl::StrCat("s-", sent_);
      Add("k", Order(i), {{absl::string_view(header), absl::string_view(sending)}});
    });
    const bool is_known = header == "trace-id";
    const SurveyReport report = survey_->Report();
    const IdCandidate& best = report.candidates.at(0);
    EXPECT_EQ(best.id.ToString(), "json:/order/id");
    EXPECT_EQ(best.quality, is_known ? IdQuality::kGood : IdQuality::kDoubtful) << best.remark;
    for (const IdCandidate& candidate : report.candidates) {
      EXPECT_EQ(candidate.quality == IdQuality::kGood, is_known && &candidate == &best)
          << candidate.id.ToString() << ": " << candidate.remark;
      if (candidate.id.ToString() != "header:send-no") continue;
      EXPECT_EQ(candidate.remark.substr(0, 24), "never twice the same, th");
    }
  }
}

// So a random key: what it is the key of is equal.
TEST_F(SurveyTest, AKeyThatIsNewAtEachSendingIsNoId) {
  LookForId();
  WithRetries(6000, [&](int i) { Add(absl::StrCat("k", sent_), Order(i)); });
  EXPECT_EQ(Best(), "json:/order/id");
  for (const IdCandidate& candidate : survey_->Report().candidates) {
    EXPECT_NE(candidate.quality, IdQuality::kGood) << candidate.id.ToString() << ": " << candidate.remark;
  }
}

// The counter of a thing that has no other id, with equal values.
TEST_F(SurveyTest, KeysAndHeadersTellEqualValuesApart) {
  LookForId();
  WithRetries(6000, [&](int i) {
    const std::string beat = absl::StrCat("b", i);
    Add(absl::StrCat("machine-", i % 7), "alive", {{"beat", absl::string_view(beat)}});
  });
  const SurveyReport report = survey_->Report();
  EXPECT_EQ(report.candidates[0].id.ToString(), "header:beat");
  EXPECT_EQ(report.candidates[0].quality, IdQuality::kGood) << report.candidates[0].remark;
  for (const IdCandidate& candidate : report.candidates) {
    const std::string id = candidate.id.ToString();
    if (id == "key" || id == "value") {
      EXPECT_EQ(candidate.quality, IdQuality::kPoor) << id << ": " << candidate.remark;
    }
  }
}

TEST_F(SurveyTest, JoinsTwoWhereNoSingleOneWillDo) {
  LookForId();
  const int64_t copies = WithRetries(20000, [&](int i) {
    Add("k", absl::StrFormat(R"({"client":%d,"seq":%d,"amount":%d})", i % 200, i / 200, i % 7));
  });
  const IdCandidate best = survey_->Report().candidates.at(0);
  EXPECT_EQ(best.id.fields.size(), 2u);
  EXPECT_TRUE(best.id.ToString() == "json:/client+json:/seq" ||
              best.id.ToString() == "json:/seq+json:/client")
      << best.id.ToString();
  EXPECT_EQ(best.figures.copies.value, copies);
}

// No two events of the survey share the moment, and others may: by their names, or by what they say.
TEST_F(SurveyTest, TimesAreNoIds) {
  for (const char* at : {R"("createdAt":%d)", R"("ts_ms":%d)", R"("lsn":%d)", R"("x":17000%08d)",
                         R"("x":"2023-11-14T22:13:20.%08dZ")"}) {
    LookForId();
    WithRetries(2000, [&](int i) {
      const std::string text = absl::StrFormat(*absl::ParsedFormat<'d'>::New(at), 1000 + i);
      Add("k", absl::StrCat("{\"user\":\"u", i % 300, "\",", text, "}"));
    });
    const SurveyReport report = survey_->Report();
    EXPECT_EQ(report.candidates[0].id.ToString(), "value") << at;
    int shown = 0;
    for (const IdCandidate& candidate : report.candidates) {
      const std::string id = candidate.id.ToString();
      if (id == "value" || id == "key" || id == "json:/user") continue;
      ++shown;
      EXPECT_EQ(candidate.quality, IdQuality::kPoor) << id << ": " << candidate.remark;
    }
    EXPECT_EQ(shown, 1) << at << ": a time is shown beside";
  }
}

// 60 of 6,000 events differ from another with their id: a proposal, and never without that number.
TEST_F(SurveyTest, WhatWouldDropEventsThatDifferSaysHowMany) {
  LookForId();
  for (int i = 0; i < 6000; ++i) Add("k", absl::StrFormat(R"({"id":%d,"n":%d})", i % 5940, i));
  for (const IdCandidate& candidate : survey_->Report().candidates) {
    if (candidate.id.ToString() != "json:/id") continue;
    EXPECT_EQ(candidate.quality, IdQuality::kDoubtful);
    EXPECT_EQ(candidate.remark.substr(0, 16), "60 records diffe") << candidate.remark;
  }
}

TEST_F(SurveyTest, FallsBackOnTheWholeValue) {
  LookForId();
  WithRetries(10000, [&](int i) { Add(std::nullopt, absl::StrCat("line ", i)); });
  EXPECT_EQ(Best(), "value");
  EXPECT_EQ(survey_->Report().candidates.at(0).quality, IdQuality::kDoubtful);
}

TEST_F(SurveyTest, SchemaRegistryFramesAreSeen) {
  LookForId();
  for (int i = 0; i < 100; ++i) {
    Add(absl::StrCat("k", i), absl::StrCat(absl::string_view("\0\0\0\0\x2A", 5), "avro", i));
  }
  const RegistryFrames frames = survey_->Report().frames;
  EXPECT_TRUE(frames.in_values());
  EXPECT_EQ(frames.value_schema(), 42);
  EXPECT_FALSE(frames.in_keys());
}

TEST_F(SurveyTest, FramedJsonNeedsNoRegistry) {
  LookForId();
  WithRetries(6000, [&](int i) {
    Add("k", absl::StrCat(absl::string_view("\0\0\0\0\x2A", 5), R"({"id":"o)", i, R"("})"));
  });
  EXPECT_EQ(Best(), "framed.json:/id");
}

TEST_F(SurveyTest, ARegistrysAnswerThatIsNoSchemaHasNoFields) {
  for (const char* text : {"0", "true", "[0]", R"({"type":0})", R"({"type":{"type":null}})", ""}) {
    test::FakeSchemas schemas;
    schemas.Put(1, {Schema::Type::kAvro, text, {}});
    IdPlaces places;
    places.AddValue(std::string("\0\0\0\0\1x", 6), nullptr, &schemas);
    EXPECT_TRUE(places.AtLeast(1, 1, 10).empty()) << text;
  }
}

TEST_F(SurveyTest, FieldsOfAvroAreFoundByTheirNames) {
  test::FakeSchemas schemas;
  schemas.Put(42, {Schema::Type::kAvro,
                   R"({"type":"record","name":"E","fields":[
                       {"name":"order","type":{"type":"record","name":"O","fields":[
                           {"name":"flag","type":"boolean"},{"name":"id","type":["null","string"]}]}}]})",
                   {}});
  SurveyOptions options;
  options.memory_bytes = 64 << 20;
  options.schemas = &schemas;
  survey_ = std::make_unique<Survey>(options);
  WithRetries(6000, [&](int i) {
    const std::string id = absl::StrFormat("o%05d", i);
    Add("k", absl::StrCat(absl::string_view("\0\0\0\0\x2A\x01\x02\x0C", 8), id));
  });
  EXPECT_EQ(Best(), "avro:/order/id");
}

// Of two kinds of records in a topic the smaller one has a schema.
TEST_F(SurveyTest, AnIdOfAMixedTopicIsNotCalledWrong) {
  test::FakeSchemas schemas;
  schemas.Put(
      42,
      {Schema::Type::kAvro, R"({"type":"record","name":"E","fields":[{"name":"id","type":"string"}]})", {}});
  SurveyOptions options;
  options.memory_bytes = 64 << 20;
  options.schemas = &schemas;
  survey_ = std::make_unique<Survey>(options);
  WithRetries(6000, [&](int i) {
    const std::string id = absl::StrFormat("o%05d", i);
    Add("k", i % 10 < 4 ? test::Framed(42, "\x0C" + id) : absl::StrCat("<order ", i, ">"));
  });
  const SurveyReport report = survey_->Report();
  EXPECT_NEAR(report.frames.value_share(), 0.4, 0.02);
  const auto avro = std::find_if(report.candidates.begin(), report.candidates.end(),
                                 [](const IdCandidate& each) { return each.id.ToString() == "avro:/id"; });
  ASSERT_NE(avro, report.candidates.end());
  EXPECT_EQ(avro->quality, IdQuality::kDoubtful) << avro->remark;
}

TEST_F(SurveyTest, FieldsOfFramedKeysAreCandidates) {
  test::FakeSchemas schemas;
  schemas.Put(
      42,
      {Schema::Type::kAvro, R"({"type":"record","name":"K","fields":[{"name":"id","type":"string"}]})", {}});
  SurveyOptions options;
  options.memory_bytes = 64 << 20;
  options.schemas = &schemas;
  survey_ = std::make_unique<Survey>(options);
  WithRetries(6000, [&](int i) {
    Add(test::Framed(42, absl::StrFormat("\x0Co%05d", i)), absl::StrCat("text ", i % 7, i % 3));
  });
  EXPECT_EQ(Best(), "key.avro:/id");
}

// An order of a customer, of whom there are 300, in a Protobuf message behind a frame.
std::string ProtobufOrder(int i) {
  using test::BytesField;
  const std::string order = BytesField(1, absl::StrFormat("o%05d", i)) + test::VarintField(2, 7);
  return test::Framed(
      42, std::string(1, '\0') + BytesField(1, absl::StrCat("c", i % 300)) + BytesField(3, order));
}

TEST_F(SurveyTest, FieldsOfProtobufAreFoundByTheirNames) {
  test::FakeSchemas schemas;
  schemas.Put(42, {Schema::Type::kProtobuf,
                   R"(syntax = "proto3"; message Event { string customer = 1; map<string, string> tags = 2;
                      message Order { string id = 1; int32 lines = 2; } Order order = 3; bool paid = 4; })",
                   {}});
  SurveyOptions options;
  options.memory_bytes = 64 << 20;
  options.schemas = &schemas;
  survey_ = std::make_unique<Survey>(options);
  WithRetries(6000, [&](int i) { Add("k", ProtobufOrder(i)); });
  EXPECT_EQ(Best(), "protobuf:/order/id");
}

TEST_F(SurveyTest, FieldsOfProtobufAreFoundByTheirNumbersWithoutARegistry) {
  for (const bool is_framed : {true, false}) {
    LookForId();
    WithRetries(6000, [&](int i) { Add("k", ProtobufOrder(i).substr(is_framed ? 0 : 6)); });
    EXPECT_EQ(Best(), "protobuf:/3/1");
  }
}

TEST_F(SurveyTest, TextIsNotTakenForProtobuf) {
  LookForId();
  WithRetries(6000, [&](int i) { Add("k", absl::StrFormat("id-%06d", i)); });  // would be field 13, 8 bytes
  EXPECT_EQ(Best(), "value");
}

TEST_F(SurveyTest, NumbersBeyond64BitsAndOddNamesCanBeIds) {
  LookForId();
  WithRetries(6000, [&](int i) {
    Add("k", absl::StrFormat(R"({"a/b~":{"id":900000000000000000000000000%d},"a+b":%d})", i, i));
  });
  EXPECT_EQ(Best(), "json:/a~1b~0/id");
}

TEST_F(SurveyTest, AFewRecordsAreEnoughToAnswer) {
  LookForId();
  const SurveyReport nothing = survey_->Report();
  EXPECT_EQ(nothing.records, 0);
  EXPECT_EQ(nothing.begin, absl::InfinitePast());
  LookForId();
  for (int i = 0; i < 3; ++i) Add("k", Order(i));
  EXPECT_EQ(Best(), "json:/order/id");
}

TEST_F(SurveyTest, WildTimesDoNotStretchTheSpan) {
  Look("key");
  for (int i = 0; i < 10000; ++i) Add(absl::StrCat(i), "x");
  SurveyRecord wild;
  wild.record.key = "wild";
  wild.time_ms = kStart * 2;
  survey_->Add(wild);
  wild.time_ms = -1;
  survey_->Add(wild);
  const SurveyReport report = survey_->Report();
  EXPECT_EQ(report.without_time, 1);
  EXPECT_NEAR(report.rate, 50, 0.5);
  EXPECT_LE(report.end, absl::FromUnixMillis(kStart + 10000 * 20));
}

}  // namespace
}  // namespace lethe
