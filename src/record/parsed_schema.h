// A schema, and what is parsed of it once for all its uses.
#ifndef LETHE_SRC_RECORD_PARSED_SCHEMA_H_
#define LETHE_SRC_RECORD_PARSED_SCHEMA_H_

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "src/record/protobuf_schema.h"
#include "src/record/schema_source.h"

namespace lethe {

// A Protobuf schema may have ten thousand messages, each of which is a use of its own: parsing 500 KB takes a
// quarter of a second. For one thread.
class ParsedSchema {
 public:
  explicit ParsedSchema(Schema schema) : schema_(std::move(schema)) {}

  const Schema& schema() const { return schema_; }
  // As ProtobufSchema::Compile.
  const absl::StatusOr<ProtobufSchema>& protobuf() {
    if (!protobuf_) protobuf_.emplace(ProtobufSchema::Compile(schema_));
    return *protobuf_;
  }

 private:
  Schema schema_;
  std::optional<absl::StatusOr<ProtobufSchema>> protobuf_;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_PARSED_SCHEMA_H_
