#include "src/record/avro_schema.h"

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/record/pointer.h"

namespace lethe {
namespace {

using nlohmann::json;
using Kind = AvroKind;
using Meaning = AvroMeaning;

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr int kDeepest = 64;
// Of the values that are read; a schema of 1 MiB can name itself more often than that.
constexpr size_t kMostParts = size_t{1} << 18;
// Of a run of values whose size the schema tells; no value is as large.
constexpr uint64_t kMostSize = uint64_t{1} << 48;
constexpr uint32_t kNothing = AvroPart::kNothing;
// Of a decimal: 10^308 is about the largest number of a double.
constexpr int64_t kMostDigits = 308;

constexpr std::pair<absl::string_view, Kind> kPrimitives[] = {
    {"null", Kind::kNull},   {"boolean", Kind::kBoolean}, {"int", Kind::kInt},     {"long", Kind::kLong},
    {"float", Kind::kFloat}, {"double", Kind::kDouble},   {"bytes", Kind::kBytes}, {"string", Kind::kString},
};

bool IsPrimitive(absl::string_view name) {
  return std::any_of(std::begin(kPrimitives), std::end(kPrimitives),
                     [&](const auto& primitive) { return primitive.first == name; });
}

const json* At(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}
const std::string* TextAt(const json& object, const char* key) {
  const json* const found = At(object, key);
  return found == nullptr ? nullptr : found->get_ptr<const std::string*>();
}
std::optional<int64_t> NumberAt(const json& object, const char* key) {
  const json* const found = At(object, key);
  if (found == nullptr || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("is no Avro schema: ", what));
}

// A type as the schema has it.
struct ParsedType {
  Kind kind = Kind::kNull;
  Meaning meaning = Meaning::kPlain;
  TimeUnit unit = TimeUnit::kMilliseconds;
  uint16_t scale = 0;
  // Its values take no bytes at all: null, and what consists of it. All others take at least one.
  bool is_empty = false;
  bool has_fixed_size = false;  // all its values have `size` bytes, and may have any
  uint64_t size = 0;
  // Indexes of types. Record: those of its fields that take bytes; array, map: of the items; union: of all.
  std::vector<uint32_t> parts = {};
  std::vector<std::string> symbols = {};  // of kEnum
};

// What is read of a value, with the types as the schema has them.
struct ParsedReading {
  struct Part {
    uint32_t type = 0;
    uint32_t reading = kNothing;
  };
  uint32_t type = 0;
  uint64_t ends = 0;
  std::vector<Part> parts = {};      // of a record or a union
  std::vector<AvroItem> items = {};  // of an array or a map
};

// The logical type, unless it is invalid: the specification ignores it then.
void SetMeaning(const json& schema, ParsedType& type) {
  const std::string* const logical = TextAt(schema, "logicalType");
  if (logical == nullptr) return;
  if (*logical == "uuid") {
    if (type.kind == Kind::kFixed && type.size == 16) type.meaning = Meaning::kUuid;
  } else if (*logical == "decimal") {
    const int64_t precision = NumberAt(schema, "precision").value_or(0);
    const int64_t scale = NumberAt(schema, "scale").value_or(0);
    if (type.kind != Kind::kBytes && type.kind != Kind::kFixed) return;
    if (precision < 1 || precision > kMostDigits || scale < 0 || scale > precision) return;
    type.meaning = Meaning::kDecimal;
    type.scale = static_cast<uint16_t>(scale);
  } else if (*logical == "date") {
    if (type.kind == Kind::kInt) type.unit = TimeUnit::kDays;
  } else if (type.kind == Kind::kLong) {
    if (*logical == "timestamp-micros" || *logical == "local-timestamp-micros") {
      type.unit = TimeUnit::kMicroseconds;
    } else if (*logical == "timestamp-nanos" || *logical == "local-timestamp-nanos") {
      type.unit = TimeUnit::kNanoseconds;
    }
  }
}

// The asked-for places as a tree of steps. The first node is the root.
struct Asked {
  std::string name;
  int64_t index = -1;
  uint64_t ends = 0;   // the places that are here
  uint64_t under = 0;  // and below
  std::vector<uint32_t> next = {};
};

std::vector<Asked> TreeOf(const std::vector<std::string>& pointers) {
  std::vector<Asked> tree(1);
  for (size_t i = 0; i < pointers.size(); ++i) {
    const uint64_t place = uint64_t{1} << i;
    uint32_t at = 0;
    std::vector<PointerStep> steps = StepsOf(pointers[i]);
    if (steps.size() > AvroProgram::kDeepestValue) continue;  // it cannot be there
    for (PointerStep& step : steps) {
      tree[at].under |= place;
      const std::vector<uint32_t>& next = tree[at].next;
      const auto same =
          std::find_if(next.begin(), next.end(), [&](uint32_t n) { return tree[n].name == step.name; });
      if (same != next.end()) {
        at = *same;
        continue;
      }
      const auto added = static_cast<uint32_t>(tree.size());
      tree[at].next.push_back(added);
      tree.push_back({std::move(step.name), step.index});
      at = added;
    }
    tree[at].under |= place;
    tree[at].ends |= place;
  }
  return tree;
}

struct RecordField {
  std::string name;
  std::vector<std::string> aliases;
  uint32_t type = 0;
};

// By its name, else by an alias; null if there is none.
const RecordField* FieldOf(const std::vector<RecordField>& fields, absl::string_view name) {
  for (const RecordField& field : fields) {
    if (field.name == name) return &field;
  }
  for (const RecordField& field : fields) {
    if (std::find(field.aliases.begin(), field.aliases.end(), name) != field.aliases.end()) return &field;
  }
  return nullptr;
}

}  // namespace

class AvroCompiler {
 public:
  AvroCompiler();
  absl::StatusOr<AvroProgram> Compile(const Schema& schema, const std::vector<std::string>& pointers);

 private:
  using Index = absl::StatusOr<uint32_t>;  // of a type

  Index Parse(const std::string& text);
  // `space`: the namespace around it.
  Index Add(const json& schema, const std::string& space, int depth);
  Index AddObject(const json& schema, const std::string& space, int depth);
  Index AddUnion(const json& branches, const std::string& space, int depth);
  Index AddNamed(const json& schema, Kind kind, const std::string& space, int depth);
  absl::Status AddFields(const json& schema, uint32_t record, const std::string& space, int depth);
  absl::Status AddSymbols(const json& schema, ParsedType& type);
  Index Named(const std::string& name, const std::string& space) const;
  uint32_t Push(ParsedType type);

  // What is read of a value of the type for a node of the tree: kNothing if none of its places can be there.
  // Calls itself for each step of a place, of which there may be kDeepestValue, and for unions in between:
  // what needs room on the stack is in functions of its own, which are not inlined into it.
  uint32_t Read(uint32_t type, uint32_t node);
  [[gnu::noinline]] void ReadRecord(uint32_t type, uint32_t node, ParsedReading& reading);
  [[gnu::noinline]] void ReadItems(uint32_t type, uint32_t node, ParsedReading& reading);
  uint32_t Both(uint32_t one, uint32_t other);

  // These write the program.
  void Lower(uint32_t root_type, uint32_t root_reading);
  void LowerReading(const ParsedReading& from, AvroReading& to);
  void LowerType(uint32_t from, uint32_t to);
  // Appends the parts. If they are adjacent, those of fixed size become one.
  void LowerParts(const std::vector<ParsedReading::Part>& from, bool are_adjacent, uint32_t* first,
                  uint32_t* count);
  AvroPart PartOf(uint32_t type, uint32_t reading);
  uint32_t Skipped(AvroType type);
  void AddSymbols(const ParsedType& from, AvroType& to);

  AvroProgram program_;
  std::vector<ParsedType> types_;
  std::vector<ParsedReading> readings_;
  std::map<std::string, uint32_t> names_;                // of types
  std::map<uint32_t, std::vector<RecordField>> fields_;  // by the record
  std::vector<Asked> tree_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> known_;  // readings, by type and node
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> both_;   // nodes
  size_t parts_ = 0;
  std::map<std::tuple<Kind, uint32_t, uint64_t>, uint32_t> simple_;  // types of the program without parts
  std::map<uint32_t, uint32_t> lowered_;                // types of the program, by those of the schema
  std::vector<std::pair<uint32_t, uint32_t>> pending_;  // of these, those without their parts
};

absl::StatusOr<AvroProgram> AvroProgram::Compile(const Schema& schema,
                                                 const std::vector<std::string>& pointers) {
  return AvroCompiler().Compile(schema, pointers);
}

AvroCompiler::AvroCompiler() {
  for (const auto& [name, kind] : kPrimitives) {
    ParsedType type{.kind = kind, .is_empty = kind == Kind::kNull};
    if (kind == Kind::kFloat) type.size = sizeof(float);
    if (kind == Kind::kDouble) type.size = sizeof(double);
    type.has_fixed_size = type.size > 0;
    names_[std::string(name)] = Push(std::move(type));
  }
}

absl::StatusOr<AvroProgram> AvroCompiler::Compile(const Schema& schema,
                                                  const std::vector<std::string>& pointers) {
  size_t bytes = schema.text.size();
  for (const Schema::Reference& reference : schema.references) bytes += reference.text.size();
  if (bytes > kMostBytes) return absl::ResourceExhaustedError("is larger than 1 MiB");
  for (const Schema::Reference& reference : schema.references) {
    if (const Index type = Parse(reference.text); !type.ok()) {
      return absl::Status(type.status().code(), absl::StrCat("names the schema ", reference.name, ", which ",
                                                             type.status().message()));
    }
  }
  const Index root = Parse(schema.text);
  if (!root.ok()) return root.status();
  tree_ = TreeOf(pointers);
  for (const Asked& node : tree_) {
    program_.place_steps_ += 1 + static_cast<uint64_t>(std::popcount(node.under));
  }
  const uint32_t root_reading = Read(*root, 0);
  if (parts_ > kMostParts) return absl::ResourceExhaustedError("has the asked-for fields in too many places");
  Lower(*root, root_reading);
  if (program_.bytes() > kMostPlanBytes) return absl::ResourceExhaustedError("has too many fields");
  return std::move(program_);
}

AvroCompiler::Index AvroCompiler::Parse(const std::string& text) {
  const json schema = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (schema.is_discarded()) return Wrong("it is not JSON");
  return Add(schema, "", 0);
}

uint32_t AvroCompiler::Push(ParsedType type) {
  types_.push_back(std::move(type));
  return static_cast<uint32_t>(types_.size() - 1);
}

AvroCompiler::Index AvroCompiler::Add(const json& schema, const std::string& space, int depth) {
  if (depth > kDeepest) {
    return absl::ResourceExhaustedError(absl::StrCat("is nested deeper than ", kDeepest));
  }
  if (schema.is_array()) return AddUnion(schema, space, depth);
  if (schema.is_object()) return AddObject(schema, space, depth);
  const auto* const name = schema.get_ptr<const std::string*>();
  if (name == nullptr) return Wrong("a type is neither a name nor an object nor a union");
  return Named(*name, space);
}

// Like Java's reader: a name that is not in the namespace around it may be one without a namespace.
AvroCompiler::Index AvroCompiler::Named(const std::string& name, const std::string& space) const {
  auto found = names_.end();
  if (!space.empty() && name.find('.') == std::string::npos && !IsPrimitive(name)) {
    found = names_.find(absl::StrCat(space, ".", name));
  }
  if (found == names_.end()) found = names_.find(name);
  if (found == names_.end()) return Wrong(absl::StrCat("it does not say what the type '", name, "' is"));
  return found->second;
}

AvroCompiler::Index AvroCompiler::AddUnion(const json& branches, const std::string& space, int depth) {
  ParsedType type{.kind = Kind::kUnion};
  for (const json& branch : branches) {
    const Index part = Add(branch, space, depth + 1);
    if (!part.ok()) return part;
    if (types_[*part].kind == Kind::kUnion) return Wrong("a union is directly in a union");
    type.parts.push_back(*part);
  }
  return Push(std::move(type));
}

AvroCompiler::Index AvroCompiler::AddObject(const json& schema, const std::string& space, int depth) {
  const json* const type = At(schema, "type");
  if (type == nullptr) return Wrong("an object has no type");
  const auto* const name = type->get_ptr<const std::string*>();
  if (name == nullptr) return Add(*type, space, depth + 1);
  if (*name == "record" || *name == "error") return AddNamed(schema, Kind::kRecord, space, depth);
  if (*name == "enum") return AddNamed(schema, Kind::kEnum, space, depth);
  if (*name == "fixed") return AddNamed(schema, Kind::kFixed, space, depth);
  if (*name == "array" || *name == "map") {
    const bool is_map = *name == "map";
    const json* const items = At(schema, is_map ? "values" : "items");
    if (items == nullptr) return Wrong(is_map ? "a map has no values" : "an array has no items");
    const Index part = Add(*items, space, depth + 1);
    if (!part.ok()) return part;
    return Push({.kind = is_map ? Kind::kMap : Kind::kArray, .parts = {*part}});
  }
  const Index named = Named(*name, space);
  if (!named.ok() || !IsPrimitive(*name)) return named;
  ParsedType meant = types_[*named];
  SetMeaning(schema, meant);
  return Push(std::move(meant));
}

AvroCompiler::Index AvroCompiler::AddNamed(const json& schema, Kind kind, const std::string& space,
                                           int depth) {
  const std::string* const name = TextAt(schema, "name");
  if (name == nullptr || name->empty()) return Wrong("a record, an enum or a fixed has no name");
  const std::string* const own = TextAt(schema, "namespace");
  const size_t dot = name->rfind('.');
  const std::string inside = dot != std::string::npos ? name->substr(0, dot) : own != nullptr ? *own : space;
  const std::string full =
      dot != std::string::npos || inside.empty() ? *name : absl::StrCat(inside, ".", *name);
  if (IsPrimitive(full)) return Wrong(absl::StrCat("a type is named '", full, "'"));

  ParsedType type{.kind = kind};
  if (kind == Kind::kFixed) {
    const int64_t size = NumberAt(schema, "size").value_or(-1);
    if (size < 0 || size > INT32_MAX) return Wrong(absl::StrCat("the fixed '", full, "' has no size"));
    type.size = static_cast<uint64_t>(size);
    type.is_empty = size == 0;
    type.has_fixed_size = size > 0;
    SetMeaning(schema, type);
  } else if (kind == Kind::kEnum) {
    if (absl::Status status = AddSymbols(schema, type); !status.ok()) return status;
  }
  const uint32_t added = Push(std::move(type));
  names_[full] = added;  // before its fields, which may name it
  if (kind == Kind::kRecord) {
    if (absl::Status status = AddFields(schema, added, inside, depth); !status.ok()) return status;
  }
  return added;
}

absl::Status AvroCompiler::AddSymbols(const json& schema, ParsedType& type) {
  const json* const symbols = At(schema, "symbols");
  if (symbols == nullptr || !symbols->is_array()) return Wrong("an enum has no symbols");
  for (const json& each : *symbols) {
    const auto* const symbol = each.get_ptr<const std::string*>();
    if (symbol == nullptr) return Wrong("an enum's symbol is no string");
    type.symbols.push_back(*symbol);
  }
  return absl::OkStatus();
}

absl::Status AvroCompiler::AddFields(const json& schema, uint32_t record, const std::string& space,
                                     int depth) {
  const json* const fields = At(schema, "fields");
  if (fields == nullptr || !fields->is_array()) return Wrong("a record has no fields");
  std::vector<RecordField> added;
  std::vector<uint32_t> parts;
  for (const json& each : *fields) {
    const std::string* const name = each.is_object() ? TextAt(each, "name") : nullptr;
    const json* const type = name == nullptr ? nullptr : At(each, "type");
    if (type == nullptr) return Wrong("a record's field has no name or no type");
    const Index part = Add(*type, space, depth + 1);
    if (!part.ok()) return part.status();
    RecordField& field = added.emplace_back(RecordField{*name, {}, *part});
    const json* const aliases = At(each, "aliases");
    if (aliases != nullptr && aliases->is_array()) {
      for (const json& alias : *aliases) {
        if (alias.is_string()) field.aliases.push_back(alias.get<std::string>());
      }
    }
    if (!types_[*part].is_empty) parts.push_back(*part);
  }
  // A record inside itself without a union has no values at all: it is not empty while its fields are read.
  types_[record].is_empty = parts.empty();
  types_[record].has_fixed_size =
      !parts.empty() && absl::c_all_of(parts, [&](uint32_t part) { return types_[part].has_fixed_size; });
  for (const uint32_t part : parts) {
    types_[record].size = std::min(kMostSize, types_[record].size + types_[part].size);
  }
  types_[record].parts = std::move(parts);
  fields_[record] = std::move(added);
  return absl::OkStatus();
}

uint32_t AvroCompiler::Read(uint32_t type, uint32_t node) {
  const auto [known, is_new] = known_.try_emplace({type, node}, kNothing);
  if (!is_new || parts_ > kMostParts) return known->second;
  ParsedReading reading{.type = type, .ends = tree_[node].ends};
  switch (types_[type].kind) {
    case Kind::kRecord:
      ReadRecord(type, node, reading);
      break;
    case Kind::kArray:
    case Kind::kMap:
      ReadItems(type, node, reading);
      break;
    case Kind::kUnion:
      reading.ends = 0;  // its branches have them
      for (const uint32_t branch : types_[type].parts) {
        reading.parts.push_back({branch, Read(branch, node)});
      }
      break;
    default:
      break;
  }
  const auto is_read = [](const auto& part) { return part.reading != kNothing; };
  if (reading.ends == 0 && reading.items.empty() &&
      std::none_of(reading.parts.begin(), reading.parts.end(), is_read)) {
    return kNothing;
  }
  program_.found_ |= reading.ends;
  parts_ += 1 + reading.parts.size() + reading.items.size();
  const auto added = static_cast<uint32_t>(readings_.size());
  readings_.push_back(std::move(reading));
  return known->second = added;
}

// A node with all of both: places that are asked for by a field's name and by its alias meet there.
uint32_t AvroCompiler::Both(uint32_t one, uint32_t other) {
  const auto [known, is_new] = both_.try_emplace({one, other}, 0);
  if (!is_new) return known->second;
  Asked both = tree_[one];
  both.ends |= tree_[other].ends;
  both.under |= tree_[other].under;
  both.next.insert(both.next.end(), tree_[other].next.begin(), tree_[other].next.end());
  tree_.push_back(std::move(both));
  return known->second = static_cast<uint32_t>(tree_.size() - 1);
}

void AvroCompiler::ReadRecord(uint32_t type, uint32_t node, ParsedReading& reading) {
  const std::vector<RecordField>& fields = fields_[type];
  std::map<const RecordField*, uint32_t> nodes;
  for (const uint32_t next : std::vector<uint32_t>(tree_[node].next)) {
    const RecordField* const field = FieldOf(fields, tree_[next].name);
    if (field == nullptr) continue;
    const auto [at, is_new] = nodes.try_emplace(field, next);
    if (!is_new) at->second = Both(at->second, next);
  }
  for (const RecordField& field : fields) {
    const auto found = nodes.find(&field);
    const uint32_t part = found == nodes.end() ? kNothing : Read(field.type, found->second);
    if (part != kNothing || !types_[field.type].is_empty) {
      reading.parts.push_back({field.type, part});
    }
  }
}

void AvroCompiler::ReadItems(uint32_t type, uint32_t node, ParsedReading& reading) {
  const uint32_t part = types_[type].parts[0];
  const bool is_array = types_[type].kind == Kind::kArray;
  std::map<std::pair<int64_t, std::string>, uint32_t> nodes;
  for (const uint32_t next : std::vector<uint32_t>(tree_[node].next)) {
    if (is_array && tree_[next].index < 0) continue;
    // A key of a map may look like an index.
    const int64_t index = is_array ? tree_[next].index : -1;
    const auto [at, is_new] = nodes.try_emplace({index, tree_[next].name}, next);
    if (!is_new) at->second = Both(at->second, next);
  }
  for (const auto& [step, next] : nodes) {
    const uint32_t item = Read(part, next);
    if (item == kNothing) continue;
    reading.items.push_back({step.second, step.first, tree_[next].under, item});
  }
}

// The readings first: their indexes stay.
void AvroCompiler::Lower(uint32_t root_type, uint32_t root_reading) {
  for (const ParsedReading& reading : readings_) LowerReading(reading, program_.readings_.emplace_back());
  program_.root_ = PartOf(root_type, root_reading);
  while (!pending_.empty()) {
    const auto [from, to] = pending_.back();
    pending_.pop_back();
    LowerType(from, to);
  }
  program_.types_.shrink_to_fit();
  program_.readings_.shrink_to_fit();
  program_.parts_.shrink_to_fit();
  program_.items_.shrink_to_fit();
  program_.symbols_.shrink_to_fit();
  program_.symbol_ends_.shrink_to_fit();
}

void AvroCompiler::LowerReading(const ParsedReading& from, AvroReading& to) {
  const ParsedType& type = types_[from.type];
  AvroType own = {type.kind, type.meaning, type.unit, type.scale, 0, 0, type.size};
  to.ends = from.ends;
  switch (type.kind) {
    case Kind::kRecord:
    case Kind::kUnion:
      LowerParts(from.parts, type.kind == Kind::kRecord, &to.first, &to.count);
      break;
    case Kind::kArray:
    case Kind::kMap: {
      const std::vector<ParsedReading::Part> item = {{type.parts[0], kNothing}};
      LowerParts(item, /*are_adjacent=*/false, &own.first, &own.count);
      to.first = static_cast<uint32_t>(program_.items_.size());
      to.count = static_cast<uint32_t>(from.items.size());
      program_.items_.insert(program_.items_.end(), from.items.begin(), from.items.end());
      break;
    }
    case Kind::kEnum:
      AddSymbols(type, own);
      break;
    default:
      break;
  }
  to.type = static_cast<uint32_t>(program_.types_.size());
  program_.types_.push_back(own);
}

void AvroCompiler::AddSymbols(const ParsedType& from, AvroType& to) {
  to.first = static_cast<uint32_t>(program_.symbol_ends_.size());
  to.count = static_cast<uint32_t>(from.symbols.size());
  for (const std::string& symbol : from.symbols) {
    program_.symbols_ += symbol;
    program_.symbol_ends_.push_back(static_cast<uint32_t>(program_.symbols_.size()));
  }
}

void AvroCompiler::LowerParts(const std::vector<ParsedReading::Part>& from, bool are_adjacent,
                              uint32_t* first, uint32_t* count) {
  std::vector<AvroPart>& parts = program_.parts_;
  *first = static_cast<uint32_t>(parts.size());
  uint64_t run = 0;  // bytes of those of fixed size before this one
  const auto end_run = [&] {
    if (run > 0) parts.push_back({.type = Skipped({.kind = Kind::kFixed, .size = std::exchange(run, 0)})});
  };
  for (const ParsedReading::Part& each : from) {
    if (are_adjacent && each.reading == kNothing && types_[each.type].has_fixed_size) {
      run = std::min(kMostSize, run + types_[each.type].size);
      continue;
    }
    end_run();
    parts.push_back(PartOf(each.type, each.reading));
  }
  end_run();
  *count = static_cast<uint32_t>(parts.size()) - *first;
}

AvroPart AvroCompiler::PartOf(uint32_t type, uint32_t reading) {
  if (reading != kNothing) return {.reading = reading};
  uint32_t levels = 0;
  while (types_[type].kind == Kind::kRecord && types_[type].parts.size() == 1 &&
         !types_[type].has_fixed_size && levels <= AvroProgram::kDeepestValue) {
    type = types_[type].parts[0];
    ++levels;
  }
  // A record that is in itself is too deep, and so has no value.
  if (levels > AvroProgram::kDeepestValue) return {Skipped({.kind = Kind::kRecord}), kNothing, levels};
  const ParsedType& from = types_[type];
  if (from.is_empty) return {Skipped({.kind = Kind::kNull}), kNothing, levels};
  if (from.has_fixed_size) return {Skipped({.kind = Kind::kFixed, .size = from.size}), kNothing, levels};
  if (from.parts.empty()) {
    const auto count = static_cast<uint32_t>(from.symbols.size());
    return {Skipped({.kind = from.kind, .count = count}), kNothing, levels};
  }
  const auto [known, is_new] = lowered_.try_emplace(type, static_cast<uint32_t>(program_.types_.size()));
  if (is_new) {
    program_.types_.push_back({.kind = from.kind});
    pending_.emplace_back(type, known->second);
  }
  return {known->second, kNothing, levels};
}

// One type for all that are skipped alike.
uint32_t AvroCompiler::Skipped(AvroType type) {
  const auto [known, is_new] =
      simple_.try_emplace({type.kind, type.count, type.size}, static_cast<uint32_t>(program_.types_.size()));
  if (is_new) program_.types_.push_back(type);
  return known->second;
}

void AvroCompiler::LowerType(uint32_t from, uint32_t to) {
  std::vector<ParsedReading::Part> parts;
  for (const uint32_t part : types_[from].parts) parts.push_back({part, kNothing});
  uint32_t first = 0;
  uint32_t count = 0;
  LowerParts(parts, types_[from].kind == Kind::kRecord, &first, &count);
  program_.types_[to].first = first;
  program_.types_[to].count = count;
}

size_t AvroProgram::bytes() const {
  size_t bytes = sizeof(*this) + types_.capacity() * sizeof(AvroType) +
                 readings_.capacity() * sizeof(AvroReading) + parts_.capacity() * sizeof(AvroPart) +
                 items_.capacity() * sizeof(AvroItem) + symbols_.capacity() +
                 symbol_ends_.capacity() * sizeof(uint32_t);
  for (const AvroItem& item : items_) bytes += item.key.capacity();
  return bytes;
}

absl::string_view AvroProgram::Symbol(const AvroType& type, size_t index) const {
  const size_t at = type.first + index;
  const uint32_t begin = at == 0 ? 0 : symbol_ends_[at - 1];
  return absl::string_view(symbols_).substr(begin, symbol_ends_[at] - begin);
}

}  // namespace lethe
