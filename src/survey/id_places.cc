#include "src/survey/id_places.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "simdjson.h"
#include "src/record/registry_frame.h"

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
  if (inner.get(name)) return AppendAvro(inner, pointer, depth, pointers);
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
  if (unframed.kind != Unframed::Kind::kFramed) return AddJson(value, Field::Kind::kJson);
  SchemaLookup lookup;
  if (schemas != nullptr) lookup = schemas->Find(unframed.schema);
  if (lookup.schema == nullptr || lookup.schema->type == Schema::Type::kJson) {
    return AddJson(unframed.payload, Field::Kind::kFramedJson);
  }
  if (lookup.schema->type != Schema::Type::kAvro) return;
  const auto [known, is_new] = avro_.try_emplace(unframed.schema);
  dom::parser parser;
  dom::element type;
  if (is_new && !parser.parse(lookup.schema->text).get(type)) AppendAvro(type, "", 1, known->second);
  for (const std::string& pointer : known->second) Count(Field::Kind::kAvro, pointer);
}

void IdPlaces::AddJson(absl::string_view text, Field::Kind kind) {
  parser_->text = simdjson::padded_string(text.data(), text.size());
  ondemand::document document;
  ondemand::object object;
  if (parser_->parser.iterate(parser_->text).get(document) || document.get_object().get(object)) return;
  Walk(object, "", 1, [&](const std::string& pointer) { Count(kind, pointer); });
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
