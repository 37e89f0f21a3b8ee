// Ids in Avro and in Protobuf by names, with the schemas of a registry: the same bytes as in JSON, whatever
// becomes of the schema. What cannot be read is missing, malformed or waits.
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/record/record_reader.h"
#include "tests/support/encodings.h"
#include "tests/support/fake_schemas.h"

namespace lethe {
namespace {

using State = RecordFields::State;
using test::AvroString;
using test::BytesField;
using test::FakeSchemas;
using test::Fixed;
using test::Framed;
using test::Tag;
using test::VarintField;
using test::Zigzag;
using testing::HasSubstr;
using testing::Not;

const std::string kFirstMessage(1, '\0');  // its message index

std::string Golden(const std::string& name) {
  std::ifstream file(absl::StrCat(LETHE_SOURCE_DIR, "/tests/support/golden/", name), std::ios::binary);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Schema Avro(const std::string& text) { return {Schema::Type::kAvro, text, {}}; }
Schema Protobuf(const std::string& text) { return {Schema::Type::kProtobuf, text, {}}; }

class Headers final : public RecordHeaders {
 public:
  Headers(const std::string& name, const std::string& value) : headers_{{name, value}} {}
  std::optional<absl::string_view> Last(const std::string& name) const override {
    const auto found = headers_.find(name);
    return found == headers_.end() ? std::nullopt : std::optional<absl::string_view>(found->second);
  }

 private:
  std::map<std::string, std::string> headers_;
};

// The id, or the state's name.
std::string IdOf(const RecordFields& fields) {
  switch (fields.id_state) {
    case State::kPresent:
      return std::string(fields.id);
    case State::kMissing:
      return "missing";
    case State::kMalformed:
      return "malformed";
    case State::kWaiting:
      return "waiting";
  }
  return "";
}

class SchemaFormats : public testing::Test {
 protected:
  RecordReader ReaderOf(const std::string& id) {
    return RecordReader({.id = IdSpec::Parse(id).value(), .schemas = &schemas_});
  }
  std::string IdOfValue(const std::string& id, const std::string& value) {
    RecordReader reader = ReaderOf(id);
    const RecordFields& fields = reader.Read({.value = value});
    EXPECT_EQ(fields.reason.empty(),
              fields.id_state == State::kPresent || fields.id_state == State::kWaiting);
    reason_ = std::string(fields.reason);
    return IdOf(fields);
  }
  // Of one message of this schema, without its frame.
  std::string IdInMessage(const std::string& proto, const std::string& place, const std::string& message) {
    const int32_t schema = ++last_schema_;
    schemas_.Put(schema, Protobuf(proto));
    return IdOfValue("protobuf:" + place, Framed(schema, kFirstMessage + message));
  }

  FakeSchemas schemas_;
  std::string reason_;
  int32_t last_schema_ = 1000;
};

// The bytes that fastavro and Google's Python library wrote: see tests/support/golden/write.py.
TEST_F(SchemaFormats, TheSameIdInEveryFormatAndVersion) {
  schemas_.Put(1, Avro(Golden("order_1.avsc")));
  schemas_.Put(2, Avro(Golden("order_2.avsc")));
  schemas_.Put(3, Protobuf(Golden("order.proto")));
  schemas_.Put(4, Protobuf(Golden("order.descriptor")));
  const std::string json = Golden("order.json");
  const std::string protobuf = Golden("order.protobuf");
  for (const std::string place : {"/order/id",
                                  "/order/n",
                                  "/order/big",
                                  "/order/ratio",
                                  "/order/half",
                                  "/order/price",
                                  "/order/kind",
                                  "/order/uid",
                                  "/order/tags/0",
                                  "/order/tags/1",
                                  "/order/counts/0",
                                  "/order/counts/1",
                                  "/order/counts/2",
                                  "/order/labels/a",
                                  "/order/labels/b~1c",
                                  "/order/zero",
                                  "/at",
                                  "/order",
                                  "/order/tags",
                                  "/order/counts/3",
                                  "/order/tags/2",
                                  "/order/labels/c",
                                  "/other"}) {
    const std::string expected = IdOfValue("json:" + place, json);
    EXPECT_EQ(IdOfValue("avro:" + place, Framed(1, Golden("order_1.avro"))), expected) << place;
    EXPECT_EQ(IdOfValue("avro:" + place, Framed(2, Golden("order_2.avro"))), expected) << place;
    EXPECT_EQ(IdOfValue("protobuf:" + place, Framed(3, kFirstMessage + protobuf)), expected) << place;
    EXPECT_EQ(IdOfValue("protobuf:" + place, Framed(4, kFirstMessage + protobuf)), expected) << place;
  }
  EXPECT_EQ(IdOfValue("avro:/previous/order/id+avro:/previous/at", Framed(2, Golden("order_2.avro"))),
            IdOfValue("json:/order/id+json:/x", R"({"order":{"id":"A-17ä"},"x":1})"));
  RecordReader key = ReaderOf("key.avro:/order/n");
  EXPECT_EQ(IdOf(key.Read({.key = Framed(1, Golden("order_1.avro"))})), "n-17");
}

TEST_F(SchemaFormats, ByTheGuidInAHeader) {
  std::array<uint8_t, 16> guid = {7};
  schemas_.Put(guid, Avro(R"({"type":"record","name":"R","fields":[{"name":"id","type":"int"}]})"));
  const std::string bytes = "\1\7" + std::string(15, '\0');
  const Headers of_value("__value_schema_id", bytes);
  RecordReader avro = ReaderOf("avro:/id");
  EXPECT_EQ(IdOf(avro.Read({.value = Zigzag(5), .headers = &of_value})), "n5");
  EXPECT_EQ(IdOf(avro.Read({.value = Zigzag(6)})), "malformed");
  const Headers of_key("__key_schema_id", bytes);
  RecordReader key = ReaderOf("key.avro:/id");
  EXPECT_EQ(IdOf(key.Read({.key = Zigzag(5), .headers = &of_key})), "n5");

  guid[0] = 8;
  schemas_.Put(guid,
               Protobuf("message A {} message B { message C {} message D { optional string id = 1; } }"));
  const std::string other = "\1\b" + std::string(15, '\0');
  const Headers nested("__value_schema_id", other + Zigzag(2) + Zigzag(1) + Zigzag(1));
  RecordReader protobuf = ReaderOf("protobuf:/id");
  EXPECT_EQ(IdOf(protobuf.Read({.value = BytesField(1, "x"), .headers = &nested})), "sx");
  const Headers first("__value_schema_id", other);
  EXPECT_EQ(IdOf(protobuf.Read({.value = BytesField(1, "x"), .headers = &first})), "missing");
  const Headers wrong("__value_schema_id", other + Zigzag(5));
  EXPECT_EQ(IdOf(protobuf.Read({.value = BytesField(1, "x"), .headers = &wrong})), "malformed");
}

TEST_F(SchemaFormats, ASchemaThatIsNotThereYet) {
  RecordReader reader = ReaderOf("avro:/id");
  const std::string value = Framed(7, Zigzag(5));
  const RecordFields& fields = reader.Read({.value = value});
  EXPECT_EQ(fields.id_state, State::kWaiting);
  ASSERT_TRUE(fields.waits_for);
  EXPECT_EQ(fields.waits_for->key, SchemaKey(7));
  EXPECT_EQ(IdOf(reader.Read({.value = value})), "waiting");
  schemas_.Put(7, Avro(R"({"type":"record","name":"R","fields":[{"name":"id","type":"int"}]})"));
  EXPECT_EQ(IdOf(reader.Read({.value = value})), "n5");
  const int64_t finds = schemas_.finds;
  EXPECT_EQ(IdOf(reader.Read({.value = value})), "n5");
  EXPECT_EQ(schemas_.finds, finds) << "it is known for ever";
  EXPECT_EQ(fields.waits_for, std::nullopt);
}

TEST_F(SchemaFormats, ASchemaThatIsOfNoUse) {
  schemas_.PutUnknown(7);
  schemas_.Put(8, Protobuf("message R {}"));
  schemas_.Put(9, Avro("{"));
  schemas_.Put(10, {Schema::Type::kJson, "{}", {}});
  for (const int32_t schema : {7, 8, 9, 10}) {
    EXPECT_EQ(IdOfValue("avro:/id", Framed(schema, Zigzag(5))), "malformed");
    EXPECT_THAT(reason_, HasSubstr(absl::StrCat("schema id ", schema)));
  }
  schemas_.Put(8, Protobuf("message"));
  for (const int32_t schema : {7, 8, 9, 10}) {
    EXPECT_EQ(IdOfValue("protobuf:/id", Framed(schema, kFirstMessage)), "malformed");
    EXPECT_THAT(reason_, HasSubstr(absl::StrCat("schema id ", schema)));
  }
  RecordReader without({.id = IdSpec::Parse("avro:/id").value()});
  EXPECT_EQ(IdOf(without.Read({.value = Framed(7, Zigzag(5))})), "malformed");
}

TEST_F(SchemaFormats, MessagesNameTypeAndFields) {
  schemas_.Put(7, Avro(R"({"type":"record","name":"R","fields":[{"name":"at","type":"long"},
      {"name":"o","type":{"type":"record","name":"O","fields":[{"name":"key","type":"string"}]}}]})"));
  schemas_.Put(8,
               Protobuf("message R { optional int32 a = 1; repeated int32 b = 2; optional string c = 3; }"));
  schemas_.Put(9, {Schema::Type::kJson, R"({"properties":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{}}})", {}});
  const auto reason = [&](const std::string& field, const std::string& value) {
    IdOfValue(field, value);
    return reason_;
  };
  EXPECT_THAT(reason("avro:/id", Framed(7, Zigzag(1) + Zigzag(1) + "x")),
              HasSubstr("is not in schema id 7, which has /at, /o/key"))
      << reason_;
  EXPECT_THAT(reason("protobuf:/id", Framed(8, kFirstMessage)), HasSubstr("schema id 8, which has /a, /c"))
      << reason_;
  EXPECT_THAT(reason("avro:/id", Framed(8, kFirstMessage)),
              HasSubstr("schema id 8 is a Protobuf schema with the fields /a, /c: use protobuf:"))
      << reason_;
  EXPECT_THAT(reason("protobuf:/id", Framed(7, kFirstMessage)), HasSubstr("/at, /o/key: use avro:"))
      << reason_;
  EXPECT_THAT(reason("avro:/id", Framed(9, "{}")),
              HasSubstr("a JSON Schema with the fields /a, /b, /c, /d, /e and others: use framed.json:"))
      << reason_;
}

TEST_F(SchemaFormats, ASchemaWithoutTheField) {
  schemas_.Put(7, Avro(R"({"type":"record","name":"R","fields":[{"name":"a","type":
                           {"type":"map","values":"int"}}]})"));
  schemas_.Put(8, Protobuf("message R { optional int32 a = 1; }"));
  const std::string avro = Framed(7, Zigzag(0));
  const std::string protobuf = Framed(8, kFirstMessage);
  EXPECT_EQ(IdOfValue("avro:/id", avro), "missing");
  EXPECT_THAT(reason_, HasSubstr("schema id 7"));
  EXPECT_EQ(IdOfValue("avro:/a/b", avro), "missing");
  EXPECT_THAT(reason_, Not(HasSubstr("schema id 7"))) << "it could be there";
  EXPECT_EQ(IdOfValue("protobuf:/id", protobuf), "missing");
  EXPECT_THAT(reason_, HasSubstr("schema id 8"));
  EXPECT_EQ(IdOfValue("protobuf:/a", protobuf), "missing");
  EXPECT_THAT(reason_, Not(HasSubstr("schema id 8")));
  EXPECT_EQ(IdOfValue("avro:/id+avro:/a", avro), "missing");
}

TEST_F(SchemaFormats, WhatIsNotFramedOrBroken) {
  schemas_.Put(7, Avro(R"({"type":"record","name":"R","fields":[{"name":"id","type":"string"}]})"));
  schemas_.Put(8, Protobuf("message R { optional string id = 1; }"));
  for (const std::string& value :
       {std::string(R"({"id":"a")"), std::string(), Framed(0, AvroString("a")), Framed(-1, AvroString("a")),
        std::string(3, '\0'), "\3" + std::string(18, '\0'), Framed(7, AvroString("a") + "x"),
        Framed(7, "")}) {
    EXPECT_EQ(IdOfValue("avro:/id", value), "malformed");
  }
  for (const std::string& value :
       {std::string(R"(["a"])"), Framed(8, ""), Framed(8, Zigzag(1) + Zigzag(1)),
        Framed(8, Zigzag(2) + Zigzag(0) + Zigzag(0)), Framed(8, kFirstMessage + "\7")}) {
    EXPECT_EQ(IdOfValue("protobuf:/id", value), "malformed");
  }
  RecordReader reader = ReaderOf("avro:/id");
  EXPECT_EQ(IdOf(reader.Read({})), "missing") << "a tombstone";
}

// In the middle of a change of format.
TEST_F(SchemaFormats, JsonWithoutAFrameIsReadByTheSamePlaces) {
  schemas_.Put(7, Avro(R"({"type":"record","name":"R","fields":[{"name":"id","type":"string"}]})"));
  schemas_.Put(8, Protobuf("message R { optional string id = 1; }"));
  for (const char* field : {"avro:/id", "protobuf:/id"}) {
    RecordReader reader = ReaderOf(field);
    const bool is_avro = absl::StartsWith(field, "avro");
    const std::string framed = is_avro ? Framed(7, AvroString("a")) : Framed(8, kFirstMessage + "\012\1a");
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(IdOf(reader.Read({.value = R"( {"id":"a"})"})), "sa") << field;
      EXPECT_EQ(IdOf(reader.Read({.value = framed})), "sa") << field;
    }
    EXPECT_EQ(IdOf(reader.Read({.value = R"({"no":1})"})), "missing") << field;
    EXPECT_EQ(reader.Read({.value = R"({"no":1})"}).reason, absl::StrCat(field, " is not there"));
  }
}

// The oldest makes room, whatever its number.
TEST_F(SchemaFormats, NewSchemasStayAmongManyOldOnes) {
  RecordReader reader = ReaderOf("avro:/id");
  const auto read = [&](int32_t schema) {
    schemas_.Put(schema, Avro(R"({"type":"record","name":"R","fields":[{"name":"id","type":"int"}]})"));
    ASSERT_EQ(IdOf(reader.Read({.value = Framed(schema, Zigzag(schema))})), absl::StrCat("n", schema));
  };
  for (int32_t schema = 1001; schema <= 1300; ++schema) read(schema);
  schemas_.finds = 0;
  for (int i = 0; i < 20; ++i) read(1 + i % 2);
  EXPECT_EQ(schemas_.finds, 2);
}

// More than are kept, so that some are compiled again.
TEST_F(SchemaFormats, ManySchemas) {
  RecordReader reader = ReaderOf("avro:/id");
  for (int32_t schema = 1; schema <= 300; ++schema) {
    std::string fields;
    for (int32_t i = 0; i < schema % 7; ++i)
      absl::StrAppend(&fields, R"({"name":"f)", i, R"(","type":"int"},)");
    schemas_.Put(schema, Avro(absl::StrCat(R"({"type":"record","name":"R","fields":[)", fields,
                                           R"({"name":"id","type":"int"}]})")));
  }
  for (int round = 0; round < 2; ++round) {
    for (int32_t schema = 1; schema <= 300; ++schema) {
      const std::string value =
          Framed(schema, std::string(static_cast<size_t>(schema % 7), '\2') + Zigzag(schema));
      ASSERT_EQ(IdOf(reader.Read({.value = value})), absl::StrCat("n", schema));
    }
  }
  EXPECT_GT(schemas_.finds, 300);
}

TEST_F(SchemaFormats, TimesByTheirUnit) {
  const auto time_of = [&](const std::string& field, const std::string& value) {
    RecordReader reader({.id = IdSpec::Parse("value").value(),
                         .time = Field::Parse(field).value(),
                         .counters = {},
                         .schemas = &schemas_});
    const RecordFields& fields = reader.Read({.value = value});
    return fields.time_state == State::kPresent ? fields.time : absl::InfinitePast();
  };
  const auto avro = [&](const std::string& type, int64_t number) {
    const int32_t schema = ++last_schema_;
    schemas_.Put(schema, Avro(absl::StrCat(R"({"type":"record","name":"R","fields":[{"name":"t","type":)",
                                           type, "}]}")));
    return time_of("avro:/t", Framed(schema, Zigzag(number)));
  };
  const int64_t millis = 1'500'000'000'123;
  const absl::Time time = absl::FromUnixMillis(millis);
  EXPECT_EQ(avro(R"("long")", millis), time);
  EXPECT_EQ(avro(R"({"type":"long","logicalType":"timestamp-millis"})", millis), time);
  EXPECT_EQ(avro(R"({"type":"long","logicalType":"timestamp-micros"})", millis * 1000 + 4),
            time + absl::Microseconds(4));
  EXPECT_EQ(avro(R"({"type":"long","logicalType":"timestamp-nanos"})", millis * 1'000'000 + 5),
            time + absl::Nanoseconds(5));
  EXPECT_EQ(avro(R"({"type":"int","logicalType":"date"})", 2), absl::FromUnixSeconds(2 * 86400));
  EXPECT_EQ(avro(R"({"type":"long","logicalType":"timestamp-micros"})", INT64_MAX), absl::InfinitePast())
      << "beyond the year 9999";
  schemas_.Put(3, Protobuf(Golden("order.proto")));
  const std::string value = Framed(3, kFirstMessage + Golden("order.protobuf"));
  EXPECT_EQ(time_of("protobuf:/at", value), time);
  EXPECT_EQ(time_of("protobuf:/created/seconds", value), absl::FromUnixSeconds(1'500'000'000));
  EXPECT_EQ(time_of("protobuf:/created", value), absl::FromUnixSeconds(1'500'000'000));
  RecordReader by_time = ReaderOf("protobuf:/created");
  EXPECT_EQ(IdOf(by_time.Read({.value = value})), "missing") << "its fraction would be lost";
}

TEST_F(SchemaFormats, CountersTakeTheSameFields) {
  schemas_.Put(1, Avro(Golden("order_1.avsc")));
  RecordSpec spec{.id = IdSpec::Parse("avro:/order/id").value(),
                  .time = Field::Parse("avro:/at").value(),
                  .counters = {},
                  .schemas = &schemas_};
  spec.counters = {{Field::Parse("avro:/order/kind").value(), Field::Parse("avro:/order/n").value(),
                    CounterSpec::Condition{Field::Parse("avro:/order/tags/1").value(), "y"}}};
  RecordReader reader(spec);
  const RecordFields& fields = reader.Read({.value = Framed(1, Golden("order_1.avro"))});
  EXPECT_EQ(fields.id, "sA-17ä");
  ASSERT_EQ(fields.counters[0].state, CounterUpdate::State::kCounted);
  EXPECT_EQ(fields.counters[0].key, "PAID");
  EXPECT_EQ(fields.counters[0].delta, -17);
}

TEST_F(SchemaFormats, ProtobufTypesByTheSchema) {
  const auto id = [&](const std::string& type, const std::string& message) {
    return IdInMessage(
        absl::StrCat("syntax = \"proto3\"; enum E { A = 0; B = 1; C = -1; } message M { ", type, " f = 1; }"),
        "/f", message);
  };
  const uint64_t minus = static_cast<uint64_t>(-5);
  EXPECT_EQ(id("int32", VarintField(1, minus)), "n-5");
  EXPECT_EQ(id("int32", VarintField(1, 0xFFFFFFFF)), "n-1") << "its low 32 bits, as other readers take them";
  EXPECT_EQ(id("int64", VarintField(1, minus)), "n-5");
  EXPECT_EQ(id("uint32", VarintField(1, 0xFFFFFFFF)), "n4294967295");
  EXPECT_EQ(id("uint64", VarintField(1, UINT64_MAX)), "n18446744073709551615");
  EXPECT_EQ(id("sint32", Tag(1, 0) + Zigzag(-5)), "n-5");
  EXPECT_EQ(id("sint64", Tag(1, 0) + Zigzag(INT64_MIN)), absl::StrCat("n", INT64_MIN));
  EXPECT_EQ(id("fixed32", Tag(1, 5) + Fixed(UINT32_MAX)), "n4294967295");
  EXPECT_EQ(id("sfixed32", Tag(1, 5) + Fixed(-5)), "n-5");
  EXPECT_EQ(id("fixed64", Tag(1, 1) + Fixed(UINT64_MAX)), "n18446744073709551615");
  EXPECT_EQ(id("sfixed64", Tag(1, 1) + Fixed(int64_t{-5})), "n-5");
  EXPECT_EQ(id("float", Tag(1, 5) + Fixed(0.1F)), "n0.1");
  EXPECT_EQ(id("double", Tag(1, 1) + Fixed(0.1)), "n0.1");
  EXPECT_EQ(id("double", Tag(1, 1) + Fixed(std::numeric_limits<double>::infinity())), "missing");
  EXPECT_EQ(id("bool", VarintField(1, 1)), "missing") << "as in JSON";
  EXPECT_EQ(id("E", VarintField(1, 1)), "sB");
  EXPECT_EQ(id("E", VarintField(1, static_cast<uint64_t>(-1))), "sC");
  EXPECT_EQ(id("E", VarintField(1, 7)), "n7") << "a number that this version of the schema does not know";
  EXPECT_EQ(id("bytes", BytesField(1, "\xFF")), "s\xFF");
  EXPECT_EQ(id("string", BytesField(1, "a") + VarintField(1, 7)), "sa")
      << "a field of another type is unknown";
  EXPECT_EQ(id("int32", VarintField(1, 7) + BytesField(1, "a")), "n7");
  EXPECT_EQ(id("M", BytesField(1, "")), "missing");
}

TEST_F(SchemaFormats, ProtobufDefaultsByTheSchema) {
  const auto of = [&](const std::string& syntax, const std::string& field) {
    const int32_t schema = ++last_schema_;
    schemas_.Put(schema,
                 Protobuf(absl::StrCat(syntax, " enum E { A = 0; } message N {} message O { ", field, " }")));
    return IdOfValue("protobuf:/f", Framed(schema, Zigzag(1) + Zigzag(1)));
  };
  const std::string proto3 = "syntax = \"proto3\";";
  EXPECT_EQ(of(proto3, "int32 f = 1;"), "n0");
  EXPECT_EQ(of(proto3, "sfixed64 f = 1;"), "n0");
  EXPECT_EQ(of(proto3, "float f = 1;"), "n0");
  EXPECT_EQ(of(proto3, "E f = 1;"), "sA");
  EXPECT_EQ(of(proto3, "string f = 1;"), "missing") << "an empty string is no id";
  EXPECT_EQ(of(proto3, "optional int32 f = 1;"), "missing");
  EXPECT_EQ(of(proto3, "oneof o { int32 f = 1; }"), "missing");
  EXPECT_EQ(of(proto3, "repeated int32 f = 1;"), "missing");
  EXPECT_EQ(of(proto3, "N f = 1;"), "missing");
  EXPECT_EQ(of("syntax = \"proto2\";", "optional int32 f = 1 [default = 5];"), "missing");
  EXPECT_EQ(of("", "optional int32 f = 1;"), "missing") << "proto2 without a syntax statement";
  // In a message that is there.
  const std::string nested = proto3 + "message R { message N { int32 n = 1; string s = 2; } N a = 1; }";
  EXPECT_EQ(IdInMessage(nested, "/a/n", ""), "missing");
  EXPECT_EQ(IdInMessage(nested, "/a/n", BytesField(1, "")), "n0");
  EXPECT_EQ(IdInMessage(nested, "/a/n", BytesField(1, VarintField(1, 5)) + BytesField(1, BytesField(2, "x"))),
            "n5")
      << "messages that occur twice are merged";
}

TEST_F(SchemaFormats, ProtobufNamesOneofsAndMessages) {
  const std::string schema = R"(syntax = "proto3";
      // A comment { with a brace
      message First { string order_id = 1; string own = 2 [json_name = "theirs"]; }
      message Second {
        message Inner { oneof which { string a = 1; int32 b = 2; Inner in = 3; } }
        oneof o { string x = 1; int32 y = 2; Inner m = 3; }
      })";
  EXPECT_EQ(IdInMessage(schema, "/order_id", BytesField(1, "a")), "sa");
  EXPECT_EQ(IdInMessage(schema, "/orderId", BytesField(1, "a")), "sa");
  EXPECT_EQ(IdInMessage(schema, "/theirs", BytesField(2, "a")), "sa");
  EXPECT_EQ(IdInMessage(schema, "/own", BytesField(2, "a")), "sa");
  schemas_.Put(7, Protobuf(schema));
  const auto second = [&](const std::string& place, const std::string& message) {
    return IdOfValue("protobuf:" + place, Framed(7, Zigzag(1) + Zigzag(1) + message));
  };
  const std::string x = BytesField(1, "a");
  const std::string y = VarintField(2, 5);
  const std::string m = BytesField(3, BytesField(1, "in"));
  EXPECT_EQ(second("/x", x), "sa");
  EXPECT_EQ(second("/x", x + y), "missing") << "the last one counts";
  EXPECT_EQ(second("/x", x + y + x), "sa");
  EXPECT_EQ(second("/y", x + y), "n5");
  EXPECT_EQ(second("/m/a", m + y), "missing");
  EXPECT_EQ(second("/m/a", y + m), "sin");
  EXPECT_EQ(second("/m/a", BytesField(3, BytesField(1, "in") + VarintField(2, 1))), "missing");
  EXPECT_EQ(second("/m/in/b", BytesField(3, BytesField(3, VarintField(2, 6)))), "n6");
  EXPECT_EQ(IdOfValue("protobuf:/a", Framed(7, Zigzag(2) + Zigzag(1) + Zigzag(0) + BytesField(1, "in"))),
            "sin");
}

TEST_F(SchemaFormats, ProtobufRepeatedFieldsAndMaps) {
  const std::string schema = R"(syntax = "proto3";
      message M {
        repeated sint32 packed = 1; repeated M items = 2; map<int32, M> by_number = 3; map<bool, string> flags = 4;
        string s = 5; map<string, int64> counts = 6; repeated string texts = 7; M one = 8;
      })";
  const auto id = [&](const std::string& place, const std::string& message) {
    return IdInMessage(schema, place, message);
  };
  const std::string packed =
      BytesField(1, Zigzag(-1) + Zigzag(300)) + Tag(1, 0) + Zigzag(7) + BytesField(1, Zigzag(9));
  const std::vector<std::string> values = {"n-1", "n300", "n7", "n9", "missing"};
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(id(absl::StrCat("/packed/", i), packed), values[i]);
  EXPECT_EQ(id("/packed/0", BytesField(1, "\xFF")), "malformed");
  EXPECT_EQ(id("/packed", packed), "missing");
  EXPECT_EQ(id("/packed/x", packed), "missing");
  const std::string items = BytesField(2, BytesField(7, "a")) +
                            BytesField(2, BytesField(7, "b") + BytesField(7, "c") + BytesField(1, Zigzag(3)));
  EXPECT_EQ(id("/items/1/texts/1", items), "sc");
  EXPECT_EQ(id("/items/1/texts/0", items), "sb");
  EXPECT_EQ(id("/items/0/texts/1", items), "missing");
  EXPECT_EQ(id("/items/1/packed/0", items), "n3");
  EXPECT_EQ(id("/items/2/s", items), "missing");
  EXPECT_EQ(id("/items/0/s", items), "missing") << "it is empty";
  EXPECT_EQ(id("/one/texts/1", BytesField(8, BytesField(7, "a")) + BytesField(8, BytesField(7, "b"))), "sb")
      << "merged messages";
  const auto entry = [](uint32_t map, const std::string& key, const std::string& value) {
    return BytesField(map, key + value);
  };
  EXPECT_EQ(id("/by_number/-5/s",
               entry(3, VarintField(1, static_cast<uint64_t>(-5)), BytesField(2, BytesField(5, "a")))),
            "sa");
  EXPECT_EQ(id("/by_number/0/s", entry(3, "", BytesField(2, BytesField(5, "a")))), "sa")
      << "no key: its default";
  EXPECT_EQ(id("/flags/true", entry(4, BytesField(2, "a"), VarintField(1, 1))), "sa") << "the value is first";
  EXPECT_EQ(id("/flags/false", entry(4, VarintField(1, 1), BytesField(2, "a"))), "missing");
  EXPECT_EQ(id("/counts/k", entry(6, BytesField(1, "k"), "")), "n0");
  EXPECT_EQ(id("/counts/k", entry(6, BytesField(1, "k"), VarintField(2, 5)) +
                                entry(6, BytesField(1, "j"), "") + entry(6, BytesField(1, "k"), "")),
            "n0")
      << "the last one counts";
  EXPECT_EQ(id("/counts/k", BytesField(6, "\7")), "malformed");
  EXPECT_EQ(id("/counts/k", VarintField(6, 1)), "missing");
}

TEST_F(SchemaFormats, ProtobufReferencesAndUnknownImports) {
  Schema schema = Protobuf(R"(syntax = "proto3"; import "a/inner.proto"; import "elsewhere/unknown.proto";
                              import "google/protobuf/wrappers.proto";
      option (elsewhere.thing) = 5;
      message M { a.Inner inner = 1; elsewhere.Unknown other = 2; string id = 3; google.protobuf.Int64Value n = 4; })");
  schema.references = {
      {"google/protobuf/wrappers.proto",
       "syntax = \"proto3\"; package google.protobuf; message Int64Value {}"},
      {"b.proto", "syntax = \"proto3\"; enum Kind { A = 0; B = 1; }"},
      {"a/inner.proto",
       "syntax = \"proto3\"; package a; import \"b.proto\"; message Inner { Kind kind = 1; }"}};
  schemas_.Put(7, schema);
  const auto id = [&](const std::string& place, const std::string& message) {
    return IdOfValue("protobuf:" + place, Framed(7, kFirstMessage + message));
  };
  EXPECT_EQ(id("/inner/kind", BytesField(1, VarintField(1, 1))), "sB");
  EXPECT_EQ(id("/id", BytesField(2, "?") + BytesField(3, "a")), "sa");
  EXPECT_EQ(id("/other/id", BytesField(2, "?")), "missing");
  EXPECT_EQ(id("/n/value", BytesField(4, VarintField(1, 5))), "n5");
}

TEST_F(SchemaFormats, ProtobufSchemasThatCannotBe) {
  const auto repeat = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  testing::internal::CaptureStderr();
  for (const std::string& schema :
       {std::string("message"), std::string("syntax = \"proto9\";"), std::string("\xFF\xFE"),
        std::string("message M { int32 a = 1; int32 a = 2; }"),
        std::string("import \"x.proto\" message M {}"), std::string("{\"type\":\"string\"}"),
        repeat("message A {", 50'000), repeat("message A {", 65) + repeat("}", 65),
        "message M {} " + std::string(1 << 20, ' '), "message M { map<" + repeat("map<", 50'000)}) {
    EXPECT_EQ(IdInMessage(schema, "/id", ""), "malformed") << schema.substr(0, 60);
  }
  EXPECT_EQ(IdInMessage("message M { option (no.such) = { a: [1, 2] }; }", "/id", ""), "missing");
  EXPECT_EQ(IdInMessage("message M { option " + repeat("(a).", 100'000) + "b = 1; }", "/id", ""), "missing");
  EXPECT_EQ(IdInMessage("", "/id", ""), "malformed") << "it has no message";
  // A descriptor whose first field has a name that is no UTF-8.
  const std::string message = BytesField(4, BytesField(1, "M") + BytesField(2, BytesField(1, "\xFF")));
  EXPECT_EQ(IdInMessage(absl::Base64Escape(message), "/id", ""), "malformed");
  EXPECT_THAT(reason_, Not(HasSubstr("\xFF")));
  EXPECT_EQ(IdInMessage("message " + std::string(100'000, 'M'), "/id", ""), "malformed");
  EXPECT_LT(reason_.size(), 1000U);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace lethe
