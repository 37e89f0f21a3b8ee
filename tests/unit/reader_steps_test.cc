// What a record costs: the readers of Avro, Protobuf and JSON take a bounded number of steps for each of its
// bytes, whatever its schema and its bytes are. The tests count steps, which are the same on every machine;
// readers_bench prints their time.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/record/avro_schema.h"
#include "src/record/avro_walk.h"
#include "src/record/json_scanner.h"
#include "src/record/protobuf_schema.h"
#include "src/record/protobuf_walk.h"
#include "tests/support/encodings.h"
#include "tests/support/hostile_records.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using test::AvroString;
using test::Zigzag;
using testing::HasSubstr;

constexpr size_t kSize = 100'000;

TEST(ReaderSteps, AvroTakesTwoForAByte) {
  for (const test::HostileAvro& each : test::AllHostileAvro(kSize)) {
    for (const std::string& place : each.places) {
      const auto program = AvroProgram::Compile({Schema::Type::kAvro, each.schema, {}}, {place});
      ASSERT_OK(program) << each.name;
      AvroWalk walk(1);
      EXPECT_TRUE(walk.Walk(*program, each.bytes)) << each.name << " " << place << ": " << walk.error();
      EXPECT_LE(program->place_steps(), 10) << place;
      EXPECT_LE(walk.steps(), 2 * each.bytes.size() + program->place_steps() + 1)
          << each.name << " " << place;
    }
  }
}

// The value of a key is read again each time, along a place of 100 steps that take no bytes.
TEST(ReaderSteps, AMapThatHasAKeyTooOftenIsMalformed) {
  const std::string schema =
      test::AvroAround(test::AvroChain(100, R"("long")"), R"({"type":"map","values":"C0"})");
  std::string place = "/value/x";
  for (int i = 0; i < 100; ++i) place += "/a";
  const auto program = AvroProgram::Compile({Schema::Type::kAvro, schema, {}}, {place});
  ASSERT_OK(program);
  const auto bytes = [](int64_t count) {
    std::string value = Zigzag(0) + AvroString("i") + Zigzag(count);
    for (int64_t i = 0; i < count; ++i) value += AvroString("x") + Zigzag(7);
    return value + Zigzag(0) + AvroString("l");
  };
  AvroWalk walk(1);
  EXPECT_TRUE(walk.Walk(*program, bytes(2))) << walk.error();
  EXPECT_EQ(walk.value(0).text, "7");
  const std::string many = bytes(1000);
  EXPECT_FALSE(walk.Walk(*program, many));
  EXPECT_LE(walk.steps(), AvroWalk::kStepsPerByte * (many.size() + 1) + program->place_steps() + 1);
  EXPECT_THAT(walk.error(), HasSubstr("steps"));
}

TEST(ReaderSteps, ProtobufTakesTenForAByte) {
  for (const test::HostileProtobuf& each : test::AllHostileProtobuf(kSize)) {
    const auto schema = ProtobufSchema::Compile({Schema::Type::kProtobuf, each.schema, {}});
    ASSERT_OK(schema) << each.name;
    for (const std::string& place : each.places) {
      ProtobufWalk walk(schema->Places({}, {place}).value());
      EXPECT_TRUE(walk.Walk(each.bytes)) << each.name << " " << place << ": " << walk.error();
      EXPECT_LE(walk.steps(), 10 * each.bytes.size() + 10) << each.name << " " << place;
    }
  }
}

TEST(ReaderSteps, JsonTakesTwoForAByte) {
  for (const test::HostileJson& each : test::AllHostileJson(kSize)) {
    for (const char* const place : {"/id", "/a/99/x", "/0/0/0/0/0/0/0/0", "/99", "/~1"}) {
      JsonScanner scanner({place});
      EXPECT_TRUE(scanner.Scan(each.bytes)) << each.name << ": " << scanner.error();
      EXPECT_LE(scanner.steps(), 2 * each.bytes.size()) << each.name << " " << place;
    }
  }
}

// Messages with many fields that are messages with many fields: not all are looked at.
TEST(ReaderSteps, TheFieldsOfASchemaAreListedInSoManySteps) {
  const auto pointers = [](int fields) {
    std::string schema = "syntax = \"proto3\"; message M {";
    for (int i = 1; i <= fields; ++i) absl::StrAppend(&schema, "A a", i, "=", i, ";");
    absl::StrAppend(&schema, "string id = ", fields + 1, "; } message A {");
    for (int i = 1; i <= fields; ++i) absl::StrAppend(&schema, "repeated A a", i, "=", i, ";");
    const auto compiled = ProtobufSchema::Compile({Schema::Type::kProtobuf, schema + "}", {}});
    EXPECT_OK(compiled);
    return compiled->Pointers({}, 4, 512);
  };
  EXPECT_EQ(pointers(10), std::vector<std::string>{"/id"});
  EXPECT_TRUE(pointers(1000).empty());
}

}  // namespace
}  // namespace lethe
