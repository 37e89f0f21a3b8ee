// Schemas of framed records, from any source.
#ifndef LETHE_SRC_RECORD_SCHEMA_SOURCE_H_
#define LETHE_SRC_RECORD_SCHEMA_SOURCE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lethe {

// What a frame names a schema by: a number, or a GUID.
struct SchemaId {
  int32_t number = 0;  // 0: by the GUID
  std::array<uint8_t, 16> guid = {};

  // 17, or 6f9619ff-8b86-d011-b42d-00c04fc964ff.
  std::string ToString() const;
  friend auto operator<=>(const SchemaId&, const SchemaId&) = default;
};

// A schema with everything that it needs.
struct SchemaText {
  enum class Type { kAvro, kProtobuf, kJson };
  struct Reference {
    std::string name;  // an Avro type's full name, or the path of a Protobuf import
    std::string text;
  };

  Type type = Type::kAvro;
  std::string text;
  std::vector<Reference> references;  // direct and indirect; each after those that it needs itself
};

// Implementations are thread-safe, and never block on a network or a disk.
class SchemaSource {
 public:
  struct Answer {
    enum class State {
      kKnown,
      kWaiting,  // it is being asked for, which `why` says if it takes long: ask again
      kUnknown,  // there is no such schema, for now
    };
    State state = State::kUnknown;
    std::shared_ptr<const SchemaText> schema;  // of kKnown; the same for good
    std::string why;
  };

  virtual ~SchemaSource() = default;
  virtual Answer Find(const SchemaId& id) = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_SCHEMA_SOURCE_H_
