// Any text as a schema, and any bytes as a value of it: nothing crashes, runs on or fills the memory. A value
// that is right when places in it are read is right when it is skipped, too, and has the same values whoever
// else is asked for.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/record/avro_schema.h"
#include "src/record/avro_walk.h"
#include "src/record/protobuf_schema.h"
#include "src/record/protobuf_walk.h"
#include "src/record/record_reader.h"
#include "src/record/registry_frame.h"
#include "tests/support/fake_schemas.h"

namespace {

using lethe::AvroProgram;
using lethe::AvroWalk;
using lethe::FieldValue;
using lethe::ProtobufPlace;
using lethe::ProtobufWalk;
using lethe::Schema;

const std::vector<std::string>& Places() {
  static const auto* places =
      new std::vector<std::string>{"/id",        "/order/id", "/order/n",        "/a",
                                   "/a/b",       "/0",        "/order/tags/1",   "/order/labels/a",
                                   "/at",        "/f",        "/order/counts/1", "/order/price",
                                   "/order/uid", "/a/a/a"};
  return *places;
}

void Check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "the walks disagree: %s\n", what);
  std::abort();
}

void CheckSame(const FieldValue& one, const FieldValue& other) {
  Check(one.kind == other.kind && one.text == other.text, "a value alone and among others");
}

void CheckAvro(const Schema& schema, const std::string& bytes) {
  const auto all = AvroProgram::Compile(schema, Places());
  const auto none = AvroProgram::Compile(schema, {"/no/such"});
  if (!all.ok() || !none.ok()) return;
  AvroWalk walk(Places().size());
  AvroWalk skip(1);
  if (!walk.Walk(*all, bytes)) {
    skip.Walk(*none, bytes);
    return;
  }
  Check(skip.Walk(*none, bytes), "is it right");
  for (size_t i = 0; i < Places().size(); ++i) {
    const auto one = AvroProgram::Compile(schema, {Places()[i]});
    AvroWalk alone(1);
    Check(one.ok() && alone.Walk(*one, bytes), "is it right");
    CheckSame(alone.value(0), walk.value(i));
    Check(all->has(i) || walk.value(i).kind == FieldValue::Kind::kAbsent, "what the schema lacks");
  }
}

void CheckProtobuf(const Schema& schema, std::string bytes) {
  const auto compiled = lethe::ProtobufSchema::Compile(schema);
  std::vector<int32_t> indexes;
  absl::string_view message = bytes;
  if (!compiled.ok() || !lethe::TakeMessageIndexes(message, &indexes)) return;
  const auto places = compiled->Places(indexes, Places());
  if (!places) return;
  ProtobufWalk walk(*places);
  if (!walk.Walk(message)) return;
  for (size_t i = 0; i < Places().size(); ++i) {
    ProtobufWalk alone({(*places)[i]});
    Check(alone.Walk(message), "is it right");
    CheckSame(alone.value(0), walk.value(i));
  }
}

// The whole reader, with the schema as number 1.
void CheckReader(const Schema& schema, const std::string& bytes) {
  lethe::test::FakeSchemas schemas;
  schemas.Put(1, schema);
  lethe::RecordSpec spec;
  spec.id = lethe::IdSpec::Parse("avro:/order/id+key.protobuf:/order/id").value();
  spec.time = lethe::Field::Parse("avro:/at").value();
  spec.schemas = &schemas;
  lethe::RecordReader reader(spec);
  const std::string framed = std::string("\0\0\0\0\1", 5) + bytes;
  reader.Read({.key = framed, .value = framed});
  reader.Read({.key = bytes, .value = bytes});
}

}  // namespace

// A byte for the kind, the schema's text, a 0, and the value.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t end = rest.find('\0');
  if (end == std::string::npos) return 0;
  const std::string bytes = rest.substr(end + 1);
  Schema schema = {data[0] % 2 == 0 ? Schema::Type::kAvro : Schema::Type::kProtobuf, rest.substr(0, end), {}};
  CheckReader(schema, bytes);
  if (schema.type == Schema::Type::kAvro) {
    CheckAvro(schema, bytes);
  } else {
    CheckProtobuf(schema, bytes);
  }
  return 0;
}
