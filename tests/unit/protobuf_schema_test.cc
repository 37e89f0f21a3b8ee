// Places in Protobuf by names: found by any message index and any evolution of the schema, and the values
// that libprotobuf's own reader finds.
#include "src/record/protobuf_schema.h"

#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wrappers.pb.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/encodings.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

namespace pb = google::protobuf;
using test::BytesField;
using test::Fixed;
using test::Tag;
using test::Varint;
using test::VarintField;
using test::Zigzag;

Schema ProtoText(std::string text) { return {Schema::Type::kProtobuf, std::move(text), {}}; }

// "sTEXT", "nTEXT" as in an id, "=TEXT" of others, "absent", "no place", "no message", "broken".
std::string Text(const FieldValue& value) {
  switch (value.kind) {
    case FieldValue::Kind::kAbsent:
      return "absent";
    case FieldValue::Kind::kString:
      return absl::StrCat("s", value.text);
    case FieldValue::Kind::kNumber:
      return absl::StrCat("n", value.text);
    case FieldValue::Kind::kOther:
      return absl::StrCat("=", value.text);
  }
  return "";
}

std::string Read(const Schema& schema, const std::string& pointer, const std::string& bytes,
                 std::vector<int32_t> indexes = {}) {
  const auto compiled = ProtobufSchema::Compile(schema);
  EXPECT_OK(compiled);
  if (!compiled.ok()) return "";
  const auto places = compiled->Places(indexes, {pointer});
  if (!places) return "no message";
  const bool has_place = !places->at(0).path.empty();
  ProtobufWalk walk(*places);
  if (!walk.Walk(bytes)) return "broken";
  const std::string text = Text(walk.value(0));
  EXPECT_TRUE(has_place || text == "absent");
  return has_place ? text : "no place";
}

absl::StatusCode CodeOf(const Schema& schema) { return ProtobufSchema::Compile(schema).status().code(); }

const char kShop[] = R"(
  syntax = "proto3";
  package shop;
  message Envelope {
    string note = 1;
    message Order { int64 id = 1; string ref = 2; Customer customer = 3; map<string, string> tags = 4; }
    message Other { int32 x = 1; }
  }
  message Customer { string customer_id = 7; }
)";

TEST(ProtobufSchemaTest, MessageIndexesNameTheMessage) {
  const Schema shop = ProtoText(kShop);
  const std::string order = VarintField(1, 300) + BytesField(3, BytesField(7, "c"));
  EXPECT_EQ(Read(shop, "/id", order, {0, 0}), "n300");
  EXPECT_EQ(Read(shop, "/customer/customer_id", order, {0, 0}), "sc");
  EXPECT_EQ(Read(shop, "/customer/customerId", order, {0, 0}), "sc") << "the JSON name";
  EXPECT_EQ(Read(shop, "/customerId", BytesField(7, "c"), {1}), "sc");
  EXPECT_EQ(Read(shop, "/note", BytesField(1, "n")), "sn") << "the first message";
  EXPECT_EQ(Read(shop, "/x", VarintField(1, 5), {0, 1}), "n5");
  for (const std::vector<int32_t>& indexes :
       std::vector<std::vector<int32_t>>{{2}, {-1}, {INT32_MAX}, {0, 2}, {0, 1, 0}, {1, 0}}) {
    EXPECT_EQ(Read(shop, "/id", order, indexes), "no message");
  }
  EXPECT_EQ(Read(shop, "/id", order, {1}), "no place");
  EXPECT_EQ(Read(shop, "/id/deeper", order, {0, 0}), "no place");
  EXPECT_EQ(Read(shop, "/1", order, {0, 0}), "no place") << "numbers are no names";
}

// Descriptors hold an entry of each map among the nested messages: some serializers count it, some do not.
TEST(ProtobufSchemaTest, NestedMessagesBesideMaps) {
  const Schema schema = ProtoText(R"(syntax = "proto3"; message Outer {
    map<string, string> tags = 1; message A { string a = 1; } map<string, int32> sizes = 2;
    message B { string b = 1; } message C { string c = 1; } })");
  const std::string one = BytesField(1, "1");
  EXPECT_EQ(Read(schema, "/a", one, {0, 1}), "s1");
  EXPECT_EQ(Read(schema, "/b", one, {0, 3}), "s1");
  EXPECT_EQ(Read(schema, "/c", one, {0, 4}), "s1");
  EXPECT_EQ(Read(schema, "/a", one, {0, 0}), "s1") << "the entry of tags is no record";
  EXPECT_EQ(Read(schema, "/c", one, {0, 2}), "s1") << "nor that of sizes";
  EXPECT_EQ(Read(schema, "/c", one, {0, 5}), "no message");
}

// The id stays when the schema evolves.
TEST(ProtobufSchemaTest, Evolution) {
  const auto schema = [](const std::string& fields) {
    return ProtoText("syntax = \"proto3\"; message M {" + fields + "}");
  };
  EXPECT_EQ(Read(schema("int32 id = 1;"), "/id", VarintField(1, 7)), "n7");
  EXPECT_EQ(Read(schema("int64 id = 1;"), "/id", VarintField(1, 7)), "n7") << "int32 to int64";
  EXPECT_EQ(Read(schema("optional int64 id = 1;"), "/id", VarintField(1, 7)), "n7");
  EXPECT_EQ(Read(schema("sint64 id = 9;"), "/id", Tag(9, 0) + Zigzag(7)), "n7") << "another number and type";
  EXPECT_EQ(Read(schema("fixed64 id = 1;"), "/id", Tag(1, 1) + Fixed(uint64_t{7})), "n7");
  EXPECT_EQ(Read(schema("string before = 2; int32 id = 1;"), "/id", BytesField(2, "x") + VarintField(1, 7)),
            "n7");
  EXPECT_EQ(Read(schema("oneof one { int32 id = 1; string name = 2; }"), "/id", VarintField(1, 7)), "n7");
  EXPECT_EQ(
      Read(ProtoText("syntax = \"proto2\"; message M { required int32 id = 1; }"), "/id", VarintField(1, 7)),
      "n7");
  Schema wrapped = schema("google.protobuf.Int64Value id = 1;");
  wrapped.text.insert(wrapped.text.find(';') + 1, "import \"google/protobuf/wrappers.proto\";");
  EXPECT_EQ(Read(wrapped, "/id", BytesField(1, VarintField(1, 7))), "n7") << "a wrapper is its value";
  EXPECT_EQ(Read(wrapped, "/id", BytesField(1, "")), "n0");
  EXPECT_EQ(Read(wrapped, "/id", ""), "absent");
}

TEST(ProtobufSchemaTest, ADefaultIsTheValueOnlyIfTheSchemaSaysSo) {
  const std::string fields = R"(
    enum Color { RED = 0; BLUE = 1; }
    message Inner { int32 id = 1; }
    int32 number = 1; string text = 2; bool flag = 3; Color color = 4; double real = 5; bytes raw = 6;
    optional int32 maybe = 7; Inner inner = 8; oneof one { int32 choice = 9; } repeated int32 list = 10;
    map<string, int32> map = 11;)";
  const Schema schema = ProtoText("syntax = \"proto3\"; message M {" + fields + "}");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"/number", "n0"},       {"/text", "s"},        {"/flag", "=false"},  {"/color", "sRED"},
      {"/real", "n0"},         {"/raw", "s"},         {"/maybe", "absent"}, {"/inner", "absent"},
      {"/inner/id", "absent"}, {"/choice", "absent"}, {"/list", "absent"},  {"/list/0", "absent"},
      {"/map", "absent"},      {"/map/k", "absent"}};
  for (const auto& [pointer, text] : expected) EXPECT_EQ(Read(schema, pointer, ""), text) << pointer;
  EXPECT_EQ(Read(schema, "/inner/id", BytesField(8, "")), "n0") << "the message is there";
  EXPECT_EQ(Read(schema, "/maybe", VarintField(7, 0)), "n0") << "written";
  EXPECT_EQ(Read(schema, "/map/k", BytesField(11, BytesField(1, "k"))), "n0") << "an entry without its value";
  EXPECT_EQ(Read(schema, "/map/", BytesField(11, VarintField(2, 5))), "n5") << "an entry without its key";
  const Schema proto2 = ProtoText(
      "syntax = \"proto2\"; message M { optional int32 id = 1 [default = 5]; required string text = 2; }");
  EXPECT_EQ(Read(proto2, "/id", ""), "absent") << "a default of its own is none";
  EXPECT_EQ(Read(proto2, "/text", ""), "absent");
}

TEST(ProtobufSchemaTest, Types) {
  const Schema schema = ProtoText(R"(syntax = "proto3"; message M {
    int32 i32 = 1; int64 i64 = 2; uint32 u32 = 3; uint64 u64 = 4; sint32 s32 = 5; sint64 s64 = 6;
    fixed32 f32 = 7; fixed64 f64 = 8; sfixed32 sf32 = 9; sfixed64 sf64 = 10; float real = 11; double deep = 12;
    bool flag = 13; string text = 14; bytes raw = 15; Color color = 16; M m = 17; }
    enum Color { option allow_alias = true; RED = 0; BLUE = 1; AZURE = 1; LOW = -1; })");
  const auto minus = static_cast<uint64_t>(-5);
  EXPECT_EQ(Read(schema, "/i32", VarintField(1, minus)), "n-5");
  EXPECT_EQ(Read(schema, "/i32", VarintField(1, (uint64_t{1} << 32) + 3)), "n3") << "cut, as others do";
  EXPECT_EQ(Read(schema, "/i64", VarintField(2, minus)), "n-5");
  EXPECT_EQ(Read(schema, "/u32", VarintField(3, UINT32_MAX)), "n4294967295");
  EXPECT_EQ(Read(schema, "/u64", VarintField(4, UINT64_MAX)), "n18446744073709551615");
  EXPECT_EQ(Read(schema, "/s32", Tag(5, 0) + Zigzag(INT32_MIN)), "n-2147483648");
  EXPECT_EQ(Read(schema, "/s64", Tag(6, 0) + Zigzag(INT64_MIN)), "n-9223372036854775808");
  EXPECT_EQ(Read(schema, "/f32", Tag(7, 5) + Fixed(UINT32_MAX)), "n4294967295");
  EXPECT_EQ(Read(schema, "/f64", Tag(8, 1) + Fixed(UINT64_MAX)), "n18446744073709551615");
  EXPECT_EQ(Read(schema, "/sf32", Tag(9, 5) + Fixed(int32_t{-7})), "n-7");
  EXPECT_EQ(Read(schema, "/sf64", Tag(10, 1) + Fixed(int64_t{-7})), "n-7");
  EXPECT_EQ(Read(schema, "/real", Tag(11, 5) + Fixed(0.1F)), "n0.1");
  EXPECT_EQ(Read(schema, "/deep", Tag(12, 1) + Fixed(-2.5)), "n-2.5");
  EXPECT_EQ(Read(schema, "/deep", Tag(12, 1) + Fixed(std::numeric_limits<double>::infinity())), "=");
  EXPECT_EQ(Read(schema, "/flag", VarintField(13, 2)), "=true");
  EXPECT_EQ(Read(schema, "/text", BytesField(14, "x")), "sx");
  EXPECT_EQ(Read(schema, "/raw", BytesField(15, "\xFF")), "s\xFF");
  EXPECT_EQ(Read(schema, "/color", VarintField(16, 1)), "sBLUE");
  EXPECT_EQ(Read(schema, "/color", VarintField(16, static_cast<uint64_t>(-1))), "sLOW");
  EXPECT_EQ(Read(schema, "/color", VarintField(16, 77)), "n77") << "as in JSON";
  EXPECT_EQ(Read(schema, "/m", BytesField(17, "")), "=");
  EXPECT_EQ(Read(schema, "/i64", BytesField(2, "x")), "n0") << "another wire type is an unknown field";
  EXPECT_EQ(Read(schema, "/text", VarintField(14, 1)), "s");
  std::string deep = VarintField(2, 9);
  std::string pointer = "/i64";
  for (int i = 0; i < 50; ++i) {
    deep = BytesField(17, deep);
    pointer = "/m" + pointer;
  }
  EXPECT_EQ(Read(schema, pointer, deep), "n9") << "a recursive type";
}

TEST(ProtobufSchemaTest, ListsMapsOneofsAndGroups) {
  const Schema schema = ProtoText(R"(syntax = "proto2"; message M {
    repeated int32 packed = 1 [packed = true]; repeated sint64 loose = 2; repeated M items = 3;
    map<int32, M> by_number = 4; map<bool, string> by_bool = 5; optional string id = 6;
    oneof one { M left = 7; string right = 8; }
    optional group Old = 9 { optional string id = 1; }
    repeated Closed closed = 10; optional Closed one_closed = 11; }
    enum Closed { A = 1; })");
  const std::string packed = BytesField(1, Varint(5) + Varint(300)) + VarintField(1, 7);
  EXPECT_EQ(Read(schema, "/packed/0", packed), "n5");
  EXPECT_EQ(Read(schema, "/packed/1", packed), "n300");
  EXPECT_EQ(Read(schema, "/packed/2", packed), "n7");
  EXPECT_EQ(Read(schema, "/packed/3", packed), "absent");
  EXPECT_EQ(Read(schema, "/packed", packed), "=");
  EXPECT_EQ(Read(schema, "/packed/x", packed), "no place");
  EXPECT_EQ(Read(schema, "/packed/0", BytesField(1, "\x05\xFF")), "broken");
  EXPECT_EQ(Read(schema, "/loose/1", BytesField(2, Zigzag(1) + Zigzag(-2))), "n-2") << "packed all the same";
  const auto item = [](const std::string& id) { return BytesField(3, BytesField(6, id)); };
  EXPECT_EQ(Read(schema, "/items/1/id", item("a") + item("b") + item("c")), "sb");
  EXPECT_EQ(
      Read(schema, "/items/1/items/0/id", BytesField(3, item("x")) + BytesField(3, item("y") + item("z"))),
      "sy");
  const auto entry = [](uint64_t key, const std::string& value) {
    return BytesField(4, VarintField(1, key) + BytesField(2, value));
  };
  const std::string two = entry(1, BytesField(6, "a")) + entry(static_cast<uint64_t>(-2), BytesField(6, "b"));
  EXPECT_EQ(Read(schema, "/by_number/1/id", two), "sa");
  EXPECT_EQ(Read(schema, "/by_number/-2/id", two), "sb");
  EXPECT_EQ(Read(schema, "/by_number/3/id", two), "absent");
  EXPECT_EQ(Read(schema, "/by_number/1/id", two + entry(1, "")), "absent") << "the last entry counts whole";
  EXPECT_EQ(Read(schema, "/by_bool/true", BytesField(5, BytesField(2, "x") + VarintField(1, 1))), "sx");
  const std::string left = BytesField(7, BytesField(6, "l"));
  EXPECT_EQ(Read(schema, "/left/id", left), "sl");
  EXPECT_EQ(Read(schema, "/left/id", left + BytesField(8, "r")), "absent") << "another one of its oneof";
  EXPECT_EQ(Read(schema, "/left/id", left + BytesField(8, "r") + BytesField(7, "")), "absent");
  EXPECT_EQ(Read(schema, "/left/id", left + BytesField(7, "")), "sl") << "messages are merged";
  EXPECT_EQ(Read(schema, "/right", BytesField(8, "r") + left), "absent");
  const std::string group = Tag(9, 3) + BytesField(1, "g") + Tag(2, 3) + Tag(2, 4) + Tag(9, 4);
  EXPECT_EQ(Read(schema, "/old/id", group), "sg");
  EXPECT_EQ(Read(schema, "/id", group + BytesField(6, "x")), "sx");
  EXPECT_EQ(Read(schema, "/one_closed", VarintField(11, 2)), "absent");
  EXPECT_EQ(Read(schema, "/one_closed", VarintField(11, 1) + VarintField(11, 2)), "sA");
  EXPECT_EQ(Read(schema, "/closed/0", VarintField(10, 2) + VarintField(10, 1)), "sA");
}

TEST(ProtobufSchemaTest, ReferencesAndImports) {
  Schema schema = ProtoText(R"(syntax = "proto3"; package a;
    import "b.proto"; import "google/protobuf/timestamp.proto"; import "confluent/meta.proto";
    message M { b.Inner inner = 1; google.protobuf.Timestamp at = 2; strange.Type what = 3;
      string id = 4 [(confluent.field_meta).doc = "x"]; })");
  schema.references = {{"c.proto", "syntax = \"proto3\"; package c; message Leaf { string id = 1; }"},
                       {"b.proto",
                        "syntax = \"proto3\"; package b; import \"c.proto\"; "
                        "message Inner { c.Leaf leaf = 1; }"},
                       {"google/protobuf/timestamp.proto", "registries list it, too"}};
  EXPECT_EQ(Read(schema, "/inner/leaf/id", BytesField(1, BytesField(1, BytesField(1, "x")))), "sx");
  EXPECT_EQ(Read(schema, "/at/seconds", BytesField(2, VarintField(1, 9))), "n9");
  EXPECT_EQ(Read(schema, "/id", BytesField(3, "?") + BytesField(4, "x")), "sx") << "an unknown import";
  EXPECT_EQ(Read(schema, "/what/id", BytesField(3, "?")), "no place");
}

TEST(ProtobufSchemaTest, DescriptorsInBase64) {
  pb::FileDescriptorProto file;
  pb::Int64Value::descriptor()->file()->CopyTo(&file);
  file.set_name("mine.proto");
  file.set_package("mine");
  const Schema schema = ProtoText(absl::Base64Escape(file.SerializeAsString()));
  EXPECT_EQ(Read(schema, "/value", VarintField(1, 7), {2}), "n7");
  EXPECT_EQ(Read(schema, "/value", BytesField(1, "x"), {7}), "sx");
}

TEST(ProtobufSchemaTest, SchemasThatCannotBe) {
  testing::internal::CaptureStderr();
  constexpr auto kWrong = absl::StatusCode::kInvalidArgument;
  for (const char* const text :
       {"message", "message M {", "syntax = \"proto4\";", "{\"type\":\"record\"}", "AAAA",
        "syntax = \"proto3\"; message M { int32 a = 1; int32 b = 1; }",
        "syntax = \"proto3\"; message M { int32 a = 0; }", "syntax = \"proto3\"; message M { extend M {} }",
        "syntax = \"proto3\"; message M { int32 a = 99999999999999; }"}) {
    EXPECT_EQ(CodeOf(ProtoText(text)), kWrong) << text;
  }
  EXPECT_EQ(Read(ProtoText(""), "/a", ""), "no message");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "message M {";
  EXPECT_EQ(CodeOf(ProtoText(deep)), absl::StatusCode::kResourceExhausted);
  deep.clear();
  for (int i = 0; i < 10'000; ++i) deep += "message M { //}\n";
  EXPECT_EQ(CodeOf(ProtoText(deep)), absl::StatusCode::kResourceExhausted) << "a bracket in a comment";
  std::string large;
  large.resize(size_t{10} << 20, ' ');
  EXPECT_EQ(CodeOf(ProtoText(large)), absl::StatusCode::kResourceExhausted);
  pb::FileDescriptorProto nested;
  pb::DescriptorProto* message = nested.add_message_type();
  for (int i = 0; i < 90; ++i) {
    message->set_name("M");
    message = message->add_nested_type();
  }
  message->set_name("M");
  EXPECT_NE(CodeOf(ProtoText(absl::Base64Escape(nested.SerializeAsString()))), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(ProtoText("message M { optional int32 a = 1; }")), absl::StatusCode::kOk) << "proto2";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "libprotobuf has logged";
}

// Random bytes that are nearly messages: what libprotobuf's reader reads is what the walk finds.
class Oracle {
 public:
  explicit Oracle(const std::string& text) {
    pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
    pb::io::Tokenizer tokenizer(&stream, nullptr);
    pb::compiler::Parser parser;
    pb::FileDescriptorProto file;
    EXPECT_TRUE(parser.Parse(&tokenizer, &file));
    file.set_name("oracle.proto");
    descriptor_ = pool_.BuildFile(file)->message_type(0);
  }

  // Of a field of the message or, through `inner`, of its message m. "unreadable" if it is no message.
  std::string Read(const std::string& bytes, const std::string& name, bool inner) {
    const std::unique_ptr<pb::Message> message(factory_.GetPrototype(descriptor_)->New());
    if (!message->ParseFromString(bytes)) return "unreadable";
    const pb::Message* holder = message.get();
    if (inner) {
      const pb::FieldDescriptor* m = descriptor_->FindFieldByName("m");
      if (!holder->GetReflection()->HasField(*holder, m)) return "absent";
      holder = &holder->GetReflection()->GetMessage(*holder, m);
    }
    return TextOf(*holder, *descriptor_->FindFieldByName(name));
  }

 private:
  static std::string TextOf(const pb::Message& message, const pb::FieldDescriptor& field) {
    const pb::Reflection& read = *message.GetReflection();
    if (field.has_presence() && !read.HasField(message, &field)) return "absent";
    using Field = pb::FieldDescriptor;
    switch (field.cpp_type()) {
      case Field::CPPTYPE_INT32:
        return absl::StrCat("n", read.GetInt32(message, &field));
      case Field::CPPTYPE_INT64:
        return absl::StrCat("n", read.GetInt64(message, &field));
      case Field::CPPTYPE_UINT32:
        return absl::StrCat("n", read.GetUInt32(message, &field));
      case Field::CPPTYPE_UINT64:
        return absl::StrCat("n", read.GetUInt64(message, &field));
      case Field::CPPTYPE_BOOL:
        return read.GetBool(message, &field) ? "=true" : "=false";
      case Field::CPPTYPE_ENUM: {
        const int number = read.GetEnumValue(message, &field);
        const auto* value = field.enum_type()->FindValueByNumber(number);
        return value == nullptr ? absl::StrCat("n", number) : "s" + value->name();
      }
      case Field::CPPTYPE_STRING:
        return "s" + read.GetString(message, &field);
      default:
        return "=";
    }
  }

  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_;
  const pb::Descriptor* descriptor_ = nullptr;
};

TEST(ProtobufSchemaTest, ReadsWhatLibprotobufReads) {
  const std::string text = R"(syntax = "proto3"; message M {
    int32 i32 = 1; int64 i64 = 2; uint32 u32 = 3; uint64 u64 = 4; sint32 s32 = 5; sint64 s64 = 6;
    fixed32 f32 = 7; sfixed64 sf64 = 8; bool flag = 9; bytes raw = 10; E e = 11; optional int32 maybe = 12;
    M m = 13; oneof one { int32 first = 14; bytes second = 15; M third = 16; } }
    enum E { NONE = 0; ONE = 1; })";
  const std::vector<std::string> names = {"i32",  "i64", "u32", "u64",   "s32",   "s64",    "f32",  "sf64",
                                          "flag", "raw", "e",   "maybe", "first", "second", "third"};
  std::vector<std::string> pointers;
  for (const std::string& name : names) pointers.insert(pointers.end(), {"/" + name, "/m/" + name});
  const auto compiled = ProtobufSchema::Compile(ProtoText(text));
  ASSERT_OK(compiled);
  ProtobufWalk walk(compiled->Places({}, pointers).value());
  Oracle oracle(text);
  std::mt19937_64 random(TestSeed());
  const auto fields = [&](const auto& self, int depth) -> std::string {
    std::string bytes;
    for (uint64_t i = random() % 6; i > 0; --i) {
      const auto number = static_cast<uint32_t>(random() % 17 + 1);
      const uint64_t value = random() >> random() % 64;
      switch (random() % 8) {
        case 0:
          bytes += Tag(number, 5) + Fixed(static_cast<uint32_t>(value));
          break;
        case 1:
          bytes += Tag(number, 1) + Fixed(value);
          break;
        case 2:
        case 3:
          bytes += BytesField(number, std::string(random() % 4, 'x'));
          break;
        case 4:
        case 5:
          bytes += BytesField(random() % 2 == 0 ? 13 : 16, depth > 3 ? "" : self(self, depth + 1));
          break;
        default:
          bytes += VarintField(number, value);
      }
    }
    return bytes;
  };
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string bytes = fields(fields, 0);
    const bool is_message = walk.Walk(bytes);
    for (size_t j = 0; j < pointers.size(); ++j) {
      const std::string expected = oracle.Read(bytes, names[j / 2], j % 2 == 1);
      if (expected == "unreadable") break;  // also for what is inside of messages that the walk skips
      ++read;
      ASSERT_TRUE(is_message) << absl::BytesToHexString(bytes);
      ASSERT_EQ(Text(walk.value(j)), expected) << pointers[j] << " of " << absl::BytesToHexString(bytes);
    }
  }
  EXPECT_GT(read, 100'000);
}

}  // namespace
}  // namespace lethe
