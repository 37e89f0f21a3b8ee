// What a user may write for an id or a field, and what is said of the rest.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/record/record_reader.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

TEST(FieldTest, FormsGoThereAndBack) {
  for (const char* text : {"key",
                           "value",
                           "header:id",
                           "header:X-Request Id:+",
                           "json:/id",
                           "json:/a/0/b~1c~0d",
                           "json:/",
                           "json:/a b",
                           "json:/ü",
                           "json:/a+b",
                           "key.json:/id",
                           "framed.json:/a/b",
                           "key.framed.json:/a",
                           "protobuf:/3/7",
                           "key.protobuf:/1",
                           "avro:/a/0/b~1c",
                           "key.avro:/id",
                           "protobuf:/a/0/b",
                           "protobuf:/a_1",
                           "key.protobuf:/a"}) {
    const absl::StatusOr<Field> field = Field::Parse(text);
    ASSERT_OK(field);
    EXPECT_EQ(field->ToString(), text);
  }
  EXPECT_EQ(Field::Parse("json:/a/b")->kind, Field::Kind::kJson);
  EXPECT_EQ(Field::Parse("json:/a/b")->name, "/a/b");
  EXPECT_EQ(Field::Parse("header:id")->kind, Field::Kind::kHeader);
  EXPECT_EQ(Field::Parse("header:id")->name, "id");
}

TEST(FieldTest, ErrorsNameTheNearestRightForm) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"Key", "did you mean key?"},
      {" value ", "did you mean value?"},
      {"json:id", "did you mean json:/id?"},
      {"json:a.b[0].c", "did you mean json:/a/b/0/c?"},
      {"json:$.a['b']", "did you mean json:/a/b?"},
      {"json:/a~b", "did you mean json:/a~0b?"},
      {"json:/a~", "did you mean json:/a~0?"},
      {"json:", "did you mean value?"},
      {"json", "did you mean json:/NAME?"},
      {"json/id", "did you mean json:/id?"},
      {"JSON:/id", "did you mean json:/id?"},
      {"/id", "did you mean json:/id?"},
      {"id", "did you mean json:/id?"},
      {"$.id", "did you mean json:/id?"},
      {"header:", "did you mean header:NAME?"},
      {"headers.id", "did you mean header:id?"},
      {"header=id", "did you mean header:id?"},
      {"", "it is empty"},
      {"framed.json:id", "did you mean framed.json:/id?"},
      {"key.json:id", "did you mean key.json:/id?"},
      {"protobuf/3/7", "did you mean protobuf:/3/7?"},
      {"protobuf:/3/x", "by their numbers"},
      {"protobuf:/a-b", "by their names"},
      {"protobuf:/", "by their names"},
      {"protobuf:order.id", "did you mean protobuf:/order/id?"},
      {"protobuf:/0", "1 to 536870911"},
      {"protobuf:/536870912", "1 to 536870911"},
      {"avro", "did you mean avro:/NAME?"},
      {"avro:", "did you mean value?"},
      {"avro:order.id", "did you mean avro:/order/id?"},
      {"Avro:/id", "did you mean avro:/id?"},
      {"key.avro:id", "did you mean key.avro:/id?"},
  };
  for (const auto& [text, right] : cases) {
    const absl::StatusOr<Field> field = Field::Parse(text);
    ASSERT_FALSE(field.ok()) << text;
    EXPECT_THAT(field.status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'" + text + "'")));
    EXPECT_THAT(field.status().message(), HasSubstr(right));
    EXPECT_THAT(field.status().message(), HasSubstr("header:NAME or json:/POINTER"));
  }
}

// What is proposed is itself right.
TEST(FieldTest, ProposalsParse) {
  for (const char* text :
       {"json:a..b", "json:a/b~", "json:$", "json:[0]", "x.y", "header ", "json:~2", "~", "."}) {
    const absl::StatusOr<Field> field = Field::Parse(text);
    ASSERT_FALSE(field.ok()) << text;
    const std::string message(field.status().message());
    const size_t begin = message.find("did you mean ") + 13;
    const std::string proposal = message.substr(begin, message.find("? (") - begin);
    EXPECT_OK(Field::Parse(proposal)) << message;
  }
}

TEST(IdSpecTest, FieldsAreJoined) {
  const absl::StatusOr<IdSpec> spec = IdSpec::Parse("key+header:tenant+json:/seq");
  ASSERT_OK(spec);
  ASSERT_EQ(spec->fields.size(), 3);
  EXPECT_EQ(spec->ToString(), "key+header:tenant+json:/seq");
  EXPECT_TRUE(spec->reads_json());
  EXPECT_FALSE(IdSpec::Parse("key+value")->reads_json());
}

TEST(IdSpecTest, PartsMayBeOptionalAndPlacesSeveral) {
  for (const char* text : {"json:/a+json:/b?", "key+header:h?+json:/c?", "header:event-id or json:/id",
                           "json:/a+json:/b? or key or avro:/x+avro:/y", "header:a or b or value"}) {
    const absl::StatusOr<IdSpec> spec = IdSpec::Parse(text);
    ASSERT_OK(spec);
    EXPECT_EQ(spec->ToString(), text);
  }
  const IdSpec spec = *IdSpec::Parse("json:/a+json:/b? or key");
  ASSERT_EQ(spec.places(), 2u);
  EXPECT_EQ(spec.place(0).size(), 2u);
  EXPECT_FALSE(spec.place(0)[0].is_optional);
  EXPECT_TRUE(spec.place(0)[1].is_optional);
  EXPECT_EQ(spec.place(1)[0].kind, Field::Kind::kKey);
  EXPECT_TRUE(spec.reads_json());
  EXPECT_TRUE(spec.reads_key());
  EXPECT_EQ(IdSpec::Parse("header:a or b")->fields[0].name, "a or b") << "no field begins there";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"json:/a?", "cannot be optional"},
      {"json:/a?+json:/b?", "cannot all be optional"},
      {"key or json:/a?", "cannot be optional"},
      {"key or key", "twice"},
      {"json:/a+json:/a?", "json:/a is there twice"},
      {"json:/a or json:b", "did you mean json:/b?"},
  };
  for (const auto& [text, what] : wrong) {
    const absl::StatusOr<IdSpec> parsed = IdSpec::Parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr(what));
  }
}

TEST(IdSpecTest, ErrorsNameTheWrongPart) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"json:/a+", "field ''"},
      {"+key", "field ''"},
      {"json:/a+json:b", "field 'json:b': a JSON pointer starts with '/'; did you mean json:/b?"},
      {"json:/a + json:/b", "without spaces"},
      {"key+value+key", "key is there twice"},
      {"json:/a+b", "a name with '+' in it cannot be part of an id"},
      {"", "it is empty"},
      {"framed.json:id", "did you mean framed.json:/id?"},
      {"key.json:id", "did you mean key.json:/id?"},
      {"protobuf/3/7", "did you mean protobuf:/3/7?"},
      {"protobuf:/3/x", "by their numbers"},
      {"protobuf:/0", "1 to 536870911"},
      {"protobuf:/536870912", "1 to 536870911"},
  };
  for (const auto& [text, what] : cases) {
    const absl::StatusOr<IdSpec> spec = IdSpec::Parse(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_THAT(spec.status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  }
  std::string many = "json:/0";
  for (int i = 1; i < 40; ++i) many += "+json:/" + std::to_string(i);
  EXPECT_THAT(IdSpec::Parse(many).status().message(), HasSubstr("at most 32"));
}

TEST(IdSpecTest, WhatNeedsSchemas) {
  for (const char* id : {"avro:/id", "key.avro:/id", "protobuf:/id", "key+protobuf:/a/0"}) {
    EXPECT_TRUE(IdSpec::Parse(id)->needs_schema()) << id;
  }
  for (const char* id : {"key", "value", "header:id", "json:/id", "framed.json:/id", "protobuf:/1"}) {
    EXPECT_FALSE(IdSpec::Parse(id)->needs_schema()) << id;
  }
}

// The readers' limit is of one key or value in one format.
TEST(RecordSpecTest, AtMost64PlacesInOneValue) {
  RecordSpec spec;
  for (int i = 0; i < 32; ++i) spec.id.fields.push_back({Field::Kind::kJson, "/id" + std::to_string(i)});
  for (int i = 0; i < 16; ++i) {
    const std::string n = std::to_string(i);
    spec.counters.push_back({{Field::Kind::kJson, "/key" + n}, Field{Field::Kind::kJson, "/delta" + n}});
  }
  EXPECT_OK(CheckPlaces(spec));
  spec.time = Field{Field::Kind::kJson, "/t", /*in_key=*/true};
  EXPECT_OK(CheckPlaces(spec)) << "the key is another one";
  spec.time->in_key = false;
  EXPECT_THAT(CheckPlaces(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65 fields (json:) of one value")));
}

TEST(IdSpecTest, FingerprintTellsSpecsApart) {
  const std::string fingerprint = IdSpec::Parse("json:/id")->Fingerprint();
  EXPECT_EQ(fingerprint.size(), 16);
  EXPECT_EQ(fingerprint, IdSpec::Parse("json:/id")->Fingerprint());
  EXPECT_NE(fingerprint, IdSpec::Parse("json:/Id")->Fingerprint());
  EXPECT_NE(fingerprint, IdSpec::Parse("header:/id")->Fingerprint());
  // It is in commit metadata and snapshots: a change makes every group's state unusable.
  EXPECT_EQ(fingerprint, "72ec925f340e4462");
}

}  // namespace
}  // namespace lethe
