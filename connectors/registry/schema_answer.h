// A registry's answers: Confluent's API, versions 7 and 8.
#ifndef LETHE_CONNECTORS_REGISTRY_SCHEMA_ANSWER_H_
#define LETHE_CONNECTORS_REGISTRY_SCHEMA_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/record/schema_source.h"

namespace lethe::registry {

// Of one schema with all that it refers to.
inline constexpr size_t kMostReferences = 256;

struct SchemaAnswer {
  struct Reference {
    std::string name;
    std::string subject;
    int64_t version = 0;
  };
  Schema::Type type = Schema::Type::kAvro;
  std::string text;
  std::vector<Reference> references;
};

// Of a schema's or a version's request. InvalidArgument: it is no such answer. Unimplemented: a schema that
// lethe refuses, for good.
absl::StatusOr<SchemaAnswer> ParseSchemaAnswer(absl::string_view json);
// The same of the beginning of an answer that is too long for a schema: never OK.
absl::StatusOr<SchemaAnswer> BeginsSchemaAnswer(absl::string_view json);

// Whether an answer with status 404 says that there is no such schema, and not that there is no such path.
bool SaysUnknown(absl::string_view json);

// As it is kept in a file: of one schema with all its references.
std::string SchemaToJson(const Schema& schema);
// InvalidArgument: it is not what SchemaToJson writes.
absl::StatusOr<Schema> SchemaFromJson(absl::string_view json);

}  // namespace lethe::registry

#endif  // LETHE_CONNECTORS_REGISTRY_SCHEMA_ANSWER_H_
