// Checks an Avro value and finds the values at a few places in it, in one pass over the encoding.
#ifndef LETHE_SRC_RECORD_AVRO_WALK_H_
#define LETHE_SRC_RECORD_AVRO_WALK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/record/avro_schema.h"
#include "src/record/field_value.h"

namespace lethe {

// The values: of a string, bytes, a fixed and an enum the text (a fixed that is a uuid as 8-4-4-4-12 hex
// digits), of an int and a long the decimal text, of a float and a double the shortest decimal text that is
// read back as the same (1 for 1.0, 1e+20; NaN and infinities are no values), of a decimal its value without
// zeros at the end (1.5 for 1.50). Of a key that is twice in a map the last value counts.
//
// All of the value is checked but the bytes of skipped blocks that have their size before them. A value that
// takes more than kStepsPerByte and the program's place_steps() is malformed: only one is whose maps have a
// key again and again. It is not
// Debian's libavro: that builds the whole value, and resolves schemas by its own rules
// (tests/bench/README.md has the cost). Stops allocating after its largest decimal. Thread-compatible.
class AvroWalk {
 public:
  static constexpr uint64_t kStepsPerByte = 4;

  // `places`: how many were asked of the programs.
  explicit AvroWalk(size_t places) : places_(places) {}

  // Whether the bytes are one value, and nothing follows it.
  bool Walk(const AvroProgram& program, absl::string_view bytes);

  // The value at the i-th place. Valid until the next Walk, as long as the bytes and the program.
  const FieldValue& value(size_t i) const { return places_[i].value; }

  // After a Walk that returned false: the error, and its byte.
  const char* error() const { return error_; }
  size_t error_offset() const { return error_offset_; }

  // Of the last Walk: values that were read or skipped, blocks of arrays and maps, entries of maps, places
  // that a map's key has reset.
  uint64_t steps() const { return steps_; }

 private:
  struct Place {
    FieldValue value;
    std::string text;
  };

  // These return the first byte behind the value; null: see error().
  const char* Read(const char* at, const AvroReading& reading, size_t depth);
  const char* ReadPart(const char* at, const AvroPart& part, size_t depth);
  const char* ReadItems(const char* at, const AvroReading& reading, size_t depth);
  const char* ReadEntry(const char* at, const AvroReading& reading, size_t depth);
  const char* Skip(const char* at, const AvroType& type, size_t depth);
  const char* SkipPart(const char* at, const AvroPart& part, size_t depth);
  const char* SkipRun(const char* at, const AvroPart& part, uint64_t count, size_t depth);
  const char* SkipItems(const char* at, const AvroType& type, size_t depth);
  const char* SkipBytes(const char* at, uint64_t count);
  const char* SkipText(const char* at);
  const char* TakeText(const char* at, absl::string_view* text);
  const char* TakeIndex(const char* at, size_t count, size_t* index);
  // The items of a block, 0 at the end; `block_end` stays null unless the block has its size before it.
  const char* TakeCount(const char* at, uint64_t* count, const char** block_end);
  const char* Fail(const char* error, const char* at);

  // False if there are too many.
  bool TakeSteps(uint64_t count) { return (steps_ += count) <= most_steps_; }

  // [at, end): the value, which is not a container.
  void Store(const AvroType& type, const char* at, const char* end, uint64_t places);
  void StoreOne(const AvroType& type, const char* at, const char* end, Place& place) const;

  std::vector<Place> places_;
  const AvroProgram* program_ = nullptr;
  const char* begin_ = nullptr;
  const char* end_ = nullptr;
  uint64_t steps_ = 0;
  uint64_t most_steps_ = 0;
  const char* error_ = "";
  size_t error_offset_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_AVRO_WALK_H_
