// Schemas by the id or the GUID in a record's frame.
#ifndef LETHE_SRC_RECORD_SCHEMA_SOURCE_H_
#define LETHE_SRC_RECORD_SCHEMA_SOURCE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace lethe {

// As a registry has it. Immutable.
struct Schema {
  enum class Type { kAvro, kProtobuf, kJson };
  // A schema that another one names: of Avro by its full name, of Protobuf by its file.
  struct Reference {
    std::string name;
    std::string text;
  };

  Type type = Type::kAvro;
  // Avro: JSON. Protobuf: the text of a .proto file, or a FileDescriptorProto in base64.
  std::string text;
  std::vector<Reference> references;  // all that are needed, each after those that it needs itself
};

// A positive id, or a GUID as its 16 bytes.
using SchemaKey = std::variant<int32_t, std::array<uint8_t, 16>>;

struct SchemaLookup {
  enum class State {
    kKnown,
    kWaiting,  // not known yet: ask again later, and read the record again then
    kUnknown,  // the registry has none, by all that is known
  };
  State state = State::kUnknown;
  std::shared_ptr<const Schema> schema = nullptr;  // of kKnown
  // Of the others, for people: why it is not known, with its name. Empty: nobody has been asked yet.
  std::string why = {};
};

// "schema id 7", "schema GUID 0123abcd-..."
std::string SchemaName(const SchemaKey& key);

struct SchemaFigures {
  int64_t known = 0;
  int64_t waiting = 0;
  // Requests to the registry, by their result.
  int64_t answered = 0;
  int64_t unknown = 0;  // it has no such schema
  int64_t refused = 0;  // 401 or 403
  int64_t failed = 0;   // no answer, or none that makes sense
};

// Thread-safe.
class SchemaSource {
 public:
  virtual ~SchemaSource() = default;
  // Never blocks: what is not known is asked for elsewhere meanwhile.
  virtual SchemaLookup Find(const SchemaKey& key) = 0;
  // Records that need it are about to be read: it may be asked for when nothing else is.
  virtual void Expect(const SchemaKey& /* key */) {}
  // Grows when a schema that was waited for is kKnown or kUnknown.
  virtual int64_t answers() const { return 0; }
  virtual SchemaFigures figures() const { return {}; }
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_SCHEMA_SOURCE_H_
