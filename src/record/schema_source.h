// Schemas by the id or the GUID in a record's frame, and the plans that are made of them.
#ifndef LETHE_SRC_RECORD_SCHEMA_SOURCE_H_
#define LETHE_SRC_RECORD_SCHEMA_SOURCE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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

// Of memory, that a plan may take: some ten thousands of fields.
inline constexpr size_t kMostPlanBytes = size_t{1} << 20;

// What is kept of a schema in the place of its text. Immutable.
class SchemaPlan {
 public:
  virtual ~SchemaPlan() = default;

  // Of memory, with this object.
  size_t bytes() const { return bytes_; }
  // False: records cannot be read by the schema, and its text need not be kept.
  bool is_usable() const { return is_usable_; }

  // Marks it as used. Thread-safe.
  void Touch() const {
    const int64_t now = ticks_.load(std::memory_order_relaxed);
    if (touched_.load(std::memory_order_relaxed) != now) touched_.store(now, std::memory_order_relaxed);
  }
  // When it was used last, in ticks.
  int64_t touched() const { return touched_.load(std::memory_order_relaxed); }
  static int64_t Tick() { return ticks_.fetch_add(1, std::memory_order_relaxed) + 1; }

 protected:
  SchemaPlan(size_t bytes, bool is_usable) : bytes_(bytes), is_usable_(is_usable) { Touch(); }

 private:
  inline static std::atomic<int64_t> ticks_{0};

  const size_t bytes_;
  const bool is_usable_;
  mutable std::atomic<int64_t> touched_{0};
};

class ParsedSchema;

// Makes plans. Immutable, thread-safe.
class SchemaUse {
 public:
  virtual ~SchemaUse() = default;
  // Uses of the same name make the same plans.
  const std::string& name() const { return name_; }
  // Never null: of a schema that cannot be used the plan says why.
  virtual std::shared_ptr<const SchemaPlan> Compile(const SchemaKey& key, ParsedSchema& schema) const = 0;

 protected:
  explicit SchemaUse(std::string name) : name_(std::move(name)) {}

 private:
  const std::string name_;
};

// The use of those who want the schema itself.
std::shared_ptr<const SchemaUse> WholeSchema();

// A schema, and what it is needed for.
struct SchemaNeed {
  SchemaNeed() : SchemaNeed(SchemaKey()) {}
  // The schema itself.
  SchemaNeed(const SchemaKey& the_key) : SchemaNeed(the_key, WholeSchema()) {}  // NOLINT
  SchemaNeed(int32_t id) : SchemaNeed(SchemaKey(id)) {}                         // NOLINT
  SchemaNeed(const SchemaKey& the_key, std::shared_ptr<const SchemaUse> the_use)
      : key(the_key), use(std::move(the_use)) {}

  SchemaKey key;
  std::shared_ptr<const SchemaUse> use;  // never null

  friend bool operator==(const SchemaNeed& a, const SchemaNeed& b) {
    return a.key == b.key && a.use->name() == b.use->name();
  }
  friend bool operator<(const SchemaNeed& a, const SchemaNeed& b) {
    return a.key != b.key ? a.key < b.key : a.use->name() < b.use->name();
  }
};

struct SchemaLookup {
  enum class State {
    kKnown,
    kWaiting,  // not known yet: ask again later, and read the record again then
    kUnknown,  // the registry has none, by all that is known
  };
  State state = State::kUnknown;
  std::shared_ptr<const SchemaPlan> plan = nullptr;  // of kKnown, by the need's use
  // Of the others, for people: why it is not known, with its name. Empty: nobody has been asked yet.
  std::string why = {};
  bool is_answer = true;  // false: kUnknown since no registry has answered in time
};

// Of a need without another use: the schema, which lives as long as the plan. Null: it is not known.
const Schema* SchemaOf(const SchemaLookup& lookup);

// "schema id 7", "schema GUID 0123abcd-..."
std::string SchemaName(const SchemaKey& key);

struct SchemaFigures {
  int64_t known = 0;
  int64_t waiting = 0;
  int64_t memory_bytes = 0;  // of the plans
  int64_t folder_bytes = 0;  // of the files
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
  // Never blocks: what is not known is asked for, and compiled, elsewhere meanwhile. A known plan may be
  // forgotten later, and is asked for again then.
  virtual SchemaLookup Find(const SchemaNeed& need) = 0;
  // What Find would say, for those who do not read a record by it now.
  virtual SchemaLookup Peek(const SchemaNeed& need) { return Find(need); }
  // Records that need it are about to be read: it may be asked for when nothing else is.
  virtual void Expect(const SchemaNeed& /* need */) {}
  // Grows when a schema that was waited for is kKnown or kUnknown.
  virtual int64_t answers() const { return 0; }
  virtual SchemaFigures figures() const { return {}; }
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_SCHEMA_SOURCE_H_
