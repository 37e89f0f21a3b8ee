// A value that was found in a record.
#ifndef LETHE_SRC_RECORD_FIELD_VALUE_H_
#define LETHE_SRC_RECORD_FIELD_VALUE_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lethe {

// What a number counts if it is a time since the Unix epoch.
enum class TimeUnit : uint8_t {
  kMilliseconds,
  kMicroseconds,
  kNanoseconds,
  kSeconds,
  kTimestamp,  // as kSeconds, of a message that is a time as a whole and nothing else
  kDays,
};

// The value at a place, in the form that JSON has for it, so that a record has the same id in every format.
// `text` is UTF-8 for a string (bytes as they are, and of a JSON document the text between its quotes), the
// decimal text of a number, true or false; empty for others.
struct FieldValue {
  enum class Kind : uint8_t {
    kAbsent,
    kString,
    kNumber,
    kOther,  // a record, an array, true, false or null
  };
  Kind kind = Kind::kAbsent;
  bool escaped = false;  // a JSON string with a backslash in it: see AppendUnescaped
  absl::string_view text;
  TimeUnit unit = TimeUnit::kMilliseconds;  // another one only if the record's schema says so
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_FIELD_VALUE_H_
