#include "src/record/schema_fields.h"

#include <simdjson.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace lethe {
namespace {

namespace dom = simdjson::dom;

constexpr int kShownDepth = 2;
constexpr size_t kMostShown = 5;
constexpr size_t kMostNameBytes = 60;

std::string Below(const std::string& pointer, std::string_view name) {
  return absl::StrCat(
      pointer, "/",
      absl::StrReplaceAll(absl::string_view(name.data(), name.size()), {{"~", "~0"}, {"/", "~1"}}));
}

struct Wanted {
  int depth;
  size_t most;
};

void AppendAvro(dom::element type, const std::string& pointer, int depth, const Wanted& wanted,
                std::vector<std::string>& pointers) {
  if (dom::array branches; !type.get(branches)) {
    for (const dom::element branch : branches) {
      if (std::string_view name; !branch.get(name) && name == "null") continue;
      return AppendAvro(branch, pointer, depth, wanted, pointers);
    }
    return;
  }
  std::string_view name;
  dom::element inner = type;
  if (dom::object object; !type.get(object) && object["type"].get(inner)) return;
  if (inner.get(name)) {
    // Else it is no schema: a number, say.
    if (type.is_object()) AppendAvro(inner, pointer, depth, wanted, pointers);
    return;
  }
  dom::array fields;
  if (name == "record" && depth <= wanted.depth && !type["fields"].get(fields)) {
    for (const dom::element field : fields) {
      std::string_view of_field;
      dom::element of_type;
      if (field["name"].get(of_field) || field["type"].get(of_type)) continue;
      AppendAvro(of_type, Below(pointer, of_field), depth + 1, wanted, pointers);
    }
    return;
  }
  constexpr std::string_view kIds[] = {"string", "bytes", "int", "long", "enum", "fixed", "float", "double"};
  const bool is_id = std::find(std::begin(kIds), std::end(kIds), name) != std::end(kIds);
  if (is_id && !pointer.empty() && pointers.size() < wanted.most) pointers.push_back(pointer);
}

std::vector<std::string> JsonProperties(const Schema& schema, size_t most) {
  std::vector<std::string> pointers;
  dom::parser parser;
  dom::element type;
  dom::object properties;
  if (parser.parse(schema.text).get(type) || type["properties"].get(properties)) return pointers;
  for (const auto& [name, property] : properties) {
    if (pointers.size() < most) pointers.push_back(Below("", name));
  }
  return pointers;
}

}  // namespace

std::vector<std::string> AvroPointers(const Schema& schema, int depth, size_t most) {
  std::vector<std::string> pointers;
  dom::parser parser;
  dom::element type;
  if (!parser.parse(schema.text).get(type)) AppendAvro(type, "", 1, {depth, most}, pointers);
  return pointers;
}

const char* TypeName(Schema::Type type) {
  switch (type) {
    case Schema::Type::kAvro:
      return "an Avro schema";
    case Schema::Type::kProtobuf:
      return "a Protobuf schema";
    case Schema::Type::kJson:
      break;
  }
  return "a JSON Schema";
}

std::string FieldsText(ParsedSchema& parsed) {
  const Schema& schema = parsed.schema();
  std::vector<std::string> pointers;
  switch (schema.type) {
    case Schema::Type::kAvro:
      pointers = AvroPointers(schema, kShownDepth, kMostShown + 1);
      break;
    case Schema::Type::kProtobuf:
      if (const auto& compiled = parsed.protobuf(); compiled.ok()) {
        pointers = compiled->Pointers({}, kShownDepth, kMostShown + 1);
      }
      break;
    case Schema::Type::kJson:
      pointers = JsonProperties(schema, kMostShown + 1);
  }
  const bool has_more = pointers.size() > kMostShown;
  if (has_more) pointers.pop_back();
  // A schema's names can be anything, of any length.
  for (std::string& pointer : pointers) {
    pointer = absl::CHexEscape(absl::string_view(pointer).substr(0, kMostNameBytes));
  }
  return absl::StrCat(absl::StrJoin(pointers, ", "), has_more ? " and others" : "");
}

}  // namespace lethe
