// The frame that a schema registry's serializers put before a key or a value: a zero byte and the schema's
// id, 4 bytes big-endian (Confluent's wire format; Apicurio writes it, too). Newer serializers may leave key
// and value unframed, and name the schema in a header: a byte 1 and the schema's GUID.
#ifndef LETHE_SRC_RECORD_REGISTRY_FRAME_H_
#define LETHE_SRC_RECORD_REGISTRY_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/record/record.h"
#include "src/record/schema_source.h"

namespace lethe {

inline constexpr size_t kNumberBytes = 8;
inline constexpr size_t kFrameBytes = 5;

// The schema's id, above 0, if the bytes look framed. 8 bytes are taken for a number, which looks the same.
inline std::optional<int32_t> SchemaIdOf(absl::string_view bytes) {
  if (bytes.size() <= kFrameBytes || bytes.size() == kNumberBytes || bytes[0] != '\0') return std::nullopt;
  uint32_t id = 0;
  for (size_t i = 1; i < kFrameBytes; ++i) id = id << 8 | static_cast<uint8_t>(bytes[i]);
  if (id == 0 || id > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(id);
}

// A key or a value without its frame.
struct Unframed {
  enum class Kind {
    kFramed,
    kPlain,   // no frame: `payload` is all of it
    kBroken,  // it has a frame that cannot be, or one of another registry
  };
  Kind kind = Kind::kPlain;
  absl::string_view payload = {};  // of Protobuf with the message's indexes before it, unless in the header
  SchemaKey schema = {};           // of kFramed
  bool in_header = false;
  absl::string_view in_header_behind = {};  // what follows the schema in the header: the message's indexes
  const char* why = "";                     // of kBroken, for people: "it begins with..."
};

// The header of the key's or the value's schema comes before their frame. `headers` may be null.
Unframed Unframe(absl::string_view bytes, const RecordHeaders* headers, bool of_key);

// Takes Protobuf's message indexes off the front: a count and that many numbers, as zigzag varints; a lone 0
// stands for the first message, and is no index. False if they cannot be. At most 32 nested messages.
bool TakeMessageIndexes(absl::string_view& bytes, std::vector<int32_t>* indexes);

// How many of the keys and values that were seen are framed. Not thread-safe.
class RegistryFrames {
 public:
  void Add(std::optional<absl::string_view> key, std::optional<absl::string_view> value) {
    Add(key, keys_);
    Add(value, values_);
  }

  // Whether nearly all keys, or values, are framed: nine of ten.
  bool in_keys() const { return keys_.Nearly(); }
  bool in_values() const { return values_.Nearly(); }
  // The share of framed ones; 0 if none was seen.
  double key_share() const { return keys_.Share(); }
  double value_share() const { return values_.Share(); }
  // A share to speak of: other bytes look like a frame now and then.
  static constexpr double kNotable = 0.01;
  // A schema of the keys, or of the values; 0 if none was seen.
  int32_t key_schema() const { return keys_.schema; }
  int32_t value_schema() const { return values_.schema; }

 private:
  struct Count {
    int64_t seen = 0;
    int64_t framed = 0;
    int32_t schema = 0;

    double Share() const { return seen == 0 ? 0 : static_cast<double>(framed) / static_cast<double>(seen); }
    bool Nearly() const { return framed > 0 && 10 * framed >= 9 * seen; }
  };

  static void Add(std::optional<absl::string_view> bytes, Count& count) {
    if (!bytes) return;
    // A number or a frame: the others tell.
    if (bytes->size() == kNumberBytes && (*bytes)[0] == '\0') return;
    ++count.seen;
    const auto schema = SchemaIdOf(*bytes);
    if (!schema) return;
    ++count.framed;
    if (count.schema == 0) count.schema = *schema;
  }

  Count keys_;
  Count values_;
};

// For people: what such bytes begin with.
std::string FrameText(int32_t schema);

// What can be done with framed values, and what an id does that is a framed key or value as a whole.
inline constexpr absl::string_view kFramedValuesRemedy =
    "set id to avro:/POINTER or protobuf:/NAME, and schema_registry.url (--schema-registry); to "
    "framed.json:/POINTER (JSON "
    "Schema) or protobuf:/NUMBER (the numbers of its fields), which need no registry; to a header "
    "(header:NAME); or to value if copies are equal byte for byte";
inline constexpr absl::string_view kFrameEffect =
    "a copy that was written with another version of the schema has another id and passes";
inline constexpr absl::string_view kFramedKeysRemedy =
    "set id to a field of the key, such as key.avro:/POINTER, key.protobuf:/NAME or "
    "key.framed.json:/POINTER, "
    "to a header (header:NAME), or keep the key's schema as it is";

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_REGISTRY_FRAME_H_
