#include "src/survey/id_places.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "simdjson.h"
#include "src/record/protobuf_schema.h"
#include "src/record/schema_fields.h"
#include "src/record/varint.h"

namespace lethe {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr int kMostDepth = 4;
constexpr size_t kMostPlaces = 512;

// Calls `found` with the pointer of each string and number. Broken JSON ends the walk.
template <class Found>
bool Walk(ondemand::object object, const std::string& pointer, int depth, const Found& found) {
  for (auto member : object) {
    std::string_view name;
    ondemand::value value;
    ondemand::json_type type;
    if (member.unescaped_key().get(name)) return false;
    const std::string at = absl::StrCat(
        pointer, "/",
        absl::StrReplaceAll(absl::string_view(name.data(), name.size()), {{"~", "~0"}, {"/", "~1"}}));
    if (member.value().get(value) || value.type().get(type)) return false;
    if (type == ondemand::json_type::string || type == ondemand::json_type::number) found(at);
    ondemand::object inner;
    if (type != ondemand::json_type::object || depth == kMostDepth) continue;
    if (value.get_object().get(inner) || !Walk(inner, at, depth + 1, found)) return false;
  }
  return true;
}

// Text is no message: the tags of the first fields, and lengths, are control characters.
bool MayBeMessage(absl::string_view bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
}

// Adds the numbers of the fields that a message without a schema may have for an id. False: it is none. Bytes
// that may be a message are taken for one.
bool FindNumbers(absl::string_view message, const std::string& above, int depth,
                 std::set<std::string>& pointers) {
  if (!MayBeMessage(message)) return false;
  constexpr uint64_t kMostNumber = (uint64_t{1} << 29) - 1;
  const char* at = message.data();
  const char* const end = at + message.size();
  std::set<std::string> found;
  while (at < end) {
    uint64_t tag = 0;
    uint64_t size = 0;
    if (!TakeVarint(&at, end, &tag) || tag >> 3 == 0 || tag >> 3 > kMostNumber) return false;
    const std::string pointer = absl::StrCat(above, "/", tag >> 3);
    switch (tag & 7) {
      case 0:
        if (!TakeVarint(&at, end, &size)) return false;
        size = 0;
        break;
      case 1:
        size = 8;
        break;
      case 2:
        if (!TakeVarint(&at, end, &size)) return false;
        break;
      case 5:
        size = 4;
        break;
      default:
        return false;
    }
    if (size > static_cast<uint64_t>(end - at)) return false;
    const absl::string_view bytes(at, size);
    at += size;
    const bool is_message =
        (tag & 7) == 2 && depth < kMostDepth && FindNumbers(bytes, pointer, depth + 1, found);
    if (!is_message && found.size() < kMostPlaces) found.insert(pointer);
  }
  pointers.merge(found);
  return true;
}

}  // namespace

struct IdPlaces::Parser {
  ondemand::parser parser;
  simdjson::padded_string text;
};

IdPlaces::IdPlaces() : parser_(std::make_unique<Parser>()) {}
IdPlaces::~IdPlaces() = default;

void IdPlaces::AddHeader(absl::string_view name) { Count({Field::Kind::kHeader, std::string(name)}); }

void IdPlaces::AddValue(absl::string_view value, const RecordHeaders* headers, SchemaSource* schemas) {
  Add(Unframe(value, headers, /*of_key=*/false), /*in_key=*/false, schemas);
}

void IdPlaces::AddKey(absl::string_view key, const RecordHeaders* headers, SchemaSource* schemas) {
  const Unframed unframed = Unframe(key, headers, /*of_key=*/true);
  if (unframed.in_header || SchemaIdOf(key)) Add(unframed, /*in_key=*/true, schemas);
}

void IdPlaces::Add(const Unframed& unframed, bool in_key, SchemaSource* schemas) {
  const bool is_framed = unframed.kind == Unframed::Kind::kFramed;
  SchemaLookup lookup;
  if (is_framed && schemas != nullptr) lookup = schemas->Find(unframed.schema);
  const Schema* const schema = SchemaOf(lookup);
  if (schema == nullptr || schema->type == Schema::Type::kJson) {
    if (AddJson(unframed.payload, is_framed ? Field::Kind::kFramedJson : Field::Kind::kJson, in_key)) return;
    if (schema == nullptr) AddProtobuf(unframed, in_key);
    return;
  }
  const auto kind = schema->type == Schema::Type::kAvro ? Field::Kind::kAvro : Field::Kind::kProtobufNames;
  for (const std::string& pointer : PointersOf(unframed, *schema)) {
    Count({kind, pointer, in_key});
  }
}

const std::vector<std::string>& IdPlaces::PointersOf(const Unframed& unframed, const Schema& schema) {
  std::vector<int32_t> indexes;
  absl::string_view from = unframed.in_header ? unframed.in_header_behind : unframed.payload;
  const bool is_avro = schema.type == Schema::Type::kAvro;
  const bool has_indexes = !is_avro && !(unframed.in_header && from.empty());
  static const auto* const kNone = new std::vector<std::string>();
  if (has_indexes && !TakeMessageIndexes(from, &indexes)) return *kNone;
  const auto [known, is_new] = pointers_.try_emplace({unframed.schema, indexes});
  if (!is_new) return known->second;
  if (!is_avro) {
    const auto compiled = ProtobufSchema::Compile(schema);
    if (compiled.ok()) known->second = compiled->Pointers(indexes, kMostDepth, kMostPlaces);
    return known->second;
  }
  known->second = AvroPointers(schema, kMostDepth, kMostPlaces);
  return known->second;
}

bool IdPlaces::AddJson(absl::string_view text, Field::Kind kind, bool in_key) {
  parser_->text = simdjson::padded_string(text.data(), text.size());
  ondemand::document document;
  ondemand::object object;
  if (parser_->parser.iterate(parser_->text).get(document) || document.get_object().get(object)) return false;
  Walk(object, "", 1, [&](const std::string& pointer) { Count({kind, pointer, in_key}); });
  return true;
}

void IdPlaces::AddProtobuf(const Unframed& unframed, bool in_key) {
  absl::string_view message = unframed.payload;
  std::vector<int32_t> indexes;
  const bool has_indexes = unframed.kind == Unframed::Kind::kFramed && !unframed.in_header;
  if (unframed.kind == Unframed::Kind::kBroken || (has_indexes && !TakeMessageIndexes(message, &indexes))) {
    return;
  }
  std::set<std::string> pointers;
  if (!FindNumbers(message, "", 1, pointers)) return;
  for (const std::string& pointer : pointers) Count({Field::Kind::kProtobuf, pointer, in_key});
}

void IdPlaces::Count(const Field& field) {
  if (field.name.empty() || field.name.find('+') != field.name.npos) return;
  const std::string place = field.ToString();
  const auto known = records_.find(place);
  if (known != records_.end()) {
    ++known->second;
  } else if (records_.size() < kMostPlaces) {
    records_.emplace(place, 1);
  }
}

int64_t IdPlaces::RecordsWith(const Field& field) const {
  const auto known = records_.find(field.ToString());
  return known == records_.end() ? 0 : known->second;
}

std::vector<Field> IdPlaces::AtLeast(int64_t least, int64_t least_by_schema, size_t most) const {
  std::vector<std::pair<int64_t, std::string>> places;
  for (const auto& [place, records] : records_) {
    if (records >= std::min(least, least_by_schema)) places.emplace_back(-records, place);
  }
  std::sort(places.begin(), places.end());
  std::vector<Field> fields;
  for (const auto& [records, place] : places) {
    absl::StatusOr<Field> field = Field::Parse(place);
    if (!field.ok() || fields.size() == most) continue;
    if (-records >= (field->needs_schema() ? least_by_schema : least)) fields.push_back(*std::move(field));
  }
  return fields;
}

}  // namespace lethe
