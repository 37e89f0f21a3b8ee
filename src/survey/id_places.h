// The places of a record where an id could be.
#ifndef LETHE_SURVEY_ID_PLACES_H_
#define LETHE_SURVEY_ID_PLACES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lethe/secret_hash.h"
#include "src/record/record_reader.h"

namespace lethe {

// Counts in how many records each place has a string or a number: headers, and JSON down to four objects, not
// in arrays. Counts the first 512 places. Leaves out names with a '+', which joins ids. Thread-compatible.
class IdPlaces {
 public:
  IdPlaces();
  ~IdPlaces();

  void AddHeader(absl::string_view name);
  void AddJson(absl::string_view text);

  // Places in at least `least` records, the most frequent first, at most `most`.
  std::vector<Field> AtLeast(int64_t least, size_t most) const;

 private:
  struct Parser;

  void Count(Field::Kind kind, absl::string_view name);

  SecretHashMap<int64_t> records_;  // by Field::ToString()
  std::unique_ptr<Parser> parser_;
};

}  // namespace lethe

#endif  // LETHE_SURVEY_ID_PLACES_H_
