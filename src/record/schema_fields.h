// The fields of a schema that may be an id.
#ifndef LETHE_SRC_RECORD_SCHEMA_FIELDS_H_
#define LETHE_SRC_RECORD_SCHEMA_FIELDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "src/record/parsed_schema.h"
#include "src/record/schema_source.h"

namespace lethe {

// Pointers to the strings, bytes, numbers and enums of an Avro schema, in records down to `depth`, not in
// lists and maps; at most `most`.
std::vector<std::string> AvroPointers(const Schema& schema, int depth, size_t most);

// "an Avro schema"
const char* TypeName(Schema::Type type);

// For people, the first few: "/at, /id, /text and others"; of Protobuf those of the first message. Empty:
// none is known.
std::string FieldsText(ParsedSchema& schema);

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_SCHEMA_FIELDS_H_
