// Compiles a writer's Avro schema for a few places, so that avro_walk.h can find their values.
#ifndef LETHE_SRC_RECORD_AVRO_SCHEMA_H_
#define LETHE_SRC_RECORD_AVRO_SCHEMA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/record/field_value.h"
#include "src/record/schema_source.h"

namespace lethe {

// A type of the schema, as it is skipped: https://avro.apache.org/docs/1.12.0/specification
struct AvroType {
  enum class Kind : uint8_t {
    kNull,
    kBoolean,
    kInt,
    kLong,
    kFloat,
    kDouble,
    kBytes,
    kString,
    kFixed,
    kEnum,
    kRecord,
    kArray,
    kMap,
    kUnion
  };
  // Of a logical type; where the specification calls one invalid, kPlain.
  enum class Meaning : uint8_t { kPlain, kUuid, kDecimal };

  Kind kind = Kind::kNull;
  Meaning meaning = Meaning::kPlain;
  TimeUnit unit = TimeUnit::kMilliseconds;  // of a number
  // Its values take no bytes at all: null, and what consists of it. All others take at least one.
  bool is_empty = false;
  uint32_t size = 0;   // of kFixed, bytes
  uint32_t scale = 0;  // of kDecimal
  // Indexes of types. Record: those of its fields that take bytes; array, map: of the items; union: of all.
  std::vector<uint32_t> parts = {};
  std::vector<std::string> symbols = {};  // of kEnum
};

// What is read of a value: places are bits of a mask.
struct AvroReading {
  static constexpr uint32_t kNothing = UINT32_MAX;

  // A value inside it, and what is read of that: kNothing if it is skipped.
  struct Part {
    uint32_t type = 0;
    uint32_t reading = kNothing;
  };
  struct Item {
    std::string key;
    int64_t index = 0;
    uint64_t under = 0;  // the places in it
    uint32_t reading = kNothing;
  };

  uint32_t type = 0;
  uint64_t ends = 0;             // the places that are this value itself
  std::vector<Part> parts = {};  // of a record (fields without bytes only if they are read) or a union
  std::vector<Item> items = {};  // of an array or a map: those that are read
};

// Immutable.
class AvroProgram {
 public:
  // Of records, arrays and maps in each other, in a value.
  static constexpr size_t kDeepestValue = 512;

  // `pointers`: JSON pointers (RFC 6901), at most 64, well-formed and not empty. A step is the name of a
  // record's field or one of its aliases, the index in an array, or the key in a map; unions have no step.
  // InvalidArgument: it is no Avro schema; ResourceExhausted: it is larger than 1 MiB with its references,
  // or nested deeper than 64. Both fit behind "schema id 7 ".
  static absl::StatusOr<AvroProgram> Compile(const Schema& schema, const std::vector<std::string>& pointers);

  const std::vector<AvroType>& types() const { return types_; }
  const std::vector<AvroReading>& readings() const { return readings_; }
  uint32_t root_type() const { return root_type_; }
  uint32_t root_reading() const { return root_reading_; }
  // Whether a value of this schema can have the i-th place.
  bool has(size_t i) const { return (found_ >> i & 1) != 0; }

 private:
  friend class AvroCompiler;

  std::vector<AvroType> types_;
  std::vector<AvroReading> readings_;
  uint32_t root_type_ = 0;
  uint32_t root_reading_ = AvroReading::kNothing;
  uint64_t found_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_AVRO_SCHEMA_H_
