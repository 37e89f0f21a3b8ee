// The places of a record where an id could be.
#ifndef LETHE_SURVEY_ID_PLACES_H_
#define LETHE_SURVEY_ID_PLACES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lethe/secret_hash.h"
#include "src/record/record_reader.h"
#include "src/record/schema_source.h"

namespace lethe {

// Counts in how many records each place has a string or a number: headers, and JSON down to four objects, not
// in arrays; of Avro behind a frame the fields of its schema, down to four records. Counts the first 512
// places. Leaves out names with a '+', which joins ids. Thread-compatible.
class IdPlaces {
 public:
  IdPlaces();
  ~IdPlaces();

  void AddHeader(absl::string_view name);
  // `headers` and `schemas` may be null; without schemas, what is framed may be JSON.
  void AddValue(absl::string_view value, const RecordHeaders* headers, SchemaSource* schemas);

  // Places in at least `least` records, the most frequent first, at most `most`.
  std::vector<Field> AtLeast(int64_t least, size_t most) const;

 private:
  struct Parser;

  void AddJson(absl::string_view text, Field::Kind kind);
  void Count(Field::Kind kind, absl::string_view name);

  SecretHashMap<int64_t> records_;  // by Field::ToString()
  std::unique_ptr<Parser> parser_;
  std::map<SchemaKey, std::vector<std::string>> avro_;  // the pointers of each schema
};

}  // namespace lethe

#endif  // LETHE_SURVEY_ID_PLACES_H_
