// Any text as a Protobuf schema: nothing crashes. Any bytes as a message: the walk finds what libprotobuf's
// own reader does.
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/record/protobuf_schema.h"
#include "src/record/protobuf_walk.h"

namespace {

namespace pb = google::protobuf;
using lethe::FieldValue;
using lethe::ProtobufSchema;
using lethe::ProtobufWalk;
using lethe::Schema;

constexpr char kSchema[] = R"(syntax = "proto2"; message M {
  optional int32 i32 = 1; optional uint64 u64 = 2; optional sint32 s32 = 3; optional fixed32 f32 = 4;
  optional bool flag = 5; optional bytes raw = 6; optional E e = 7; optional M m = 8;
  repeated int32 packed = 9 [packed = true]; repeated E es = 10; repeated M items = 11;
  oneof one { int64 first = 12; bytes second = 13; M third = 14; }
  optional group Old = 15 { optional int32 id = 1; repeated bytes raws = 2; } }
  enum E { NONE = 0; ONE = 1; })";

// For each pointer.
constexpr size_t kMostStepsAByte = 10;

const std::vector<std::string>& Pointers() {
  static const auto* pointers = new std::vector<std::string>{"/i32",
                                                             "/u64",
                                                             "/s32",
                                                             "/f32",
                                                             "/flag",
                                                             "/raw",
                                                             "/e",
                                                             "/m/i32",
                                                             "/m/m/raw",
                                                             "/packed/0",
                                                             "/packed/2",
                                                             "/es/1",
                                                             "/items/0/i32",
                                                             "/items/1/es/0",
                                                             "/first",
                                                             "/second",
                                                             "/third/i32",
                                                             "/m/first",
                                                             "/third/third/second",
                                                             "/old/id",
                                                             "/old/raws/1",
                                                             "/third/packed/1"};
  return *pointers;
}

std::string ScalarText(const pb::Message& message, const pb::FieldDescriptor& field, int index) {
  const pb::Reflection& read = *message.GetReflection();
  const bool listed = index >= 0;
  using Field = pb::FieldDescriptor;
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      return absl::StrCat(listed ? read.GetRepeatedInt32(message, &field, index)
                                 : read.GetInt32(message, &field));
    case Field::CPPTYPE_INT64:
      return absl::StrCat(read.GetInt64(message, &field));
    case Field::CPPTYPE_UINT32:
      return absl::StrCat(read.GetUInt32(message, &field));
    case Field::CPPTYPE_UINT64:
      return absl::StrCat(read.GetUInt64(message, &field));
    case Field::CPPTYPE_BOOL:
      return read.GetBool(message, &field) ? "true" : "false";
    case Field::CPPTYPE_ENUM:
      return (listed ? read.GetRepeatedEnum(message, &field, index) : read.GetEnum(message, &field))->name();
    default:
      return listed ? read.GetRepeatedString(message, &field, index) : read.GetString(message, &field);
  }
}

// nullptr: it is not there.
std::unique_ptr<std::string> OracleText(const pb::Message& root, const std::string& pointer) {
  const std::vector<std::string> steps = absl::StrSplit(pointer.substr(1), '/');
  const pb::Message* message = &root;
  for (size_t i = 0; i < steps.size(); ++i) {
    const pb::FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(steps[i]);
    const pb::Reflection& read = *message->GetReflection();
    int index = -1;
    if (field->is_repeated()) {
      if (!absl::SimpleAtoi(steps[++i], &index) || index >= read.FieldSize(*message, field)) return nullptr;
    } else if (!read.HasField(*message, field)) {
      return nullptr;
    }
    if (field->message_type() == nullptr) {
      return std::make_unique<std::string>(ScalarText(*message, *field, index));
    }
    message =
        index >= 0 ? &read.GetRepeatedMessage(*message, field, index) : &read.GetMessage(*message, field);
  }
  return nullptr;
}

void CheckSteps(const ProtobufWalk& walk, size_t places, size_t bytes) {
  if (walk.steps() <= kMostStepsAByte * places * bytes) return;
  std::fprintf(stderr, "%zu bytes took %zu steps\n", bytes, static_cast<size_t>(walk.steps()));
  std::abort();
}

void CheckMessage(const std::string& bytes) {
  static const auto* const kCompiled =
      new ProtobufSchema(ProtobufSchema::Compile({Schema::Type::kProtobuf, kSchema, {}}).value());
  static auto* const walk = new ProtobufWalk(kCompiled->Places({}, Pointers()).value());
  static auto* const pool = new pb::DescriptorPool;
  static auto* const factory = new pb::DynamicMessageFactory;
  static const pb::Descriptor* const descriptor = [] {
    pb::io::ArrayInputStream stream(kSchema, sizeof kSchema - 1);
    pb::io::Tokenizer tokenizer(&stream, nullptr);
    pb::FileDescriptorProto file;
    pb::compiler::Parser parser;
    if (!parser.Parse(&tokenizer, &file)) std::abort();
    file.set_name("fuzz.proto");
    return pool->BuildFile(file)->message_type(0);
  }();
  // libprotobuf cuts integers of more than 64 bits, which the walk refuses.
  const bool is_message = walk->Walk(bytes);
  CheckSteps(*walk, Pointers().size(), bytes.size());
  if (!is_message) return;
  const std::unique_ptr<pb::Message> message(factory->GetPrototype(descriptor)->New());
  // It reads also what is inside of messages that the walk skips.
  if (!message->ParsePartialFromString(bytes)) return;
  for (size_t i = 0; i < Pointers().size(); ++i) {
    const auto expected = OracleText(*message, Pointers()[i]);
    const FieldValue& value = walk->value(i);
    if ((value.kind != FieldValue::Kind::kAbsent) == (expected != nullptr) &&
        (expected == nullptr || value.text == *expected)) {
      continue;
    }
    std::fprintf(stderr, "the readers disagree on %s: '%s', not %s\n", Pointers()[i].c_str(),
                 std::string(value.text).c_str(), expected == nullptr ? "absent" : expected->c_str());
    std::abort();
  }
}

void CheckSchema(const std::string& text) {
  const auto schema = ProtobufSchema::Compile({Schema::Type::kProtobuf, text, {}});
  if (!schema.ok()) return;
  const std::vector<std::string> pointers = {"/id", "/a/b", "/tags/k", "/items/0/id", "/order/customer/id"};
  for (const std::vector<int32_t>& indexes : std::vector<std::vector<int32_t>>{{}, {1}, {0, 0}, {0, 0, 1}}) {
    auto places = schema->Places(indexes, pointers);
    if (!places) continue;
    ProtobufWalk walk(*std::move(places));
    walk.Walk(text);
    CheckSteps(walk, pointers.size(), text.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  data[0] % 2 == 0 ? CheckSchema(rest) : CheckMessage(rest);
  return 0;
}
