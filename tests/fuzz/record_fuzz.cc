// Any bytes as a record's value and as a spec: nothing crashes, and the id is the one that a naive parser
// finds.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/record/json_scanner.h"
#include "src/record/record_reader.h"
#include "tests/support/naive_json.h"

namespace {

using lethe::RecordFields;

// Where the input's first byte sends the rest.
const std::vector<std::vector<std::string>>& Specs() {
  static const auto* specs = new std::vector<std::vector<std::string>>{
      {"/id"}, {"/a", "/b"}, {"/a/0"}, {"/0"}, {"/a/b/c"}, {"/"}, {"/~0~1", "/a"}, {"/a/a", "/a"}};
  return *specs;
}

lethe::RecordReader MakeReader(const std::vector<std::string>& pointers) {
  lethe::RecordSpec spec;
  for (const std::string& pointer : pointers) spec.id.fields.push_back({lethe::Field::Kind::kJson, pointer});
  spec.time = lethe::Field{lethe::Field::Kind::kJson, "/t"};
  const auto json = [](const char* pointer) { return lethe::Field{lethe::Field::Kind::kJson, pointer}; };
  spec.counters.push_back({json("/a"), json("/b")});
  spec.counters.push_back({json("/b"), std::nullopt, lethe::CounterSpec::Condition{json("/a"), "true"}});
  return lethe::RecordReader(spec);
}

void Check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "the readers disagree: %s\n", what);
  std::abort();
}

void CheckRecord(size_t which, const std::string& value) {
  static auto* readers = new std::vector<lethe::RecordReader>;
  if (readers->empty()) {
    for (const auto& pointers : Specs()) readers->push_back(MakeReader(pointers));
  }
  const RecordFields& fields = (*readers)[which].Read({.value = value});
  const std::optional<lethe::test::NaiveJson> naive = lethe::test::NaiveParser::Parse(value);
  Check((fields.id_state == RecordFields::State::kMalformed) == !naive, "is it JSON");
  if (!naive) return;
  const std::optional<std::string> id = lethe::test::NaiveId(*naive, Specs()[which]);
  Check((fields.id_state == RecordFields::State::kPresent) == id.has_value(), "has it an id");
  if (id) Check(fields.id == *id, "the id's bytes");
  static auto* scanner = new lethe::JsonScanner({"/a/0/b", "/0"});
  scanner->Scan(value);
  Check(scanner->steps() <= 3 * value.size() + 1, "the steps for a byte");
}

// Any bytes as framed JSON and as Protobuf, of the key and the value. An id of Protobuf that is there is
// there again when a field that is not read follows.
void CheckFormats(const std::string& bytes) {
  static auto* reader = [] {
    lethe::RecordSpec spec;
    spec.id = lethe::IdSpec::Parse("key.framed.json:/a+key.protobuf:/3/7+protobuf:/1").value();
    spec.time = lethe::Field::Parse("framed.json:/t").value();
    spec.counters.push_back({lethe::Field::Parse("protobuf:/2/2/2").value()});
    return new lethe::RecordReader(spec);
  }();
  static auto* protobuf = new lethe::RecordReader({.id = lethe::IdSpec::Parse("protobuf:/1").value()});
  reader->Read({.key = bytes, .value = bytes});
  const RecordFields& fields = protobuf->Read({.value = bytes});
  if (fields.id_state != RecordFields::State::kPresent) return;
  const std::string id(fields.id);
  const std::string longer = bytes + "\x7A\x01x";
  Check(protobuf->Read({.value = longer}).id == id, "a field behind the id");
}

// A spec that parses goes there and back, and reads.
void CheckSpec(const std::string& text) {
  const absl::StatusOr<lethe::IdSpec> spec = lethe::IdSpec::Parse(text);
  if (!spec.ok()) return;
  Check(spec->ToString() == text, "the spec's text");
  lethe::RecordSpec record;
  record.id = *spec;
  lethe::RecordReader reader(record);
  reader.Read({.key = text, .value = R"({"a":{"b":[1,"x"]},"id":"y"})"});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t which = data[0] % (Specs().size() + 2);
  if (which == Specs().size()) {
    CheckSpec(rest);
  } else if (which > Specs().size()) {
    CheckFormats(rest);
  } else {
    CheckRecord(which, rest);
  }
  return 0;
}
