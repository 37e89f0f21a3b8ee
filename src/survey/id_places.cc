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

namespace dom = simdjson::dom;

std::string Below(const std::string& pointer, std::string_view name) {
  return absl::StrCat(
      pointer, "/",
      absl::StrReplaceAll(absl::string_view(name.data(), name.size()), {{"~", "~0"}, {"/", "~1"}}));
}

// Appends the pointers of the fields of an Avro type that may be an id.
void AppendAvro(dom::element type, const std::string& pointer, int depth,
                std::vector<std::string>& pointers) {
  if (dom::array branches; !type.get(branches)) {
    for (const dom::element branch : branches) {
      if (std::string_view name; !branch.get(name) && name == "null") continue;
      return AppendAvro(branch, pointer, depth, pointers);
    }
    return;
  }
  std::string_view name;
  dom::element inner = type;
  if (dom::object object; !type.get(object) && object["type"].get(inner)) return;
  if (inner.get(name)) {
    if (type.is_object()) AppendAvro(inner, pointer, depth, pointers);  // else it is no schema: a number, say
    return;
  }
  dom::array fields;
  if (name == "record" && depth <= kMostDepth && !type["fields"].get(fields)) {
    for (const dom::element field : fields) {
      std::string_view of_field;
      dom::element of_type;
      if (field["name"].get(of_field) || field["type"].get(of_type)) continue;
      AppendAvro(of_type, Below(pointer, of_field), depth + 1, pointers);
    }
    return;
  }
  constexpr std::string_view kIds[] = {"string", "bytes", "int", "long", "enum", "fixed", "float", "double"};
  const bool is_id = std::find(std::begin(kIds), std::end(kIds), name) != std::end(kIds);
  if (is_id && !pointer.empty() && pointers.size() < kMostPlaces) pointers.push_back(pointer);
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

void IdPlaces::AddHeader(absl::string_view name) { Count(Field::Kind::kHeader, name); }

void IdPlaces::AddValue(absl::string_view value, const RecordHeaders* headers, SchemaSource* schemas) {
  const Unframed unframed = Unframe(value, headers, /*of_key=*/false);
  const bool is_framed = unframed.kind == Unframed::Kind::kFramed;
  SchemaLookup lookup;
  if (is_framed && schemas != nullptr) lookup = schemas->Find(unframed.schema);
  if (lookup.schema == nullptr || lookup.schema->type == Schema::Type::kJson) {
    if (AddJson(unframed.payload, is_framed ? Field::Kind::kFramedJson : Field::Kind::kJson)) return;
    if (lookup.schema == nullptr) AddProtobuf(unframed);
    return;
  }
  const auto kind =
      lookup.schema->type == Schema::Type::kAvro ? Field::Kind::kAvro : Field::Kind::kProtobufNames;
  for (const std::string& pointer : PointersOf(unframed, *lookup.schema)) Count(kind, pointer);
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
  dom::parser parser;
  dom::element type;
  if (!parser.parse(schema.text).get(type)) AppendAvro(type, "", 1, known->second);
  return known->second;
}

bool IdPlaces::AddJson(absl::string_view text, Field::Kind kind) {
  parser_->text = simdjson::padded_string(text.data(), text.size());
  ondemand::document document;
  ondemand::object object;
  if (parser_->parser.iterate(parser_->text).get(document) || document.get_object().get(object)) return false;
  Walk(object, "", 1, [&](const std::string& pointer) { Count(kind, pointer); });
  return true;
}

void IdPlaces::AddProtobuf(const Unframed& unframed) {
  absl::string_view message = unframed.payload;
  std::vector<int32_t> indexes;
  const bool has_indexes = unframed.kind == Unframed::Kind::kFramed && !unframed.in_header;
  if (unframed.kind == Unframed::Kind::kBroken || (has_indexes && !TakeMessageIndexes(message, &indexes))) {
    return;
  }
  std::set<std::string> pointers;
  if (!FindNumbers(message, "", 1, pointers)) return;
  for (const std::string& pointer : pointers) Count(Field::Kind::kProtobuf, pointer);
}

void IdPlaces::Count(Field::Kind kind, absl::string_view name) {
  if (name.empty() || name.find('+') != name.npos) return;
  const std::string place = Field{kind, std::string(name)}.ToString();
  const auto known = records_.find(place);
  if (known != records_.end()) {
    ++known->second;
  } else if (records_.size() < kMostPlaces) {
    records_.emplace(place, 1);
  }
}

std::vector<Field> IdPlaces::AtLeast(int64_t least, size_t most) const {
  std::vector<std::pair<int64_t, std::string>> places;
  for (const auto& [place, records] : records_) {
    if (records >= least) places.emplace_back(-records, place);
  }
  std::sort(places.begin(), places.end());
  if (places.size() > most) places.resize(most);
  std::vector<Field> fields;
  for (const auto& [records, place] : places) {
    if (absl::StatusOr<Field> field = Field::Parse(place); field.ok()) fields.push_back(*std::move(field));
  }
  return fields;
}

}  // namespace lethe
