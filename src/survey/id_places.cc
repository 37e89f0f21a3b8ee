#include "src/survey/id_places.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "simdjson.h"

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

}  // namespace

struct IdPlaces::Parser {
  ondemand::parser parser;
  simdjson::padded_string text;
};

IdPlaces::IdPlaces() : parser_(std::make_unique<Parser>()) {}
IdPlaces::~IdPlaces() = default;

void IdPlaces::AddHeader(absl::string_view name) { Count(Field::Kind::kHeader, name); }

void IdPlaces::AddJson(absl::string_view text) {
  parser_->text = simdjson::padded_string(text.data(), text.size());
  ondemand::document document;
  ondemand::object object;
  if (parser_->parser.iterate(parser_->text).get(document) || document.get_object().get(object)) return;
  Walk(object, "", 1, [this](const std::string& pointer) { Count(Field::Kind::kJson, pointer); });
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
