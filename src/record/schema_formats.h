// The formats whose fields are named by the schema of each record.
#ifndef LETHE_SRC_RECORD_SCHEMA_FORMATS_H_
#define LETHE_SRC_RECORD_SCHEMA_FORMATS_H_

#include <memory>
#include <string>
#include <vector>

#include "src/record/record_format.h"
#include "src/record/schema_source.h"

namespace lethe {

// As MakeFormat.
std::unique_ptr<RecordFormat> MakeAvroFormat(const std::vector<std::string>& places, bool in_key,
                                             SchemaSource* schemas);
std::unique_ptr<RecordFormat> MakeProtobufFormat(const std::vector<std::string>& places, bool in_key,
                                                 SchemaSource* schemas);

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_SCHEMA_FORMATS_H_
