// Checks a Protobuf message and finds the values at a few places in it, in one pass over the encoding.
#ifndef LETHE_SRC_RECORD_PROTOBUF_WALK_H_
#define LETHE_SRC_RECORD_PROTOBUF_WALK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/record/field_value.h"

namespace lethe {

// Wire types: https://protobuf.dev/programming-guides/encoding
namespace protobuf_wire {
inline constexpr uint8_t kVarint = 0;
inline constexpr uint8_t kFixed64 = 1;
inline constexpr uint8_t kLength = 2;
inline constexpr uint8_t kGroup = 3;
inline constexpr uint8_t kGroupEnd = 4;
inline constexpr uint8_t kFixed32 = 5;
}  // namespace protobuf_wire

// How a field is written, and what its value is. Without a schema the wire alone tells (kByWire): a varint is
// a signed number, a fixed one an unsigned number, and bytes are a string or a message.
enum class ProtobufType : uint8_t {
  kByWire,
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
  kString,  // or bytes
  kEnum,
  kMessage,
  kGroup
};

// Of one that is not packed.
uint8_t ProtobufWireOf(ProtobufType type);
inline uint32_t ProtobufTag(uint32_t number, uint8_t wire) { return number << 3 | wire; }

// The values of an enum by their numbers.
struct ProtobufEnum {
  std::map<int32_t, std::string> symbols;
  bool is_closed = false;  // proto2: a number without a symbol is as good as an unknown field
};

// A field on the way to a place.
struct ProtobufStep {
  // By its number alone.
  ProtobufStep(uint32_t the_number) : number(the_number) {}  // NOLINT(google-explicit-constructor)

  uint32_t number;
  ProtobufType type = ProtobufType::kByWire;
  bool is_repeated = false;
  // The element of a repeated field; -1: none is named, so that the place is the list.
  int64_t index = -1;
  // Of a map: the entry with this key; its value is the next step.
  std::optional<std::string> map_key = std::nullopt;
  ProtobufType key_type = ProtobufType::kByWire;
  // The other fields of its oneof, as their tags, ascending: each of them takes the value away.
  std::vector<uint32_t> rivals = {};
  // Of the last step: if it is not written, its value is 0, false, "" or an enum's symbol of 0.
  bool has_default = false;
  std::shared_ptr<const ProtobufEnum> symbols = nullptr;  // of kEnum
};

// The fields that lead to a place; the last one is the place itself.
using ProtobufPath = std::vector<ProtobufStep>;

struct ProtobufPlace {
  ProtobufPath path = {};                   // empty: the message has no such place
  TimeUnit unit = TimeUnit::kMilliseconds;  // of a number
};

// Of a field that occurs several times the last value counts, and messages that do are merged, as the
// specification has it. Groups, unknown fields and those of another wire type than the schema's are skipped;
// groups may be 100 deep, as in other readers. Only messages on the way to a place are looked into: others
// are bytes.
//
// A floating-point number is the shortest decimal text that reads back as the same number of its type.
//
// It does not use libprotobuf's readers: those build the whole message (tests/bench/README.md has the cost).
// For each byte it takes a few steps at most, and as many again for each place and each group around one: the
// bytes of a group are passed before they are read. Stops allocating after construction. Thread-compatible.
class ProtobufWalk {
 public:
  // At most 64.
  explicit ProtobufWalk(std::vector<ProtobufPlace> places)
      : ProtobufWalk(std::make_shared<const std::vector<ProtobufPlace>>(std::move(places))) {}
  explicit ProtobufWalk(std::shared_ptr<const std::vector<ProtobufPlace>> places);

  // Whether the bytes are a message.
  bool Walk(absl::string_view message);

  // The value at the i-th place. Valid until the next Walk, as long as the message.
  const FieldValue& value(size_t i) const { return targets_[i].value; }

  // After a Walk that returned false: the error, and its byte.
  const char* error() const { return error_; }
  size_t error_offset() const { return error_offset_; }

  // Of the last Walk: fields that were read or skipped, packed numbers, and comparisons with places.
  uint64_t steps() const { return steps_; }

 private:
  struct Written {
    uint8_t wire = 0;
    uint64_t number = 0;
    absl::string_view bytes = {};  // of a length or a group: what is inside
  };
  struct Target {
    const ProtobufPlace* place;
    FieldValue value = {};
    std::array<char, 32> digits = {};
    std::vector<int64_t> seen;  // by step: elements of a repeated field
    bool is_reached = false;    // the message that the last field belongs to is there
  };

  bool Fail(const char* error, const char* at);
  bool WalkMessage(absl::string_view message, uint64_t live, size_t depth);
  bool WalkField(const Written& written, uint64_t matching, size_t depth);
  bool TakeField(const char** at, const char* end, uint8_t wire, Written* written);
  bool SkipGroup(const char** at, const char* end, uint32_t number, Written* written);
  // The targets that lead through the field, or end there.
  uint64_t Matching(uint64_t live, size_t depth, uint32_t number, uint8_t wire);
  bool TakeElements(const Written& written, size_t depth, Target& target, bool* is_it);
  bool TakePacked(absl::string_view elements, Target& target);
  bool HasKey(absl::string_view entry, const ProtobufStep& step, bool* has);
  void Forget(Target& target, size_t depth);

  std::shared_ptr<const std::vector<ProtobufPlace>> places_;
  std::vector<Target> targets_;
  // Sets of targets.
  uint64_t all_ = 0;               // but those without a path
  uint64_t special_ = 0;           // with a repeated field or a map on their way
  std::vector<uint64_t> ends_at_;  // by depth: those with so many steps
  const char* begin_ = nullptr;
  uint64_t steps_ = 0;
  const char* error_ = "";
  size_t error_offset_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_PROTOBUF_WALK_H_
