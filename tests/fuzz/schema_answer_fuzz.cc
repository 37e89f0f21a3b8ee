// Any bytes as what a schema registry answers, and as a schema that was kept in a file: nothing crashes, and
// what is accepted comes back the same when it is kept and read again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "connectors/registry/schema_answer.h"

namespace {

void CheckKept(const lethe::Schema& schema) {
  const std::string kept = lethe::registry::SchemaToJson(schema);
  const auto again = lethe::registry::SchemaFromJson(kept);
  if (again.ok() && lethe::registry::SchemaToJson(*again) == kept) return;
  std::fprintf(stderr, "not the same again: %s\n", kept.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  lethe::registry::SaysUnknown(text);
  if (const auto answer = lethe::registry::ParseSchemaAnswer(text); answer.ok()) {
    CheckKept({answer->type, answer->text, {}});
  }
  if (const auto schema = lethe::registry::SchemaFromJson(text); schema.ok()) CheckKept(*schema);
  return 0;
}
