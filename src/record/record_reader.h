// The places of id, time and counters in a record, and how they are read.
#ifndef LETHE_SRC_RECORD_RECORD_READER_H_
#define LETHE_SRC_RECORD_RECORD_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/record/field_value.h"
#include "src/record/record.h"
#include "src/record/schema_source.h"

namespace lethe {

// One place in a record: `key`, `value`, `header:NAME`, or a pointer (RFC 6901) into the value, of one of
// these forms, or into the key, with `key.` before it:
//
//   json:/pointer           JSON
//   framed.json:/pointer    JSON, with a schema registry's frame before it or without
//   protobuf:/3/7           Protobuf by the numbers of its fields, with a frame or without
//   avro:/pointer           Avro behind a frame, by its schema: names or aliases of fields, indexes of
//                           elements, keys of maps; a union has no step
//   protobuf:/name...       the same of Protobuf: names of fields, or their names in JSON
struct Field {
  enum class Kind { kKey, kValue, kHeader, kJson, kFramedJson, kProtobuf, kAvro, kProtobufNames };
  Kind kind = Kind::kValue;
  std::string name;     // the header's name, or the pointer
  bool in_key = false;  // a pointer into the key
  // A part of a joined id that may be absent: written with a '?' behind it.
  bool is_optional = false;

  bool is_pointer() const { return kind >= Kind::kJson; }
  bool needs_schema() const { return kind == Kind::kAvro || kind == Kind::kProtobufNames; }

  // InvalidArgument says what is wrong, and the nearest right form.
  static absl::StatusOr<Field> Parse(absl::string_view text);
  std::string ToString() const;
};

// An id: one or more fields joined with '+', for example json:/client+json:/seq; fields but one may be
// optional, as in json:/client+json:/part?. Or several of these, of which the first that is there counts:
// header:event-id or json:/id.
//
// Its bytes: key, value and headers as they are; a JSON string is the byte 's' and its unescaped UTF-8, a
// JSON number the byte 'n' and its text as written (so 1 and 1.0 differ, and 1 and "1"). Joined fields are
// each preceded by their length, 8 bytes little-endian; that of an optional field is 0 if the field is not
// there, null or empty (of a value or a key that is there), which is all that tells it from others. Of
// several ids the number of the one that counts, from 0, is the first byte, so that ids of two places never
// meet. A place that cannot be read is one that is not there, if a later one can. A record has no id if a
// field is empty, an object, an array, null, true or false, or a string with half of a surrogate pair (a lone
// \ud800), which has no UTF-8. Of a name that is twice in an object the last value counts.
//
// The same value gives the same bytes in every format: strings, bytes, fixed and the symbols of enums are
// strings; integers are numbers in their decimal text, and so are float and double, in the shortest one that
// is read back as the same (1 for 1.0). Of Avro's logical types a decimal is its value without zeros at the
// end, a uuid its text in lower case if it is a fixed; others are the number that they are. A field that
// Protobuf leaves out is the default of its type if the schema gives it no presence, so that 0 is an id and
// an empty string none. The frame is no part of an id.
struct IdSpec {
  std::vector<Field> fields;  // of all places
  // Where in `fields` the second place begins, and each later one; empty: there is one place.
  std::vector<size_t> later_places = {};

  static absl::StatusOr<IdSpec> Parse(absl::string_view text);
  std::string ToString() const;
  size_t places() const { return later_places.size() + 1; }
  absl::Span<const Field> place(size_t number) const;  // from 0
  // Of the value, without a frame.
  bool reads_json() const;
  // The key or the value as a whole, whatever is in it.
  bool reads_key() const;
  bool reads_value() const;
  bool needs_schema() const;
  // Hex of a hash of ToString() and of the version of the rule above.
  std::string Fingerprint() const;
};

// The counter key and the delta of an event.
struct CounterSpec {
  // String: its UTF-8; number: its text (a JSON number's as written); key, value or header: as it is.
  Field key;
  // A number that is written as an integer (not 1.0, 1e3 or "1"), or the decimal text of one. nullopt:
  // each event counts 1.
  std::optional<Field> delta = std::nullopt;
  // Only events with this text at this place are counted; read like the key, and true and false are texts.
  struct Condition {
    Field field;
    std::string text;
  };
  std::optional<Condition> when = std::nullopt;
};

struct RecordSpec {
  IdSpec id;
  // Number: Unix time in `time_unit`, or what the schema says (Avro's timestamps and dates; the seconds of
  // google.protobuf.Timestamp); string: RFC 3339; key, value or header: the text of either, the
  // Unix time an integer. Other times, and those outside the years 0 to 9999, are missing.
  std::optional<Field> time = std::nullopt;
  TimeUnit time_unit = TimeUnit::kMilliseconds;
  std::vector<CounterSpec> counters = {};
  // For fields that need a schema; outlives the readers. Null: there is none, and such records are malformed.
  SchemaSource* schemas = nullptr;
};

// InvalidArgument: more than 64 fields of one format in the key or the value.
absl::Status CheckPlaces(const RecordSpec& spec);

// The result of one counter of the spec for a record.
struct CounterUpdate {
  enum class State {
    kCounted,
    kNotMeant,     // the condition does not hold
    kUncountable,  // key or delta are missing or unusable, or the record is broken
  };
  State state = State::kUncountable;
  absl::string_view key;  // not empty
  int64_t delta = 1;
  std::string reason;  // of kUncountable, for people: "json:/n is a fraction"
};

// The fields of one record. Views point into the record or into the reader, and are valid until the
// reader's next Read().
struct RecordFields {
  enum class State {
    kPresent,
    kMissing,    // the record is well-formed, and has no usable value there
    kMalformed,  // the record is broken, anywhere in the key or the value that the field is in
    kWaiting,    // its schema is not known yet: see waits_for
  };
  State id_state = State::kMissing;
  absl::string_view id;
  // Why the id is missing or the record malformed, for people; empty if it is present.
  absl::string_view reason;
  // Of a present id: which of several places it is from, and whether an optional field of it is absent.
  uint8_t id_place = 0;
  bool lacks_optional = false;

  State time_state = State::kMissing;
  absl::Time time = absl::InfinitePast();
  // The whole number at the place of the time, in time_unit; also of a time that is out of bounds. nullopt: a
  // text is there, or the schema says which unit it has, or nothing is.
  std::optional<int64_t> unix_time;

  // One for each counter of the spec, in its order.
  absl::Span<const CounterUpdate> counters;

  // The schema that the source does not have yet, of any field of the spec: nothing else of the record counts
  // then, and it must be read again.
  std::optional<SchemaNeed> waits_for;
};

// Parses and checks the JSON of a record once, if the spec needs it (json_scanner.h), and so with the other
// formats. A null value is well-formed and has no field; an empty one is malformed JSON and an empty Protobuf
// message. Stops allocating after its largest record; with JSON it keeps about ten times
// that size. Thread-compatible: one reader per thread.
class RecordReader {
 public:
  explicit RecordReader(RecordSpec spec);
  ~RecordReader();
  RecordReader(RecordReader&&) noexcept;

  const RecordFields& Read(const RecordView& record);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_RECORD_READER_H_
