// Any text as an Avro schema, and any bytes as a value of it: nothing crashes, runs on or fills the memory. A
// value that is right when places in it are read is right when it is skipped, too, and has the same values
// whoever else is asked for.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/record/avro_schema.h"
#include "src/record/avro_walk.h"
#include "src/record/record_reader.h"
#include "tests/support/fake_schemas.h"

namespace {

using lethe::AvroProgram;
using lethe::AvroWalk;
using lethe::FieldValue;
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
  const bool is_right = walk.Walk(*all, bytes);
  const bool is_skipped = skip.Walk(*none, bytes);
  // The last step may be that of all places at once.
  Check(walk.steps() <= AvroWalk::kStepsPerByte * (bytes.size() + 1) + all->place_steps() + 65, "its steps");
  Check(skip.steps() <= 2 * bytes.size() + none->place_steps() + 1, "the steps of a skip");
  if (!is_right) return;
  Check(is_skipped, "is it right");
  for (size_t i = 0; i < Places().size(); ++i) {
    const auto one = AvroProgram::Compile(schema, {Places()[i]});
    AvroWalk alone(1);
    Check(one.ok() && alone.Walk(*one, bytes), "is it right");
    CheckSame(alone.value(0), walk.value(i));
    Check(all->has(i) || walk.value(i).kind == FieldValue::Kind::kAbsent, "what the schema lacks");
  }
}

// The whole reader, with the schema as number 1.
void CheckReader(const Schema& schema, const std::string& bytes) {
  lethe::test::FakeSchemas schemas;
  schemas.Put(1, schema);
  lethe::RecordSpec spec;
  spec.id = lethe::IdSpec::Parse("avro:/order/id+key.avro:/id").value();
  spec.time = lethe::Field::Parse("avro:/at").value();
  spec.schemas = &schemas;
  lethe::RecordReader reader(spec);
  const std::string framed = std::string("\0\0\0\0\1", 5) + bytes;
  reader.Read({.key = framed, .value = framed});
  reader.Read({.key = bytes, .value = bytes});
}

}  // namespace

// The schema's text, a 0, and the value.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  if (end == std::string::npos) return 0;
  const Schema schema = {Schema::Type::kAvro, input.substr(0, end), {}};
  const std::string bytes = input.substr(end + 1);
  CheckReader(schema, bytes);
  CheckAvro(schema, bytes);
  return 0;
}
