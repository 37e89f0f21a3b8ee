#include "src/record/protobuf_schema.h"

#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/record/pointer.h"

namespace lethe {
namespace {

namespace pb = google::protobuf;

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr int kDeepest = 64;
constexpr size_t kMostSteps = 100;  // messages may be no deeper, by libprotobuf's default
constexpr char kFile[] = "the schema";

// Keeps the first error of parsing and of linking: without it they would go to stderr.
class FirstError final : public pb::io::ErrorCollector, public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  void AddWarning(int, pb::io::ColumnNumber, const std::string&) override {}
  void AddError(const std::string&, const std::string& element, const pb::Message*, ErrorLocation,
                const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(element, ": ", message);
  }
  void AddWarning(const std::string&, const std::string&, const pb::Message*, ErrorLocation,
                  const std::string&) override {}

  absl::Status status() const {
    return absl::InvalidArgumentError(
        absl::StrCat("is no Protobuf schema: ", text_.empty() ? "it cannot be read" : text_));
  }

 private:
  std::string text_;
};

bool IsDescriptor(const std::string& text, pb::FileDescriptorProto* file) {
  std::string bytes;
  return absl::Base64Unescape(text, &bytes) && !bytes.empty() && file->ParseFromString(bytes);
}

// The parser is recursive, and writes to stderr if there is no syntax statement.
absl::Status Look(const std::string& text, bool* has_syntax) {
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  FirstError error;
  pb::io::Tokenizer tokens(&stream, &error);
  int depth = 0;
  for (bool is_first = true; tokens.Next(); is_first = false) {
    const std::string& token = tokens.current().text;
    if (is_first) *has_syntax = token == "syntax";
    if (token == "{" || token == "[" || token == "(" || token == "<") ++depth;
    if (token == "}" || token == "]" || token == ")" || token == ">") --depth;
    if (depth > kDeepest) {
      return absl::ResourceExhaustedError(absl::StrCat("is nested deeper than ", kDeepest));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const pb::FileDescriptor*> Build(const std::string& name, const std::string& text,
                                                pb::DescriptorPool* pool) {
  FirstError error;
  pb::FileDescriptorProto file;
  if (!IsDescriptor(text, &file)) {
    file.Clear();
    bool has_syntax = false;
    if (absl::Status status = Look(text, &has_syntax); !status.ok()) return status;
    const std::string whole = has_syntax ? text : absl::StrCat("syntax = \"proto2\";", text);
    pb::io::ArrayInputStream stream(whole.data(), static_cast<int>(whole.size()));
    pb::io::Tokenizer tokens(&stream, &error);
    pb::compiler::Parser parser;
    parser.RecordErrorsTo(&error);
    if (!parser.Parse(&tokens, &file)) return error.status();
  }
  file.set_name(name);
  const pb::FileDescriptor* const built = pool->BuildFileCollectingErrors(file, &error);
  if (built == nullptr) return error.status();
  return built;
}

ProtobufType TypeOf(const pb::FieldDescriptor& field) {
  switch (field.type()) {
    case pb::FieldDescriptor::TYPE_INT32:
      return ProtobufType::kInt32;
    case pb::FieldDescriptor::TYPE_INT64:
      return ProtobufType::kInt64;
    case pb::FieldDescriptor::TYPE_UINT32:
      return ProtobufType::kUint32;
    case pb::FieldDescriptor::TYPE_UINT64:
      return ProtobufType::kUint64;
    case pb::FieldDescriptor::TYPE_SINT32:
      return ProtobufType::kSint32;
    case pb::FieldDescriptor::TYPE_SINT64:
      return ProtobufType::kSint64;
    case pb::FieldDescriptor::TYPE_FIXED32:
      return ProtobufType::kFixed32;
    case pb::FieldDescriptor::TYPE_FIXED64:
      return ProtobufType::kFixed64;
    case pb::FieldDescriptor::TYPE_SFIXED32:
      return ProtobufType::kSfixed32;
    case pb::FieldDescriptor::TYPE_SFIXED64:
      return ProtobufType::kSfixed64;
    case pb::FieldDescriptor::TYPE_FLOAT:
      return ProtobufType::kFloat;
    case pb::FieldDescriptor::TYPE_DOUBLE:
      return ProtobufType::kDouble;
    case pb::FieldDescriptor::TYPE_BOOL:
      return ProtobufType::kBool;
    case pb::FieldDescriptor::TYPE_ENUM:
      return ProtobufType::kEnum;
    case pb::FieldDescriptor::TYPE_STRING:
    case pb::FieldDescriptor::TYPE_BYTES:
      return ProtobufType::kBytes;
    case pb::FieldDescriptor::TYPE_GROUP:
    case pb::FieldDescriptor::TYPE_MESSAGE:
      break;
  }
  return ProtobufType::kMessage;
}

// By its name, else by its name in JSON; null if there is none.
const pb::FieldDescriptor* FieldOf(const pb::Descriptor& message, const std::string& name) {
  if (const auto* const field = message.FindFieldByName(name)) return field;
  for (int i = 0; i < message.field_count(); ++i) {
    if (message.field(i)->json_name() == name) return message.field(i);
  }
  return nullptr;
}

void AddStep(const pb::FieldDescriptor& field, ProtobufPlace& place) {
  place.path.push_back(static_cast<uint32_t>(field.number()));
  const pb::OneofDescriptor* const oneof = field.real_containing_oneof();
  if (oneof == nullptr) return;
  place.rivals.resize(place.path.size());
  for (int i = 0; i < oneof->field_count(); ++i) {
    if (oneof->field(i) != &field) {
      place.rivals.back().push_back(static_cast<uint32_t>(oneof->field(i)->number()));
    }
  }
}

void SetType(const pb::FieldDescriptor& field, ProtobufPlace& place) {
  place.type = TypeOf(field);
  place.has_default = !field.has_presence() && !field.is_repeated();
  if (field.full_name() == "google.protobuf.Timestamp.seconds") place.unit = TimeUnit::kSeconds;
  if (place.type != ProtobufType::kEnum) return;
  const pb::EnumDescriptor& symbols = *field.enum_type();
  place.has_other_numbers = symbols.file()->syntax() == pb::FileDescriptor::SYNTAX_PROTO3;
  for (int i = 0; i < symbols.value_count(); ++i) {
    place.symbols.try_emplace(symbols.value(i)->number(), symbols.value(i)->name());
  }
}

// The element that a step after a repeated field's name means. False: there can be none.
bool AddElement(const pb::FieldDescriptor& field, const PointerStep& step, ProtobufPlace& place) {
  place.elements.resize(place.path.size());
  ProtobufElement& element = place.elements.back();
  if (!field.is_map()) {
    element.kind = ProtobufElement::Kind::kIndex;
    element.index = static_cast<uint64_t>(step.index);
    return step.index >= 0;
  }
  const pb::FieldDescriptor& value = *field.message_type()->map_value();
  element.kind = ProtobufElement::Kind::kKey;
  element.key = step.name;
  element.key_type = TypeOf(*field.message_type()->map_key());
  AddStep(value, place);
  SetType(value, place);
  place.has_default = place.type != ProtobufType::kMessage;
  return true;
}

ProtobufPlace PlaceOf(const pb::Descriptor& root, const std::string& pointer) {
  const std::vector<PointerStep> steps = StepsOf(pointer);
  if (steps.size() > kMostSteps) return {};
  const pb::Descriptor* message = &root;
  ProtobufPlace place;
  for (size_t i = 0; i < steps.size(); ++i) {
    const pb::FieldDescriptor* field = message == nullptr ? nullptr : FieldOf(*message, steps[i].name);
    if (field == nullptr) return {};
    AddStep(*field, place);
    SetType(*field, place);
    if (field->is_repeated()) {
      if (++i == steps.size()) {
        place.type = ProtobufType::kAll;
        break;
      }
      if (!AddElement(*field, steps[i], place)) return {};
      if (field->is_map()) field = field->message_type()->map_value();
    }
    // A group is not looked into.
    message = field->type() == pb::FieldDescriptor::TYPE_MESSAGE ? field->message_type() : nullptr;
  }
  return place;
}

}  // namespace

ProtobufSchema::ProtobufSchema() = default;
ProtobufSchema::ProtobufSchema(ProtobufSchema&&) noexcept = default;
ProtobufSchema::~ProtobufSchema() = default;

absl::StatusOr<ProtobufSchema> ProtobufSchema::Compile(const Schema& schema) {
  size_t bytes = schema.text.size();
  for (const Schema::Reference& reference : schema.references) bytes += reference.text.size();
  if (bytes > kMostBytes) return absl::ResourceExhaustedError("is larger than 1 MiB");
  ProtobufSchema compiled;
  // Before it: the types that libprotobuf itself has, such as google.protobuf.Timestamp.
  const pb::DescriptorPool* const well_known = pb::DescriptorPool::generated_pool();
  compiled.pool_ = std::make_unique<pb::DescriptorPool>(well_known);
  compiled.pool_->AllowUnknownDependencies();
  for (const Schema::Reference& reference : schema.references) {
    if (well_known->FindFileByName(reference.name) != nullptr) continue;
    const auto file = Build(reference.name, reference.text, compiled.pool_.get());
    if (!file.ok()) {
      return absl::Status(file.status().code(),
                          absl::StrCat("imports ", reference.name, ", which ", file.status().message()));
    }
  }
  const auto file = Build(kFile, schema.text, compiled.pool_.get());
  if (!file.ok()) return file.status();
  compiled.file_ = *file;
  return compiled;
}

std::optional<std::vector<ProtobufPlace>> ProtobufSchema::Places(
    absl::Span<const int32_t> indexes, const std::vector<std::string>& pointers) const {
  const pb::Descriptor* message = nullptr;
  const int32_t first = indexes.empty() ? 0 : indexes[0];
  if (first < 0 || first >= file_->message_type_count()) return std::nullopt;
  message = file_->message_type(first);
  for (size_t i = 1; i < indexes.size(); ++i) {
    if (indexes[i] < 0 || indexes[i] >= message->nested_type_count()) return std::nullopt;
    message = message->nested_type(indexes[i]);
  }
  std::vector<ProtobufPlace> places;
  for (const std::string& pointer : pointers) places.push_back(PlaceOf(*message, pointer));
  return places;
}

}  // namespace lethe
