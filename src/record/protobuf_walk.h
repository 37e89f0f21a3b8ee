// Checks a Protobuf message and finds the values at a few places in it, in one pass over the encoding.
#ifndef LETHE_SRC_RECORD_PROTOBUF_WALK_H_
#define LETHE_SRC_RECORD_PROTOBUF_WALK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/record/field_value.h"

namespace lethe {

// The numbers of the fields that lead to a place; the last one is the place itself.
using ProtobufPath = std::vector<uint32_t>;

// Of the value at a place, as its schema has it; kUnknown: there is no schema, and the encoding must do.
enum class ProtobufType : uint8_t {
  kUnknown,
  kInt32,
  kInt64,
  kUint32,
  kUint64,
  kSint32,
  kSint64,
  kFixed32,
  kFixed64,
  kSfixed32,
  kSfixed64,
  kFloat,
  kDouble,
  kBool,
  kEnum,
  kBytes,  // and strings
  kMessage,
  kAll,  // elements of a repeated field, or entries of a map
};

// Which one of a repeated field or a map is meant.
struct ProtobufElement {
  enum class Kind : uint8_t { kLast, kIndex, kKey } kind = Kind::kLast;
  uint64_t index = 0;
  // A map is written as messages with a key (1) and a value (2), so that the path goes on with 2.
  std::string key = {};
  ProtobufType key_type = ProtobufType::kBytes;
};

struct ProtobufPlace {
  ProtobufPath path;  // empty: the message has no such place
  ProtobufType type = ProtobufType::kUnknown;
  // Its value is the type's default in a message that is there and does not have it.
  bool has_default = false;
  TimeUnit unit = TimeUnit::kMilliseconds;      // of a number
  std::map<int32_t, std::string> symbols = {};  // of an enum
  bool has_other_numbers = false;               // the enum may have numbers without a symbol
  // By step, as far as there are any: the other fields of its oneof, of which the last one counts.
  std::vector<std::vector<uint32_t>> rivals = {};
  std::vector<ProtobufElement> elements = {};  // by step, as far as one is not the last
};

// Of a field that occurs several times the last value counts, and messages that do are merged, as the
// specification has it. Groups, unknown fields and those of another wire type than the schema's are skipped;
// groups may be 100 deep, as in other readers. Only messages on the way to a place are looked into: others
// are bytes.
//
// It does not use libprotobuf's readers: those build the whole message (tests/bench/README.md has the cost).
// Stops allocating after construction. Thread-compatible.
class ProtobufWalk {
 public:
  // At most 64.
  explicit ProtobufWalk(std::vector<ProtobufPlace> places);

  // Whether the bytes are a message.
  bool Walk(absl::string_view message);

  // The value at the i-th place. Valid until the next Walk, as long as the message.
  const FieldValue& value(size_t i) const { return targets_[i].value; }

  // After a Walk that returned false: the error, and its byte.
  const char* error() const { return error_; }
  size_t error_offset() const { return error_offset_; }

 private:
  struct Written {
    uint8_t wire = 0;
    uint64_t number = 0;
    absl::string_view bytes = {};
  };
  struct Target {
    ProtobufPlace place;
    FieldValue value = {};
    std::array<char, 32> digits = {};
    std::vector<uint64_t> seen = {};  // elements, by step
  };

  bool Fail(const char* error, const char* at);
  bool WalkMessage(const char* at, const char* end, uint64_t live, size_t depth);
  bool TakeField(const char** at, const char* end, uint8_t wire, Written* written);
  bool SkipGroup(const char** at, const char* end, uint32_t number);
  // The targets that lead through the field, or end there.
  uint64_t Matching(uint64_t live, size_t depth, uint32_t number) const;
  // Takes the targets away that mean another element than this one. False: what it had to look into is
  // broken.
  bool Select(const Written& written, size_t depth, uint64_t* matching);
  bool SelectElement(const Written& written, size_t depth, Target& target, bool* is_it);
  bool SelectEntry(const Written& written, const ProtobufElement& element, bool* is_it);
  void ForgetRivals(uint64_t live, size_t depth, uint32_t number);
  static void Forget(Target& target, size_t depth);
  static void Store(const Written& written, Target& target);
  static void StoreDefault(Target& target);

  std::vector<Target> targets_;
  // Sets of targets.
  uint64_t all_ = 0;
  uint64_t with_default_ = 0;
  uint64_t with_rivals_ = 0;
  uint64_t with_elements_ = 0;
  std::vector<uint64_t> ends_at_;  // by depth: those with so many steps
  Target key_;                     // of a map's entry
  const char* begin_ = nullptr;
  const char* error_ = "";
  size_t error_offset_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_PROTOBUF_WALK_H_
