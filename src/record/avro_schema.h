// Compiles a writer's Avro schema for a few places, so that avro_walk.h can find their values.
#ifndef LETHE_SRC_RECORD_AVRO_SCHEMA_H_
#define LETHE_SRC_RECORD_AVRO_SCHEMA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/record/field_value.h"
#include "src/record/schema_source.h"

namespace lethe {

// https://avro.apache.org/docs/1.12.0/specification
enum class AvroKind : uint8_t {
  kNull,  // or whatever else takes no bytes, if it is skipped
  kBoolean,
  kInt,
  kLong,
  kFloat,
  kDouble,
  kBytes,
  kString,
  kFixed,  // or a run of values whose size the schema tells, if it is skipped
  kEnum,
  kRecord,
  kArray,
  kMap,
  kUnion
};

// Of a logical type; where the specification calls one invalid, kPlain.
enum class AvroMeaning : uint8_t { kPlain, kUuid, kDecimal };

// A value inside another one. A record with one field that takes bytes is that field.
struct AvroPart {
  static constexpr uint32_t kNothing = UINT32_MAX;

  uint32_t type = 0;            // of a value that is skipped
  uint32_t reading = kNothing;  // of a value that is read
  uint32_t levels = 0;          // records that are left out
};

// How a value is skipped, or what a value is that is a place.
struct AvroType {
  AvroKind kind = AvroKind::kNull;
  AvroMeaning meaning = AvroMeaning::kPlain;
  TimeUnit unit = TimeUnit::kMilliseconds;  // of a number
  uint16_t scale = 0;                       // of kDecimal
  // Record: the parts that take bytes; array, map: its items; union: its branches. Of an enum that is a
  // place: its symbols, else only how many there are.
  uint32_t first = 0;
  uint32_t count = 0;
  uint64_t size = 0;  // of a float, a double, a fixed

  bool has_fixed_size() const {
    return kind == AvroKind::kFixed || kind == AvroKind::kFloat || kind == AvroKind::kDouble;
  }
};

// What is read of a value: places are bits of a mask.
struct AvroReading {
  uint32_t type = 0;
  uint64_t ends = 0;  // the places that are this value itself
  // Record: its parts (those without bytes only if they are read); union: its branches; array, map: the items
  // that are read, by their indexes or keys, ascending.
  uint32_t first = 0;
  uint32_t count = 0;
};

struct AvroItem {
  std::string key;
  int64_t index = 0;
  uint64_t under = 0;  // the places in it
  uint32_t reading = 0;
};

// A schema as a plan: a walk along it takes no more than two steps for a byte of a value, and one for each
// place and each step of its pointer, unless a map has a key twice that is read. Immutable.
class AvroProgram {
 public:
  // Of records, arrays and maps in each other, in a value.
  static constexpr size_t kDeepestValue = 512;

  // `pointers`: JSON pointers (RFC 6901), at most 64, well-formed and not empty. A step is the name of a
  // record's field or one of its aliases, the index in an array, or the key in a map; unions have no step.
  // InvalidArgument: it is no Avro schema; ResourceExhausted: it is larger than 1 MiB with its references,
  // nested deeper than 64, or its program takes more than kMostPlanBytes. Both fit behind "schema id 7 ".
  static absl::StatusOr<AvroProgram> Compile(const Schema& schema, const std::vector<std::string>& pointers);

  const AvroPart& root() const { return root_; }
  const AvroType& type(uint32_t index) const { return types_.data()[index]; }
  const AvroReading& reading(uint32_t index) const { return readings_.data()[index]; }
  absl::Span<const AvroPart> PartsOf(const AvroType& type) const {
    return {parts_.data() + type.first, type.count};
  }
  absl::Span<const AvroPart> PartsOf(const AvroReading& reading) const {
    return {parts_.data() + reading.first, reading.count};
  }
  absl::Span<const AvroItem> ItemsOf(const AvroReading& reading) const {
    return {items_.data() + reading.first, reading.count};
  }
  // Of an enum that is a place.
  absl::string_view Symbol(const AvroType& type, size_t index) const;
  // Whether a value of this schema can have the i-th place.
  bool has(size_t i) const { return (found_ >> i & 1) != 0; }
  size_t bytes() const;
  // The steps that places may take, whatever the size of the value is.
  uint64_t place_steps() const { return place_steps_; }

 private:
  friend class AvroCompiler;

  AvroPart root_;
  std::vector<AvroType> types_;
  std::vector<AvroReading> readings_;
  std::vector<AvroPart> parts_;
  std::vector<AvroItem> items_;
  std::string symbols_;
  std::vector<uint32_t> symbol_ends_;
  uint64_t found_ = 0;
  uint64_t place_steps_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_AVRO_SCHEMA_H_
