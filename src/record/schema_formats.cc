#include "src/record/schema_formats.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/record/avro_schema.h"
#include "src/record/avro_walk.h"
#include "src/record/json_scanner.h"
#include "src/record/parsed_schema.h"
#include "src/record/protobuf_schema.h"
#include "src/record/protobuf_walk.h"
#include "src/record/registry_frame.h"
#include "src/record/schema_fields.h"

namespace lethe {
namespace {

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

size_t BytesOf(const std::vector<ProtobufPlace>& places) {
  constexpr size_t kSymbolBytes = 96;  // about, in a map
  size_t bytes = places.capacity() * sizeof(ProtobufPlace);
  std::set<const ProtobufEnum*> enums;
  for (const ProtobufPlace& place : places) {
    bytes += place.path.capacity() * sizeof(ProtobufStep);
    for (const ProtobufStep& step : place.path) {
      bytes += step.rivals.capacity() * sizeof(uint32_t) + (step.map_key ? step.map_key->capacity() : 0);
      if (step.symbols == nullptr || !enums.insert(step.symbols.get()).second) continue;
      for (const auto& [number, symbol] : step.symbols->symbols) bytes += kSymbolBytes + symbol.capacity();
    }
  }
  return bytes;
}

// What a format needs of a schema.
class FormatPlan final : public SchemaPlan {
 public:
  struct Parts {
    absl::Status status;   // OK: one of the two is there
    std::string lacks_it;  // "is not in schema id 7, which has /at, /text"
    std::optional<AvroProgram> avro;
    std::shared_ptr<const std::vector<ProtobufPlace>> protobuf;

    size_t bytes() const {
      return sizeof(FormatPlan) + status.message().size() + lacks_it.capacity() +
             (avro ? avro->bytes() - sizeof(*avro) : 0) + (protobuf == nullptr ? 0 : BytesOf(*protobuf));
    }
  };

  explicit FormatPlan(Parts the_parts)
      : SchemaPlan(the_parts.bytes(), the_parts.status.ok()), parts(std::move(the_parts)) {}

  // Whether records of the schema can have the i-th place.
  bool has(size_t i) const { return parts.avro ? parts.avro->has(i) : !(*parts.protobuf)[i].path.empty(); }

  const Parts parts;
};

// Compiles the places in records of one format; of Protobuf in the message with these indexes.
class PlacesUse final : public SchemaUse {
 public:
  using Places = std::shared_ptr<const std::vector<std::string>>;

  PlacesUse(Schema::Type type, Places places, std::vector<int32_t> indexes)
      : SchemaUse(absl::StrCat(TypeName(type), " ", absl::StrJoin(indexes, ","), "\n",
                               absl::StrJoin(*places, "\n"))),
        type_(type),
        places_(std::move(places)),
        indexes_(std::move(indexes)) {}

  std::shared_ptr<const SchemaPlan> Compile(const SchemaKey& key, ParsedSchema& schema) const override {
    FormatPlan::Parts parts;
    const std::string fields = FieldsText(schema);
    const Schema::Type type = schema.schema().type;
    if (type == type_) {
      parts.status = CompileInto(key, schema, parts);
    } else {
      parts.status = absl::InvalidArgumentError(absl::StrCat("is ", TypeName(type),
                                                             fields.empty() ? "" : " with the fields ",
                                                             fields, ": use ", PrefixOf(type)));
    }
    if (parts.status.ok()) {
      const std::string has = fields.empty() ? "" : absl::StrCat(", which has ", fields);
      parts.lacks_it = absl::StrCat("is not in ", SchemaName(key), has);
    } else if (!absl::IsNotFound(parts.status)) {
      parts.status = absl::Status(parts.status.code(),
                                  absl::StrCat(SchemaName(key), " ", Short(parts.status.message())));
    }
    return std::make_shared<const FormatPlan>(std::move(parts));
  }

 private:
  // NotFound: a message that the schema does not have; the others fit behind "schema id 7 ".
  absl::Status CompileInto(const SchemaKey& key, ParsedSchema& schema, FormatPlan::Parts& parts) const {
    if (type_ == Schema::Type::kAvro) {
      absl::StatusOr<AvroProgram> program = AvroProgram::Compile(schema.schema(), *places_);
      if (!program.ok()) return program.status();
      parts.avro = *std::move(program);
      return absl::OkStatus();
    }
    const absl::StatusOr<ProtobufSchema>& compiled = schema.protobuf();
    if (!compiled.ok()) return compiled.status();
    std::optional<std::vector<ProtobufPlace>> places = compiled->Places(indexes_, *places_);
    if (!places) {
      return absl::NotFoundError(
          absl::StrCat("its frame names a message that ", SchemaName(key), " does not have"));
    }
    if (BytesOf(*places) > kMostPlanBytes) return absl::ResourceExhaustedError("has too many fields");
    parts.protobuf = std::make_shared<const std::vector<ProtobufPlace>>(*std::move(places));
    return absl::OkStatus();
  }

  const Schema::Type type_;
  const Places places_;
  const std::vector<int32_t> indexes_;
};

// What both formats have in common. Where records were JSON before they had schemas, the topic has both for a
// while: an object without a frame is read by the same places, since ids are the same in all formats.
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
    absl::string_view payload = unframed.payload;
    if (!TakeIndexes(unframed, payload) || !Find(unframed.schema)) return false;
    const FormatPlan& plan = *recent_.front().plan;
    return plan.parts.status.ok() ? Walk(plan, payload, unframed.schema) : Fail(plan.parts.status.message());
  }
  const FieldValue& value(size_t i) const final { return is_json_ ? json_.value(i) : framed_value(i); }
  absl::string_view why_absent(size_t i) const final {
    if (is_json_ || recent_.front().plan->has(i)) return "is not there";
    return recent_.front().plan->parts.lacks_it;
  }
  std::optional<SchemaNeed> waits_for() const final { return waits_for_; }
  void AppendWhy(std::string* reason) const final { absl::StrAppend(reason, "is not ", name(), ": ", why_); }

 protected:
  // A plan that was used of late, and what its records are read with.
  struct Recent {
    SchemaKey key;
    std::vector<int32_t> indexes;
    std::shared_ptr<const FormatPlan> plan;
    std::optional<ProtobufWalk> walk = std::nullopt;
  };

  SchemaFormat(Schema::Type type, const std::vector<std::string>& places, bool in_key, SchemaSource* schemas)
      : places_(std::make_shared<const std::vector<std::string>>(places)),
        type_(type),
        in_key_(in_key),
        schemas_(schemas),
        json_(places) {}

  // Takes what stands before the value off `payload`, into indexes_.
  virtual bool TakeIndexes(const Unframed& unframed, absl::string_view& payload) = 0;
  virtual bool Walk(const FormatPlan& plan, absl::string_view payload, const SchemaKey& key) = 0;
  virtual const FieldValue& framed_value(size_t i) const = 0;

  template <class... Text>
  bool Fail(const Text&... why) {
    absl::StrAppend(&why_, why...);
    return false;
  }

  std::vector<int32_t> indexes_;  // of the message, of Protobuf
  std::vector<Recent> recent_;    // the present record's is the first

 private:
  // Topics have a few schemas. The source knows more of them, and counts their memory: here only small ones
  // stay, and the present one.
  static constexpr size_t kMostRecent = 8;
  static constexpr size_t kMostRecentBytes = size_t{64} << 10;

  bool Find(const SchemaKey& key) {
    const auto recent = absl::c_find_if(
        recent_, [&](const Recent& each) { return each.key == key && each.indexes == indexes_; });
    if (recent != recent_.end()) {
      std::rotate(recent_.begin(), recent, recent + 1);
      recent_.front().plan->Touch();
      return true;
    }
    if (schemas_ == nullptr) {
      return Fail(SchemaName(key), " is needed, and schema_registry.url (--schema-registry) is not set");
    }
    const SchemaNeed need(key, std::make_shared<const PlacesUse>(type_, places_, indexes_));
    SchemaLookup lookup = schemas_->Find(need);
    if (lookup.state == SchemaLookup::State::kWaiting) waits_for_ = need;
    if (lookup.state != SchemaLookup::State::kKnown) {
      return Fail(lookup.why.empty() ? SchemaName(key) + " is not known" : lookup.why);
    }
    const bool is_large = !recent_.empty() && recent_.front().plan->bytes() > kMostRecentBytes;
    if (is_large) recent_.erase(recent_.begin());
    if (recent_.size() == kMostRecent) recent_.pop_back();
    recent_.insert(recent_.begin(),
                   {key, indexes_, std::static_pointer_cast<const FormatPlan>(std::move(lookup.plan))});
    return true;
  }

  const PlacesUse::Places places_;
  const Schema::Type type_;
  const bool in_key_;
  SchemaSource* const schemas_;
  JsonScanner json_;
  bool is_json_ = false;
  std::string why_;
  std::optional<SchemaNeed> waits_for_;
};

class AvroFormat final : public SchemaFormat {
 public:
  AvroFormat(const std::vector<std::string>& places, bool in_key, SchemaSource* schemas)
      : SchemaFormat(Schema::Type::kAvro, places, in_key, schemas), walk_(places.size()) {}

  const char* name() const override { return "Avro"; }

 private:
  bool TakeIndexes(const Unframed&, absl::string_view&) override { return true; }
  bool Walk(const FormatPlan& plan, absl::string_view payload, const SchemaKey& key) override {
    if (walk_.Walk(*plan.parts.avro, payload)) return true;
    return Fail(walk_.error(), ", at byte ", walk_.error_offset(), " behind the frame, by ", SchemaName(key));
  }
  const FieldValue& framed_value(size_t i) const override { return walk_.value(i); }

  AvroWalk walk_;
};

class ProtobufFormat final : public SchemaFormat {
 public:
  ProtobufFormat(const std::vector<std::string>& places, bool in_key, SchemaSource* schemas)
      : SchemaFormat(Schema::Type::kProtobuf, places, in_key, schemas) {}

  const char* name() const override { return "Protobuf"; }

 private:
  bool TakeIndexes(const Unframed& unframed, absl::string_view& payload) override {
    absl::string_view behind = unframed.in_header_behind;
    indexes_.clear();
    if (unframed.in_header && behind.empty()) return true;
    return TakeMessageIndexes(unframed.in_header ? behind : payload, &indexes_) ||
           Fail("the message indexes of its frame cannot be");
  }
  bool Walk(const FormatPlan& plan, absl::string_view payload, const SchemaKey&) override {
    std::optional<ProtobufWalk>& walk = recent_.front().walk;
    if (!walk) walk.emplace(plan.parts.protobuf);
    return walk->Walk(payload) || Fail(walk->error(), ", at byte ", walk->error_offset(), " of the message");
  }
  const FieldValue& framed_value(size_t i) const override { return recent_.front().walk->value(i); }
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
