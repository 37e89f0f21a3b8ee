// Avro: schemas, and values that are written by hand, right and wrong.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "src/record/avro_schema.h"
#include "src/record/avro_walk.h"
#include "tests/support/encodings.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using test::AvroString;
using test::Fixed;
using test::Zigzag;

Schema TextOf(const std::string& text) { return {Schema::Type::kAvro, text, {}}; }

// What is at the places, as an id has it: "sText", "n12", "true", "absent" for each; or {"malformed"}.
std::vector<std::string> ValuesAt(const Schema& schema, const std::vector<std::string>& places,
                                  const std::string& bytes) {
  const auto program = AvroProgram::Compile(schema, places);
  if (!program.ok()) return {std::string(program.status().message())};
  AvroWalk walk(places.size());
  // Of bytes that are exactly as long as their memory: a sanitizer sees a look behind them.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  if (!walk.Walk(*program, {exact.data(), exact.size()})) {
    EXPECT_STRNE(walk.error(), "");
    EXPECT_LE(walk.error_offset(), bytes.size());
    return {"malformed"};
  }
  std::vector<std::string> values;
  for (size_t i = 0; i < places.size(); ++i) {
    const FieldValue& value = walk.value(i);
    const std::string text(value.text);
    switch (value.kind) {
      case FieldValue::Kind::kString:
        values.push_back("s" + text);
        break;
      case FieldValue::Kind::kNumber:
        values.push_back("n" + text);
        break;
      case FieldValue::Kind::kOther:
        values.push_back(text.empty() ? "other" : text);
        break;
      case FieldValue::Kind::kAbsent:
        values.push_back("absent");
    }
  }
  return values;
}

std::string ValueAt(const std::string& schema, const std::string& place, const std::string& bytes) {
  return ValuesAt(TextOf(schema), {place}, bytes)[0];
}

std::string RecordOf(const std::string& type) {
  return absl::StrCat(R"({"type":"record","name":"R","fields":[{"name":"id","type":)", type,
                      R"(},{"name":"after","type":"string"}]})");
}
// The id of a record with a value of that type and a string behind it.
std::string IdOf(const std::string& type, const std::string& bytes) {
  const std::string value = ValueAt(RecordOf(type), "/id", bytes + AvroString("z"));
  EXPECT_EQ(ValueAt(RecordOf(type), "/after", bytes + AvroString("z")),
            value == "malformed" ? "malformed" : "sz")
      << "the same record when the value is skipped";
  return value;
}

const std::string kDecimal = R"("logicalType":"decimal","precision":20,"scale":2)";

TEST(Avro, ValuesOfEachType) {
  EXPECT_EQ(IdOf(R"("null")", ""), "null");
  EXPECT_EQ(IdOf(R"("boolean")", "\1"), "true");
  EXPECT_EQ(IdOf(R"("boolean")", std::string(1, '\0')), "false");
  for (const int64_t number :
       {int64_t{0}, int64_t{-1}, int64_t{64}, int64_t{INT32_MIN}, int64_t{INT32_MAX}}) {
    EXPECT_EQ(IdOf(R"("int")", Zigzag(number)), absl::StrCat("n", number));
    EXPECT_EQ(IdOf(R"("long")", Zigzag(number)), absl::StrCat("n", number)) << "int to long";
  }
  EXPECT_EQ(IdOf(R"("long")", Zigzag(INT64_MIN)), absl::StrCat("n", INT64_MIN));
  EXPECT_EQ(IdOf(R"("long")", Zigzag(INT64_MAX)), absl::StrCat("n", INT64_MAX));
  EXPECT_EQ(IdOf(R"("string")", AvroString("a\xC3\xA4")), "sa\xC3\xA4");
  EXPECT_EQ(IdOf(R"("string")", AvroString("")), "s");
  EXPECT_EQ(IdOf(R"("bytes")", AvroString("\xFF")), "s\xFF");
  EXPECT_EQ(IdOf(R"({"type":"fixed","name":"F","size":3})", "abc"), "sabc");
  EXPECT_EQ(IdOf(R"({"type":"enum","name":"E","symbols":["A","B"]})", Zigzag(1)), "sB");
  EXPECT_EQ(IdOf(R"(["null","string"])", Zigzag(1) + AvroString("a")), "sa");
  EXPECT_EQ(IdOf(R"(["null","string"])", Zigzag(0)), "null");
  EXPECT_EQ(IdOf(R"({"type":"array","items":"int"})", Zigzag(1) + Zigzag(5) + Zigzag(0)), "other");
  EXPECT_EQ(IdOf(R"({"type":"map","values":"int"})", Zigzag(0)), "other");
  EXPECT_EQ(IdOf(R"({"type":"record","name":"N","fields":[]})", ""), "other");
}

TEST(Avro, ShortestTextsOfFloatingPoint) {
  EXPECT_EQ(IdOf(R"("float")", Fixed(0.1F)), "n0.1");
  EXPECT_EQ(IdOf(R"("double")", Fixed(0.1)), "n0.1");
  EXPECT_EQ(IdOf(R"("double")", Fixed(-17.0)), "n-17");
  EXPECT_EQ(IdOf(R"("double")", Fixed(1e100)), "n1e+100");
  EXPECT_EQ(IdOf(R"("double")", Fixed(std::numeric_limits<double>::infinity())), "other");
  EXPECT_EQ(IdOf(R"("float")", Fixed(std::nanf(""))), "other");
}

TEST(Avro, LogicalTypes) {
  const std::string uuid = "00112233-4455-6677-8899-aabbccddeeff";
  EXPECT_EQ(IdOf(R"({"type":"string","logicalType":"uuid"})", AvroString(uuid)), "s" + uuid);
  const std::string bytes("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xAA\xBB\xCC\xDD\xEE\xFF", 16);
  EXPECT_EQ(IdOf(R"({"type":"fixed","name":"F","size":16,"logicalType":"uuid"})", bytes), "s" + uuid);
  const std::string decimal = absl::StrCat(R"({"type":"bytes",)", kDecimal, "}");
  const auto of = [&](const std::string& unscaled) { return IdOf(decimal, AvroString(unscaled)); };
  EXPECT_EQ(of("\x7B"), "n1.23");
  EXPECT_EQ(of(std::string("\0\x7B", 2)), "n1.23") << "a byte more than is needed";
  EXPECT_EQ(of("\xFF\xFF\x85"), "n-1.23");
  EXPECT_EQ(of(std::string(1, '\0')), "n0");
  EXPECT_EQ(of(""), "n0");
  EXPECT_EQ(of("\x01"), "n0.01");
  EXPECT_EQ(of("\xFF"), "n-0.01");
  EXPECT_EQ(of("\x64"), "n1");
  EXPECT_EQ(of("\x6E"), "n1.1");
  EXPECT_EQ(of("\x80"), "n-1.28");
  EXPECT_EQ(of(std::string("\xFF\x00\x00\x00\x00", 5)), "n-42949672.96");
  EXPECT_EQ(of(std::string("\x01\0\0\0\0\0\0\0\0", 9)), "n184467440737095516.16");
  EXPECT_EQ(of(std::string("\x7F") + std::string(128, '\xFF')).size(), 313U);
  EXPECT_EQ(of(std::string(1'000'000, '\x7F')), "other") << "more digits than any precision";
  EXPECT_EQ(IdOf(absl::StrCat(R"({"type":"fixed","name":"F","size":4,)", kDecimal, "}"), "\xFF\xFF\xFF\x85"),
            "n-1.23");
  // Invalid ones are none.
  EXPECT_EQ(IdOf(R"({"type":"bytes","logicalType":"decimal","precision":2,"scale":3})", AvroString("a")),
            "sa");
  EXPECT_EQ(IdOf(R"({"type":"long","logicalType":"decimal","precision":2})", Zigzag(7)), "n7");
  EXPECT_EQ(IdOf(R"({"type":"fixed","name":"F","size":2,"logicalType":"uuid"})", "ab"), "sab");
  EXPECT_EQ(IdOf(R"({"type":"int","logicalType":["date"]})", Zigzag(7)), "n7");
}

TEST(Avro, UnitsOfTimes) {
  const auto unit = [](const std::string& type) {
    const auto program = AvroProgram::Compile(TextOf(RecordOf(type)), {"/id"});
    AvroWalk walk(1);
    EXPECT_TRUE(walk.Walk(*program, Zigzag(7) + AvroString("")));
    EXPECT_EQ(walk.value(0).text, "7");
    return walk.value(0).unit;
  };
  EXPECT_EQ(unit(R"("long")"), TimeUnit::kMilliseconds);
  EXPECT_EQ(unit(R"({"type":"long","logicalType":"timestamp-millis"})"), TimeUnit::kMilliseconds);
  EXPECT_EQ(unit(R"({"type":"long","logicalType":"timestamp-micros"})"), TimeUnit::kMicroseconds);
  EXPECT_EQ(unit(R"({"type":"long","logicalType":"timestamp-nanos"})"), TimeUnit::kNanoseconds);
  EXPECT_EQ(unit(R"({"type":"long","logicalType":"local-timestamp-micros"})"), TimeUnit::kMicroseconds);
  EXPECT_EQ(unit(R"({"type":"int","logicalType":"date"})"), TimeUnit::kDays);
}

TEST(Avro, PlacesInArraysMapsAndUnions) {
  const std::string array = R"({"type":"array","items":["null",{"type":"map","values":"int"}]})";
  const auto item = [](const std::string& key, int64_t value) {
    return Zigzag(1) + Zigzag(1) + AvroString(key) + Zigzag(value) + Zigzag(0);
  };
  const auto sized = [](const std::string& block, int64_t count) {
    return Zigzag(-count) + Zigzag(static_cast<int64_t>(block.size())) + block;
  };
  const std::vector<std::string> places = {"/0", "/1/a", "/2/a", "/3/~1", "/4", "/2/b", "/01/a", "/x"};
  const std::vector<std::string> values = {"null", "n7", "n8", "n9", "absent", "absent", "absent", "absent"};
  const std::string first = Zigzag(0) + item("a", 7);
  const std::string second = item("a", 8) + item("/", 9);
  EXPECT_EQ(ValuesAt(TextOf(array), places, Zigzag(2) + first + Zigzag(2) + second + Zigzag(0)), values);
  EXPECT_EQ(ValuesAt(TextOf(array), places, sized(first, 2) + sized(second, 2) + Zigzag(0)), values);
  // Two entries of one key: the last counts, with all that is in it.
  const std::string map = R"({"type":"map","values":{"type":"map","values":"string"}})";
  const auto inner = [](const std::string& key) {
    return AvroString("k") + Zigzag(1) + AvroString(key) + AvroString("v") + Zigzag(0);
  };
  EXPECT_EQ(ValuesAt(TextOf(map), {"/k/a", "/k/b", "/k"}, Zigzag(2) + inner("a") + inner("b") + Zigzag(0)),
            (std::vector<std::string>{"absent", "sv", "other"}));
  EXPECT_EQ(ValueAt(map, "/k/b", sized(inner("b"), 1) + Zigzag(0)), "sv");
  // A union of records.
  const std::string of_records = R"([{"type":"record","name":"A","fields":[{"name":"id","type":"int"}]},
                                     {"type":"record","name":"B","fields":[{"name":"x","type":"A"},
                                                                           {"name":"id","type":"string"}]}])";
  EXPECT_EQ(ValueAt(of_records, "/id", Zigzag(0) + Zigzag(5)), "n5");
  EXPECT_EQ(ValueAt(of_records, "/id", Zigzag(1) + Zigzag(5) + AvroString("a")), "sa");
  EXPECT_EQ(ValueAt(of_records, "/x/id", Zigzag(1) + Zigzag(5) + AvroString("a")), "n5");
  EXPECT_EQ(ValueAt(of_records, "/x/id", Zigzag(0) + Zigzag(5)), "absent");
}

TEST(Avro, NamesAndNamespaces) {
  const std::string schema = R"({"type":"record","name":"Outer","namespace":"one","fields":[
      {"name":"a","type":{"type":"record","name":"two.Inner","fields":[
          {"name":"f","type":{"type":"fixed","name":"F","size":1}},
          {"name":"g","type":"F"},
          {"name":"o","type":["null","one.Outer"]}]}},
      {"name":"b","type":"two.F"},
      {"name":"c","type":{"type":"enum","name":"E","namespace":"","symbols":["X"]}},
      {"name":"d","type":{"type":"E"}},
      {"name":"e","type":["null","Outer"]}]})";
  const std::string leaf = "fg" + Zigzag(0) + "b" + Zigzag(0) + Zigzag(0) + Zigzag(0);
  const std::string nested = "FG" + Zigzag(1) + leaf + "B" + Zigzag(0) + Zigzag(0) + Zigzag(1) + leaf;
  EXPECT_EQ(
      ValuesAt(TextOf(schema), {"/a/f", "/a/g", "/b", "/c", "/d", "/a/o/a/g", "/e/b", "/e/e/b"}, nested),
      (std::vector<std::string>{"sF", "sG", "sB", "sX", "sX", "sg", "sb", "absent"}));
}

TEST(Avro, AFieldIsFoundByItsNameOrAnAlias) {
  const std::string schema = R"({"type":"record","name":"R","fields":[
      {"name":"order_id","aliases":["id","key"],"type":"int"},{"name":"key","type":["null","int"]},
      {"name":"n","aliases":["old"],"type":{"type":"map","values":"int"}}]})";
  const std::string bytes =
      Zigzag(5) + Zigzag(1) + Zigzag(6) + Zigzag(1) + AvroString("x") + Zigzag(7) + Zigzag(0);
  EXPECT_EQ(ValuesAt(TextOf(schema), {"/id", "/order_id", "/key", "/old/x", "/n/x", "/n", "/old/y"}, bytes),
            (std::vector<std::string>{"n5", "n5", "n6", "n7", "n7", "other", "absent"}));
}

TEST(Avro, ReferencesAndWhatASchemaLacks) {
  const Schema schema = {
      .text = R"({"type":"record","name":"R","namespace":"x","fields":[{"name":"a","type":"y.A"},
                  {"name":"b","type":["null","B"]}]})",
      .references = {
          {"y.C", R"({"type":"enum","name":"y.C","symbols":["S"]})"},
          {"y.A", R"({"type":"record","name":"A","namespace":"y","fields":[{"name":"c","type":"C"}]})"},
          {"x.B", R"({"type":"fixed","name":"x.B","size":2})"}}};
  EXPECT_EQ(ValuesAt(schema, {"/a/c", "/b"}, Zigzag(0) + Zigzag(1) + "fb"),
            (std::vector<std::string>{"sS", "sfb"}));
  const auto program = AvroProgram::Compile(schema, {"/a", "/a/c", "/a/d", "/c", "/a/c/d", "/b"});
  ASSERT_OK(program);
  std::string found;
  for (size_t i = 0; i < 6; ++i) found += program->has(i) ? 'y' : 'n';
  EXPECT_EQ(found, "yynnny");
}

TEST(Avro, SchemasThatCannotBe) {
  using Code = absl::StatusCode;
  const auto code = [](const std::string& text) {
    return AvroProgram::Compile(TextOf(text), {"/a"}).status().code();
  };
  ASSERT_EQ(code(R"({"type":"record","name":"R","fields":[]})"), Code::kOk);
  for (const std::string wrong : {"",
                                  "{",
                                  "7",
                                  "null",
                                  "{}",
                                  R"("Unknown")",
                                  R"({"type":"Unknown"})",
                                  R"({"type":"record","name":"R"})",
                                  R"({"type":"record","fields":[]})",
                                  R"({"type":"record","name":"","fields":[]})",
                                  R"({"type":"record","name":"R","fields":[7]})",
                                  R"({"type":"record","name":"R","fields":[{"name":"a"}]})",
                                  R"({"type":"record","name":"string","fields":[]})",
                                  R"([["int"]])",
                                  R"({"type":"array"})",
                                  R"({"type":"map"})",
                                  R"({"type":"enum","name":"E"})",
                                  R"({"type":"enum","name":"E","symbols":[1]})",
                                  R"({"type":"fixed","name":"F"})",
                                  R"({"type":"fixed","name":"F","size":-1})",
                                  R"({"type":"fixed","name":"F","size":4294967296})",
                                  R"({"type":"fixed","name":"F","size":1.5})",
                                  "\"\xFF\"",
                                  "\"string\" \"string\""}) {
    EXPECT_EQ(code(wrong), Code::kInvalidArgument) << wrong;
  }
  const auto arrays = [](size_t depth) {
    std::string schema = R"("int")";
    for (size_t i = 0; i < depth; ++i) schema = absl::StrCat(R"({"type":"array","items":)", schema, "}");
    return schema;
  };
  EXPECT_EQ(code(arrays(64)), Code::kOk);
  EXPECT_EQ(code(arrays(65)), Code::kResourceExhausted);
  EXPECT_EQ(code(std::string(500'000, '[') + std::string(500'000, ']')), Code::kResourceExhausted);
  EXPECT_EQ(code(std::string(1'000'000, '[')), Code::kInvalidArgument);
  EXPECT_EQ(code("\"int\"" + std::string(1 << 20, ' ')), Code::kResourceExhausted);
  Schema large = TextOf("\"int\"");
  for (int i = 0; i < 11; ++i) large.references.push_back({"r", "\"int\"" + std::string(100'000, ' ')});
  EXPECT_EQ(AvroProgram::Compile(large, {"/a"}).status().code(), Code::kResourceExhausted);
  large.references = {{"r", "{"}};
  EXPECT_EQ(AvroProgram::Compile(large, {"/a"}).status().code(), Code::kInvalidArgument);
}

TEST(Avro, BrokenValuesAreMalformed) {
  const std::string overlong(10, '\xFF');
  EXPECT_EQ(IdOf(R"("long")", overlong + "\1"), "malformed") << "a varint without end";
  EXPECT_EQ(IdOf(R"("long")", std::string(9, '\xFF') + "\2"), "malformed") << "of 65 bits";
  EXPECT_EQ(IdOf(R"("int")", Zigzag(int64_t{INT32_MAX} + 1)), "malformed");
  EXPECT_EQ(IdOf(R"("boolean")", "\2"), "malformed");
  for (const char* const type : {R"("string")", R"("bytes")"}) {
    EXPECT_EQ(IdOf(type, Zigzag(-1)), "malformed");
    EXPECT_EQ(IdOf(type, Zigzag(INT64_MIN)), "malformed");
    EXPECT_EQ(IdOf(type, Zigzag(INT64_MAX)), "malformed");
  }
  EXPECT_EQ(IdOf(R"({"type":"fixed","name":"F","size":2147483647})", "x"), "malformed");
  for (const int64_t index : {int64_t{-1}, int64_t{2}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(IdOf(R"(["null","int"])", Zigzag(index)), "malformed");
    EXPECT_EQ(IdOf(R"({"type":"enum","name":"E","symbols":["A","B"]})", Zigzag(index)), "malformed");
  }
  EXPECT_EQ(IdOf("[]", Zigzag(0)), "malformed");
  // Blocks.
  for (const std::string type : {R"({"type":"array","items":"int"})", R"({"type":"map","values":"null"})"}) {
    EXPECT_EQ(IdOf(type, Zigzag(int64_t{1} << 62)), "malformed");
    EXPECT_EQ(IdOf(type, Zigzag(INT64_MAX)), "malformed");
    EXPECT_EQ(IdOf(type, Zigzag(-1) + Zigzag(-1)), "malformed");
    EXPECT_EQ(IdOf(type, Zigzag(-1) + Zigzag(INT64_MAX)), "malformed");
    EXPECT_EQ(IdOf(type, Zigzag(INT64_MIN) + Zigzag(0)), "malformed") << "no end";
    EXPECT_EQ(IdOf(type, overlong), "malformed");
    EXPECT_EQ(ValueAt(type, "/0", Zigzag(-1) + Zigzag(3) + Zigzag(1) + "0" + Zigzag(0)), "malformed")
        << "a block of another size";
  }
  const std::string whole = RecordOf(R"({"type":"map","values":["null",{"type":"array","items":"double"}]})");
  const std::string bytes = Zigzag(2) + AvroString("a") + Zigzag(0) + AvroString("b") + Zigzag(1) +
                            Zigzag(1) + Fixed(1.5) + Zigzag(0) + Zigzag(0) + AvroString("z");
  ASSERT_EQ(ValueAt(whole, "/id/b/0", bytes), "n1.5");
  for (const char* const place : {"/id/b/0", "/after", "/none"}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_EQ(ValueAt(whole, place, bytes.substr(0, size)), "malformed") << size;
    }
    EXPECT_EQ(ValueAt(whole, place, bytes + "x"), "malformed") << "more follows";
  }
}

// What takes no bytes could be there 2^62 times, or more.
TEST(Avro, ValuesWithoutBytesCostNothing) {
  const std::string nulls = R"({"type":"array","items":"null"})";
  const std::string many = Zigzag(int64_t{1} << 62);
  std::string blocks;
  for (int i = 0; i < 100; ++i) blocks += many;
  EXPECT_EQ(ValueAt(nulls, "/4611686018427387903", many + Zigzag(0)), "null");
  EXPECT_EQ(ValueAt(nulls, "/4611686018427387904", many + Zigzag(0)), "absent");
  EXPECT_EQ(ValueAt(nulls, "/4611686018427387904", blocks + Zigzag(0)), "null");
  EXPECT_EQ(ValueAt(nulls, "/none", blocks + Zigzag(INT64_MIN) + Zigzag(0) + Zigzag(0)), "absent");
  EXPECT_EQ(ValueAt(nulls, "/0", Zigzag(INT64_MIN) + Zigzag(0) + Zigzag(0)), "null");
  // 2^60 fields, and a number.
  std::string doubled = R"({"type":"record","name":"R0","fields":[{"name":"a","type":"null"}]})";
  for (int i = 1; i < 60; ++i) {
    doubled = absl::StrCat(R"({"type":"record","name":"R)", i, R"(","fields":[{"name":"a","type":)", doubled,
                           R"(},{"name":"b","type":"R)", i - 1, R"("}]})");
  }
  const std::string with_number = absl::StrCat(R"({"type":"record","name":"R","fields":[{"name":"r","type":)",
                                               doubled, R"(},{"name":"id","type":"int"}]})");
  EXPECT_EQ(ValueAt(with_number, "/id", Zigzag(5)), "n5");
  EXPECT_EQ(ValueAt(with_number, "/r/b/b/a/b", Zigzag(5)), "other");
  EXPECT_EQ(
      ValueAt(R"({"type":"record","name":"R","fields":[{"name":"r","type":"R"},{"name":"s","type":"R"}]})",
              "/r/r/r", ""),
      "malformed")
      << "a record that has no end";
}

TEST(Avro, DeepValues) {
  const std::string list = R"({"type":"record","name":"L","fields":[{"name":"v","type":"int"},
                                                                    {"name":"next","type":["null","L"]}]})";
  const auto value = [](size_t depth) {
    std::string bytes;
    for (size_t i = 0; i < depth; ++i) bytes += Zigzag(7) + Zigzag(i + 1 < depth ? 1 : 0);
    return bytes;
  };
  std::string place;
  for (int i = 0; i < 511; ++i) place += "/next";
  for (const std::string& each : {place + "/v", std::string("/v")}) {
    EXPECT_EQ(ValueAt(list, each, value(512)), "n7");
    EXPECT_EQ(ValueAt(list, each, value(514)), "malformed");
    EXPECT_EQ(ValueAt(list, each, value(100'000)), "malformed");
  }
  EXPECT_EQ(ValueAt(list, place + "/next/next/v", value(2)), "absent");
  EXPECT_EQ(ValueAt(R"({"type":"array","items":"L"})", "/0", ""), ValueAt(R"("L")", "/0", ""))
      << "no such type";
}

}  // namespace
}  // namespace lethe
