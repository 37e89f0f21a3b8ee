#include "connectors/registry/schema_answer.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lethe::registry {
namespace {

using nlohmann::json;

constexpr size_t kMostSchemaBytes = size_t{1} << 20;
constexpr int kMostDepth = 8;  // of an answer; metadata and rules of a schema may stand in it

// Discarded: it is not JSON. What is deeper is left out.
json Parse(absl::string_view text) {
  const json::parser_callback_t is_shallow = [](int depth, json::parse_event_t, json&) {
    return depth <= kMostDepth;
  };
  return json::parse(text.begin(), text.end(), is_shallow, /*allow_exceptions=*/false);
}

const std::string* TextAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->get_ptr<const std::string*>();
}

std::optional<Schema::Type> TypeOf(const json& object) {
  const std::string* name = TextAt(object, "schemaType");
  if (name == nullptr || *name == "AVRO") return Schema::Type::kAvro;
  if (*name == "PROTOBUF") return Schema::Type::kProtobuf;
  if (*name == "JSON") return Schema::Type::kJson;
  return std::nullopt;
}

const char* NameOf(Schema::Type type) {
  switch (type) {
    case Schema::Type::kAvro:
      return "AVRO";
    case Schema::Type::kProtobuf:
      return "PROTOBUF";
    case Schema::Type::kJson:
      break;
  }
  return "JSON";
}

}  // namespace

absl::StatusOr<SchemaAnswer> ParseSchemaAnswer(absl::string_view text) {
  const json answer = Parse(text);
  const std::string* schema = answer.is_object() ? TextAt(answer, "schema") : nullptr;
  if (schema == nullptr) return absl::InvalidArgumentError("the answer is not a schema in JSON");
  const auto type = TypeOf(answer);
  if (!type) return absl::UnimplementedError("its schemaType is neither AVRO nor PROTOBUF nor JSON");
  if (schema->size() > kMostSchemaBytes) return absl::UnimplementedError("it is larger than 1 MiB");
  SchemaAnswer parsed = {*type, *schema, {}};
  const auto references = answer.find("references");
  if (references == answer.end() || references->is_null()) return parsed;
  if (!references->is_array()) return absl::InvalidArgumentError("its references are not a list");
  if (references->size() > kMostReferences) {
    return absl::UnimplementedError(absl::StrCat("it has more than ", kMostReferences, " references"));
  }
  for (const json& each : *references) {
    const std::string* name = each.is_object() ? TextAt(each, "name") : nullptr;
    const std::string* subject = each.is_object() ? TextAt(each, "subject") : nullptr;
    const auto version = each.find("version");
    if (name == nullptr || subject == nullptr || version == each.end() || !version->is_number_integer()) {
      return absl::InvalidArgumentError("a reference has no name, subject or version");
    }
    parsed.references.push_back({*name, *subject, version->get<int64_t>()});
  }
  return parsed;
}

absl::StatusOr<SchemaAnswer> BeginsSchemaAnswer(absl::string_view text) {
  const bool is_like_one =
      absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{") && absl::StrContains(text, "\"schema\"");
  if (is_like_one) return absl::UnimplementedError("it is larger than 4 MiB");
  return absl::InvalidArgumentError("the answer is larger than 4 MiB, and not a schema in JSON");
}

bool SaysUnknown(absl::string_view text) {
  const json answer = Parse(text);
  if (!answer.is_object()) return false;
  const auto code = answer.find("error_code");
  // Of a subject, a version, a schema.
  return code != answer.end() && code->is_number_integer() && *code >= 40401 && *code <= 40403;
}

std::string SchemaToJson(const Schema& schema) {
  json references = json::array();
  for (const Schema::Reference& each : schema.references) {
    references.push_back({{"name", each.name}, {"schema", each.text}});
  }
  const json kept = {
      {"schemaType", NameOf(schema.type)}, {"schema", schema.text}, {"references", std::move(references)}};
  return kept.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

absl::StatusOr<Schema> SchemaFromJson(absl::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError("it is not a schema as lethe keeps it");
  const json kept = Parse(text);
  const std::string* schema = kept.is_object() ? TextAt(kept, "schema") : nullptr;
  const auto references = kept.find("references");
  if (schema == nullptr || references == kept.end() || !references->is_array() || !TypeOf(kept)) return wrong;
  Schema parsed;
  parsed.type = *TypeOf(kept);
  parsed.text = *schema;
  for (const json& each : *references) {
    const std::string* name = each.is_object() ? TextAt(each, "name") : nullptr;
    const std::string* reference = each.is_object() ? TextAt(each, "schema") : nullptr;
    if (name == nullptr || reference == nullptr) return wrong;
    parsed.references.push_back({*name, *reference});
  }
  return parsed;
}

}  // namespace lethe::registry
