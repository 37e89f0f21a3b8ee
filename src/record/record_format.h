// The formats of keys and values.
#ifndef LETHE_SRC_RECORD_RECORD_FORMAT_H_
#define LETHE_SRC_RECORD_RECORD_FORMAT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/record/field_value.h"
#include "src/record/record.h"
#include "src/record/record_reader.h"
#include "src/record/schema_source.h"

namespace lethe {

// Checks the key or the value of a record, and finds the values at a few places in it. Thread-compatible.
class RecordFormat {
 public:
  virtual ~RecordFormat() = default;
  // Whether it is of the format. `headers` may be null.
  virtual bool Read(absl::string_view bytes, const RecordHeaders* headers) = 0;
  // After a Read that was true: the value at the i-th place. Valid until the next one, as long as the record.
  virtual const FieldValue& value(size_t i) const = 0;
  // Why it is kAbsent: "is not there".
  virtual absl::string_view why_absent(size_t /* i */) const { return "is not there"; }
  // After another: the schema that the source does not have yet; nullopt: the bytes are wrong.
  virtual std::optional<SchemaNeed> waits_for() const { return std::nullopt; }
  // Then: appends what is wrong, to stand behind "the value ".
  virtual void AppendWhy(std::string* reason) const = 0;
  // "JSON"
  virtual const char* name() const = 0;
};

// For fields of one kind, all of the key or all of the value; `places` are their names, at most 64. `schemas`
// may be null.
std::unique_ptr<RecordFormat> MakeFormat(const Field& field, const std::vector<std::string>& places,
                                         SchemaSource* schemas);

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_RECORD_FORMAT_H_
