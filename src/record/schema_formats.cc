#include "src/record/schema_formats.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/record/avro_schema.h"
#include "src/record/avro_walk.h"
#include "src/record/json_scanner.h"
#include "src/record/protobuf_schema.h"
#include "src/record/protobuf_walk.h"
#include "src/record/registry_frame.h"
#include "src/record/schema_fields.h"

namespace lethe {
namespace {

// Topics have a few schemas; a forged frame finds none. Another one is compiled again when it comes again.
constexpr size_t kMostCompiled = 256;

// At most kMostCompiled: the oldest makes room. The last one that was asked for is at hand.
template <class Key, class Value>
class Compiled {
 public:
  Value* Find(const Key& key) {
    if (last_ != nullptr && last_->first == key) return &last_->second;
    const auto found = values_.find(key);
    if (found == values_.end()) return nullptr;
    last_ = &*found;
    return &last_->second;
  }
  // What Find did not find.
  Value* Add(const Key& key, Value value) {
    if (values_.size() >= kMostCompiled) {
      values_.erase(ages_.front());
      ages_.pop_front();
    }
    ages_.push_back(key);
    last_ = &*values_.emplace(key, std::move(value)).first;
    return &last_->second;
  }

 private:
  std::map<Key, Value> values_;
  std::deque<Key> ages_;  // the oldest first
  std::pair<const Key, Value>* last_ = nullptr;
};

const char* PrefixOf(Schema::Type type) {
  switch (type) {
    case Schema::Type::kAvro:
      return "avro:";
    case Schema::Type::kProtobuf:
      return "protobuf:";
    case Schema::Type::kJson:
      break;
  }
  return "framed.json:";
}

// A schema's names can be anything, of any length.
std::string Short(absl::string_view message) {
  constexpr size_t kMost = 600;
  return absl::CHexEscape(message.substr(0, kMost));
}

// What both formats have in common. `Code` is what is compiled of a schema. Where records were JSON before
// they had schemas, the topic has both for a while: an object without a frame is read by the same places,
// since ids are the same in all formats.
template <class Code>
class SchemaFormat : public RecordFormat {
 public:
  bool Read(absl::string_view bytes, const RecordHeaders* headers) final {
    why_.clear();
    waits_for_.reset();
    is_json_ = false;
    const Unframed unframed = Unframe(bytes, headers, in_key_);
    if (unframed.kind == Unframed::Kind::kBroken) return Fail(unframed.why);
    if (unframed.kind == Unframed::Kind::kPlain) {
      is_json_ = absl::StartsWith(absl::StripLeadingAsciiWhitespace(bytes), "{") && json_.Scan(bytes);
      return is_json_ || Fail("it has no schema registry's frame");
    }
    OfSchema* const of_schema = Find(unframed.schema);
    if (of_schema == nullptr) return false;
    if (!of_schema->code.ok()) return Fail(of_schema->code.status().message());
    lacks_it_ = of_schema->lacks_it;
    return ReadUnframed(*of_schema->code, unframed);
  }
  const FieldValue& value(size_t i) const final { return is_json_ ? json_.value(i) : framed_value(i); }
  absl::string_view why_absent(size_t i) const final {
    return is_json_ || has(i) ? "is not there" : lacks_it_;
  }
  std::optional<SchemaKey> waits_for() const final { return waits_for_; }
  void AppendWhy(std::string* reason) const final { absl::StrAppend(reason, "is not ", name(), ": ", why_); }

 protected:
  SchemaFormat(Schema::Type type, std::vector<std::string> places, bool in_key, SchemaSource* schemas)
      : places_(std::move(places)), type_(type), in_key_(in_key), schemas_(schemas), json_(places_) {}

  virtual absl::StatusOr<Code> Compile(const Schema& schema) = 0;
  virtual bool ReadUnframed(Code& code, const Unframed& unframed) = 0;
  virtual const FieldValue& framed_value(size_t i) const = 0;
  // Whether the present record's schema has the place.
  virtual bool has(size_t i) const = 0;

  template <class... Text>
  bool Fail(const Text&... why) {
    absl::StrAppend(&why_, why...);
    return false;
  }

  const std::vector<std::string> places_;

 private:
  struct OfSchema {
    absl::StatusOr<Code> code;
    std::string lacks_it;  // "is not in schema id 7, which has /at, /text"
  };

  OfSchema* Find(const SchemaKey& key) {
    if (OfSchema* const known = compiled_.Find(key)) return known;
    if (schemas_ == nullptr) {
      Fail(SchemaName(key), " is needed, and schema_registry.url (--schema-registry) is not set");
      return nullptr;
    }
    const SchemaLookup lookup = schemas_->Find(key);
    if (lookup.state == SchemaLookup::State::kWaiting) waits_for_ = key;
    if (lookup.state != SchemaLookup::State::kKnown) {
      Fail(lookup.why.empty() ? SchemaName(key) + " is not known" : lookup.why);
      return nullptr;
    }
    absl::StatusOr<Code> code = CompileOwn(*lookup.schema);
    if (!code.ok()) {
      const absl::Status named(code.status().code(),
                               absl::StrCat(SchemaName(key), " ", Short(code.status().message())));
      return compiled_.Add(key, {named, ""});
    }
    const std::string fields = FieldsText(*lookup.schema);
    const std::string has = fields.empty() ? "" : absl::StrCat(", which has ", fields);
    return compiled_.Add(key, {std::move(code), absl::StrCat("is not in ", SchemaName(key), has)});
  }
  absl::StatusOr<Code> CompileOwn(const Schema& schema) {
    if (schema.type == type_) return Compile(schema);
    const std::string fields = FieldsText(schema);
    return absl::InvalidArgumentError(absl::StrCat("is ", TypeName(schema.type),
                                                   fields.empty() ? "" : " with the fields ", fields,
                                                   ": use ", PrefixOf(schema.type)));
  }

  const Schema::Type type_;
  const bool in_key_;
  SchemaSource* const schemas_;
  JsonScanner json_;
  bool is_json_ = false;
  Compiled<SchemaKey, OfSchema> compiled_;
  std::string why_;
  absl::string_view lacks_it_;
  std::optional<SchemaKey> waits_for_;
};

class AvroFormat final : public SchemaFormat<AvroProgram> {
 public:
  AvroFormat(const std::vector<std::string>& places, bool in_key, SchemaSource* schemas)
      : SchemaFormat(Schema::Type::kAvro, places, in_key, schemas), walk_(places.size()) {}

  const char* name() const override { return "Avro"; }

 private:
  absl::StatusOr<AvroProgram> Compile(const Schema& schema) override {
    return AvroProgram::Compile(schema, places_);
  }
  bool ReadUnframed(AvroProgram& program, const Unframed& unframed) override {
    program_ = &program;
    if (walk_.Walk(program, unframed.payload)) return true;
    return Fail(walk_.error(), ", at byte ", walk_.error_offset(), " behind the frame, by ",
                SchemaName(unframed.schema));
  }
  const FieldValue& framed_value(size_t i) const override { return walk_.value(i); }
  bool has(size_t i) const override { return program_->has(i); }

  AvroWalk walk_;
  const AvroProgram* program_ = nullptr;
};

// The messages of a schema.
struct ProtobufCode {
  struct Message {
    ProtobufWalk walk;
    uint64_t found;  // the places that it has
  };

  ProtobufSchema schema;
  Compiled<std::vector<int32_t>, Message> messages = {};  // by their indexes
};

class ProtobufFormat final : public SchemaFormat<ProtobufCode> {
 public:
  ProtobufFormat(const std::vector<std::string>& places, bool in_key, SchemaSource* schemas)
      : SchemaFormat(Schema::Type::kProtobuf, places, in_key, schemas) {}

  const char* name() const override { return "Protobuf"; }

 private:
  absl::StatusOr<ProtobufCode> Compile(const Schema& schema) override {
    absl::StatusOr<ProtobufSchema> compiled = ProtobufSchema::Compile(schema);
    if (!compiled.ok()) return compiled.status();
    return ProtobufCode{*std::move(compiled)};
  }
  bool ReadUnframed(ProtobufCode& code, const Unframed& unframed) override {
    absl::string_view message = unframed.payload;
    absl::string_view behind = unframed.in_header_behind;
    indexes_.clear();
    const bool has_indexes = !unframed.in_header || !behind.empty();
    if (has_indexes && !TakeMessageIndexes(unframed.in_header ? behind : message, &indexes_)) {
      return Fail("the message indexes of its frame cannot be");
    }
    message_ = code.messages.Find(indexes_);
    if (message_ == nullptr && !AddMessage(code)) {
      return Fail("its frame names a message that ", SchemaName(unframed.schema), " does not have");
    }
    if (message_->walk.Walk(message)) return true;
    return Fail(message_->walk.error(), ", at byte ", message_->walk.error_offset(), " of the message");
  }
  bool AddMessage(ProtobufCode& code) {
    std::optional<std::vector<ProtobufPlace>> places = code.schema.Places(indexes_, places_);
    if (!places) return false;
    uint64_t found = 0;
    for (size_t i = 0; i < places->size(); ++i) {
      if (!(*places)[i].path.empty()) found |= uint64_t{1} << i;
    }
    message_ = code.messages.Add(indexes_, {ProtobufWalk(*std::move(places)), found});
    return true;
  }
  const FieldValue& framed_value(size_t i) const override { return message_->walk.value(i); }
  bool has(size_t i) const override { return (message_->found >> i & 1) != 0; }

  std::vector<int32_t> indexes_;
  ProtobufCode::Message* message_ = nullptr;
};

}  // namespace

std::unique_ptr<RecordFormat> MakeAvroFormat(const std::vector<std::string>& places, bool in_key,
                                             SchemaSource* schemas) {
  return std::make_unique<AvroFormat>(places, in_key, schemas);
}
std::unique_ptr<RecordFormat> MakeProtobufFormat(const std::vector<std::string>& places, bool in_key,
                                                 SchemaSource* schemas) {
  return std::make_unique<ProtobufFormat>(places, in_key, schemas);
}

}  // namespace lethe
