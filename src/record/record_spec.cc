// Parses the places of id, time and counters.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "src/record/pointer.h"
#include "src/record/record_reader.h"
#include "xxhash.h"

namespace lethe {
namespace {

constexpr absl::string_view kForms =
    "a field is key, value, header:NAME or json:/POINTER; or avro:/POINTER, framed.json:/POINTER, "
    "protobuf:/NAME or protobuf:/NUMBER; with key. before them, of the key";
constexpr size_t kMaxIdFields = 32;
constexpr absl::string_view kOr = " or ";
constexpr size_t kMostPlaces = 64;  // the readers' sets of places have as many bits

// The version of the rule that makes an id's bytes.
constexpr absl::string_view kIdRule = "lethe id bytes 1: ";

absl::Status Wrong(absl::string_view text, absl::string_view what, absl::string_view right) {
  return absl::InvalidArgumentError(absl::StrCat("field '", text, "': ", what,
                                                 right.empty() ? "" : "; did you mean ", right,
                                                 right.empty() ? "" : "?", " (", kForms, ")"));
}

// The likely JSON pointer for `id`, `$.a.b`, `a.b[0]`, `/a~b`.
std::string NearestPointer(absl::string_view text) {
  std::string path(text);
  if (!absl::StartsWith(path, "/")) {
    absl::string_view rest = path;
    absl::ConsumePrefix(&rest, "$");
    absl::ConsumePrefix(&rest, ".");
    path = absl::StrCat("/", absl::StrReplaceAll(rest, {{"][", "/"}, {".", "/"}, {"[", "/"}, {"]", ""}}));
    path = absl::StrReplaceAll(path, {{"'", ""}, {"\"", ""}, {"//", "/"}});
  }
  std::string right;
  for (size_t i = 0; i < path.size(); ++i) {
    right.push_back(path[i]);
    const bool escape = path[i] == '~' && i + 1 < path.size() && (path[i + 1] == '0' || path[i + 1] == '1');
    if (path[i] == '~' && !escape) right.push_back('0');
  }
  return right;
}

// The forms with a pointer, and what is before it; `json` comes last: it is the end of another.
constexpr std::pair<absl::string_view, Field::Kind> kPointerForms[] = {
    {"avro:", Field::Kind::kAvro},
    {"framed.json:", Field::Kind::kFramedJson},
    {"protobuf:", Field::Kind::kProtobuf},  // kProtobufNames, if the pointer has names
    {"json:", Field::Kind::kJson},
};
constexpr absl::string_view kOfKey = "key.";

absl::string_view PrefixOf(Field::Kind kind) {
  if (kind == Field::Kind::kProtobufNames) kind = Field::Kind::kProtobuf;
  for (const auto& [prefix, form] : kPointerForms) {
    if (form == kind) return prefix;
  }
  return "";
}

// Protobuf's numbers of fields: https://protobuf.dev/programming-guides/proto3
constexpr int64_t kMostFieldNumber = (int64_t{1} << 29) - 1;

// Behind the first name there may be the index of an element, or a map's key.
bool BeginsWithName(const std::vector<PointerStep>& steps) {
  const std::string& name = steps[0].name;
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

absl::Status CheckPointer(absl::string_view text, absl::string_view pointer, Field& field) {
  if (pointer.empty()) return Wrong(text, "the JSON pointer is empty", field.in_key ? "key" : "value");
  const std::string nearest = NearestPointer(pointer);
  const std::string form = absl::StrCat(field.in_key ? kOfKey : "", PrefixOf(field.kind));
  if (pointer[0] != '/') {
    return Wrong(text, "a JSON pointer starts with '/'", absl::StrCat(form, nearest));
  }
  if (nearest != pointer) {
    return Wrong(text, "in a JSON pointer '~' is written ~0, and '/' in a name ~1",
                 absl::StrCat(form, nearest));
  }
  if (field.kind != Field::Kind::kProtobuf) return absl::OkStatus();
  const std::vector<PointerStep> steps = StepsOf(pointer);
  const auto is_number = [](const PointerStep& step) {
    return step.index >= 1 && step.index <= kMostFieldNumber;
  };
  if (std::all_of(steps.begin(), steps.end(), is_number)) return absl::OkStatus();
  if (!BeginsWithName(steps)) {
    return Wrong(text,
                 absl::StrCat("name Protobuf's fields by their names, or all by their numbers, 1 to ",
                              kMostFieldNumber),
                 "protobuf:/NAME");
  }
  field.kind = Field::Kind::kProtobufNames;
  return absl::OkStatus();
}

// The likely field for a text that has none of the forms.
std::string NearestField(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  if (lower == "key" || lower == "keys") return "key";
  if (lower == "value" || lower == "values" || lower == "payload" || lower == "body") return "value";
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  for (absl::string_view kind : {"headers", "header", "json", "avro", "framed.json", "protobuf"}) {
    if (!absl::StartsWithIgnoreCase(rest, kind)) continue;
    rest.remove_prefix(kind.size());
    const bool has_pointer = !absl::StartsWith(kind, "header");
    while (!rest.empty() && absl::StrContains(has_pointer ? ":= " : ":=./ ", rest[0])) rest.remove_prefix(1);
    if (has_pointer) return absl::StrCat(kind, ":", rest.empty() ? "/NAME" : NearestPointer(rest));
    return absl::StrCat("header:", rest.empty() ? "NAME" : rest);
  }
  if (rest.empty()) return "";
  return absl::StrCat("json:", NearestPointer(rest));
}

}  // namespace

absl::StatusOr<Field> Field::Parse(absl::string_view text) {
  if (text == "key") return Field{Kind::kKey, ""};
  if (text == "value") return Field{Kind::kValue, ""};
  absl::string_view name = text;
  if (absl::ConsumePrefix(&name, "header:")) {
    if (name.empty()) return Wrong(text, "the header has no name", "header:NAME");
    return Field{Kind::kHeader, std::string(name)};
  }
  const bool in_key = absl::ConsumePrefix(&name, kOfKey);
  for (const auto& [prefix, form] : kPointerForms) {
    if (!absl::ConsumePrefix(&name, prefix)) continue;
    Field field{form, std::string(name), in_key};
    if (absl::Status status = CheckPointer(text, name, field); !status.ok()) return status;
    return field;
  }
  if (text.empty()) return Wrong(text, "it is empty", "");
  return Wrong(text, "there is no such field", NearestField(text));
}

std::string Field::ToString() const {
  switch (kind) {
    case Kind::kKey:
      return "key";
    case Kind::kValue:
      return "value";
    case Kind::kHeader:
      return absl::StrCat("header:", name);
    case Kind::kJson:
    case Kind::kFramedJson:
    case Kind::kProtobuf:
    case Kind::kAvro:
    case Kind::kProtobufNames:
      return absl::StrCat(in_key ? kOfKey : "", PrefixOf(kind), name);
  }
  return "";
}

namespace {

// Whether a field begins there, so that " or " in a name stays a part of the name.
bool BeginsField(absl::string_view text) {
  const absl::string_view word = text.substr(0, text.find_first_of(" +?"));
  if (word == "key" || word == "value") return true;
  absl::ConsumePrefix(&text, kOfKey);
  if (absl::StartsWith(text, "header:")) return true;
  return std::any_of(std::begin(kPointerForms), std::end(kPointerForms),
                     [&](const auto& form) { return absl::StartsWith(text, form.first); });
}

std::vector<absl::string_view> PlacesIn(absl::string_view text) {
  std::vector<absl::string_view> places;
  size_t from = 0;
  for (size_t at = text.find(kOr); at != text.npos; at = text.find(kOr, at + 1)) {
    if (!BeginsField(text.substr(at + kOr.size()))) continue;
    places.push_back(text.substr(from, at - from));
    from = at + kOr.size();
  }
  places.push_back(text.substr(from));
  return places;
}

// Adds the fields of one place, joined with '+'.
absl::Status AddPlace(absl::string_view id, absl::string_view place, std::vector<Field>& fields) {
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("id '", id, "': ", what...));
  };
  std::vector<std::string> seen;
  const std::vector<absl::string_view> parts = absl::StrSplit(place, '+');
  size_t optional = 0;
  for (absl::string_view part : parts) {
    const bool is_optional = absl::ConsumeSuffix(&part, "?");
    absl::StatusOr<Field> field = Field::Parse(part);
    if (!field.ok()) {
      if (part == id) return field.status();
      return wrong(field.status().message(),
                   "; several fields are joined with '+', without spaces, as in json:/client+json:/seq, "
                   "so a name with '+' in it cannot be part of an id");
    }
    field->is_optional = is_optional;
    optional += is_optional;
    const std::string name(part);
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      return wrong(name, " is there twice; once is enough");
    }
    seen.push_back(name);
    fields.push_back(*std::move(field));
  }
  if (optional < parts.size()) return absl::OkStatus();
  return wrong(place, parts.size() == 1 ? " cannot be optional" : " cannot all be optional",
               ": records without it would have one id. Join it with a field that is always there, or name "
               "another place with ' or '");
}

}  // namespace

absl::StatusOr<IdSpec> IdSpec::Parse(absl::string_view text) {
  IdSpec spec;
  std::vector<absl::string_view> seen;
  for (const absl::string_view place : PlacesIn(text)) {
    if (std::find(seen.begin(), seen.end(), place) != seen.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("id '", text, "': ", place, " is there twice; once is enough"));
    }
    if (!seen.empty()) spec.later_places.push_back(spec.fields.size());
    seen.push_back(place);
    if (absl::Status status = AddPlace(text, place, spec.fields); !status.ok()) return status;
  }
  if (spec.fields.size() > kMaxIdFields) {
    return absl::InvalidArgumentError(absl::StrCat("id '", text, "': ", spec.fields.size(),
                                                   " fields; at most ", kMaxIdFields, " can be read"));
  }
  return spec;
}

std::string IdSpec::ToString() const {
  std::string text;
  for (size_t i = 0; i < places(); ++i) {
    const auto add = [](std::string* out, const Field& field) {
      absl::StrAppend(out, field.ToString(), field.is_optional ? "?" : "");
    };
    absl::StrAppend(&text, i == 0 ? "" : kOr, absl::StrJoin(place(i), "+", add));
  }
  return text;
}

absl::Span<const Field> IdSpec::place(size_t number) const {
  const size_t begin = number == 0 ? 0 : later_places[number - 1];
  const size_t end = number < later_places.size() ? later_places[number] : fields.size();
  return absl::MakeConstSpan(fields).subspan(begin, end - begin);
}

bool IdSpec::reads_json() const {
  return std::any_of(fields.begin(), fields.end(),
                     [](const Field& field) { return field.kind == Field::Kind::kJson && !field.in_key; });
}

bool IdSpec::reads_key() const {
  return std::any_of(fields.begin(), fields.end(),
                     [](const Field& field) { return field.kind == Field::Kind::kKey; });
}

bool IdSpec::reads_value() const {
  return std::any_of(fields.begin(), fields.end(),
                     [](const Field& field) { return field.kind == Field::Kind::kValue; });
}

bool IdSpec::needs_schema() const {
  return std::any_of(fields.begin(), fields.end(),
                     [](const Field& field) { return field.kind > Field::Kind::kProtobuf; });
}

absl::Status CheckPlaces(const RecordSpec& spec) {
  std::map<std::pair<Field::Kind, bool>, size_t> counts;
  const auto add = [&](const std::optional<Field>& field) {
    if (field && field->is_pointer()) ++counts[{field->kind, field->in_key}];
  };
  for (const Field& field : spec.id.fields) add(field);
  add(spec.time);
  for (const CounterSpec& counter : spec.counters) {
    add(counter.key);
    add(counter.delta);
    if (counter.when) add(counter.when->field);
  }
  for (const auto& [kind, count] : counts) {
    if (count <= kMostPlaces) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "id, time and counters name ", count, " fields (", kind.second ? kOfKey : "", PrefixOf(kind.first),
        ") of one ", kind.second ? "key" : "value", "; at most ", kMostPlaces, " can be read"));
  }
  return absl::OkStatus();
}

std::string IdSpec::Fingerprint() const {
  const std::string text = absl::StrCat(kIdRule, ToString());
  return absl::StrFormat("%016x", XXH3_64bits(text.data(), text.size()));
}

}  // namespace lethe
