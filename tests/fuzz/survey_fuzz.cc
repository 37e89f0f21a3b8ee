// Any text as a schema, and any bytes as a value of it or without one: the survey looks for ids in them, and
// nothing crashes, runs on or fills the memory.
#include <cstdint>
#include <string>

#include "src/record/schema_source.h"
#include "src/survey/id_places.h"
#include "tests/support/fake_schemas.h"

namespace {

void Look(const std::string& value, lethe::SchemaSource* schemas) {
  lethe::IdPlaces places;
  // The second time by what was found of the schema.
  for (int i = 0; i < 2; ++i) places.AddValue(value, nullptr, schemas);
}

}  // namespace

// The schema's type, its text, a 0, and the value.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Type = lethe::Schema::Type;
  if (size == 0) return 0;
  const Type type = data[0] % 3 == 0 ? Type::kAvro : data[0] % 3 == 1 ? Type::kProtobuf : Type::kJson;
  const std::string input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t end = input.find('\0');
  const std::string value = end == std::string::npos ? input : input.substr(end + 1);
  const std::string framed = std::string("\0\0\0\0\1", 5) + value;
  lethe::test::FakeSchemas schemas;
  schemas.Put(1, {type, end == std::string::npos ? "" : input.substr(0, end), {}});
  Look(framed, &schemas);
  Look(framed, nullptr);
  Look(value, nullptr);
  return 0;
}
