// The places of a record where an id could be.
#ifndef LETHE_SURVEY_ID_PLACES_H_
#define LETHE_SURVEY_ID_PLACES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "lethe/secret_hash.h"
#include "src/record/record_reader.h"
#include "src/record/registry_frame.h"
#include "src/record/schema_source.h"

namespace lethe {

// Counts in how many records each place has a string or a number: headers, and JSON down to four objects, not
// in arrays; of Avro and Protobuf behind a frame the fields of their schema, down to four records; of what
// may be Protobuf without a schema its fields' numbers. Counts the first 512 places. Leaves out names with a
// '+', which joins ids. Thread-compatible.
class IdPlaces {
 public:
  IdPlaces();
  ~IdPlaces();

  void AddHeader(absl::string_view name);
  // `headers` and `schemas` may be null; without a schema, what is framed may be JSON or Protobuf.
  void AddValue(absl::string_view value, const RecordHeaders* headers, SchemaSource* schemas);
  // The same of a key, if it is framed.
  void AddKey(absl::string_view key, const RecordHeaders* headers, SchemaSource* schemas);

  // 0 also if there are so many places that this one is not counted.
  int64_t RecordsWith(const Field& field) const;
  // Places in at least `least` records, or so many by their schema; the most frequent first, at most `most`.
  std::vector<Field> AtLeast(int64_t least, int64_t least_by_schema, size_t most) const;

 private:
  struct Parser;

  void Add(const Unframed& unframed, bool in_key, SchemaSource* schemas);
  // False: it is no JSON object.
  bool AddJson(absl::string_view text, Field::Kind kind, bool in_key);
  void AddProtobuf(const Unframed& unframed, bool in_key);
  const std::vector<std::string>& PointersOf(const Unframed& unframed, const Schema& schema);
  void Count(const Field& field);

  SecretHashMap<int64_t> records_;  // by Field::ToString()
  std::unique_ptr<Parser> parser_;
  // Of each schema, and the indexes of a message in it.
  std::map<std::pair<SchemaKey, std::vector<int32_t>>, std::vector<std::string>> pointers_;
};

}  // namespace lethe

#endif  // LETHE_SURVEY_ID_PLACES_H_
