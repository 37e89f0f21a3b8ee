#include "src/record/protobuf_schema.h"

#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "src/record/pointer.h"

namespace lethe {
namespace {

namespace pb = google::protobuf;

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr int kDeepest = 64;
constexpr size_t kMostErrorBytes = 200;
constexpr size_t kMostSteps = 100;  // messages may be no deeper, by libprotobuf's default
constexpr int kMostLooks = 10'000;
// The name of the schema's own file: no reference can have it.
constexpr char kMainFile[] = "\1";

// Takes the first error, which libprotobuf would log.
class FirstError final : public pb::io::ErrorCollector, public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    Take(absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message));
  }
  void AddError(const std::string& file, const std::string& element, const pb::Message* /*descriptor*/,
                ErrorLocation /*location*/, const std::string& message) override {
    Take(absl::StrCat(file == kMainFile ? std::string() : absl::StrCat(file, ": "), element, ": ", message));
  }
  absl::Status status() const {
    return absl::InvalidArgumentError(
        absl::StrCat("is no Protobuf schema: ", text_.empty() ? "it cannot be read" : text_));
  }

 private:
  void Take(const std::string& text) {
    if (text_.empty()) text_ = text.substr(0, kMostErrorBytes);
  }
  std::string text_;
};

absl::Status TooDeep() {
  return absl::ResourceExhaustedError(absl::StrCat("is nested deeper than ", kDeepest));
}

// libprotobuf's parser recurses as deep as messages are nested.
bool IsTooDeep(const std::string& text) {
  FirstError ignored;
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  pb::io::Tokenizer tokenizer(&stream, &ignored);
  int depth = 0;
  while (tokenizer.Next()) {
    if (tokenizer.current().text == "{" && ++depth > kDeepest) return true;
    if (tokenizer.current().text == "}" && depth > 0) --depth;
  }
  return false;
}

int DepthOf(const pb::DescriptorProto& message, int depth) {
  int deepest = depth;
  if (depth > kDeepest) return deepest;
  for (const pb::DescriptorProto& nested : message.nested_type()) {
    deepest = std::max(deepest, DepthOf(nested, depth + 1));
  }
  return deepest;
}

// The text of a .proto file, or a FileDescriptorProto in base64: no .proto file is base64, since a semicolon
// is none.
absl::StatusOr<pb::FileDescriptorProto> ParseFile(const std::string& text, const std::string& name) {
  pb::FileDescriptorProto file;
  std::string bytes;
  if (!text.empty() && absl::Base64Unescape(text, &bytes)) {
    if (!file.ParsePartialFromString(bytes)) {
      return absl::InvalidArgumentError(
          "is no Protobuf schema: it is neither text nor descriptors in base64");
    }
    for (const pb::DescriptorProto& message : file.message_type()) {
      if (DepthOf(message, 1) > kDeepest) return TooDeep();
    }
  } else {
    if (IsTooDeep(text)) return TooDeep();
    FirstError error;
    pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
    pb::io::Tokenizer tokenizer(&stream, &error);
    pb::compiler::Parser parser;
    parser.RecordErrorsTo(&error);
    if (!parser.Parse(&tokenizer, &file)) return error.status();
  }
  file.set_name(name);
  return file;
}

absl::StatusOr<const pb::FileDescriptor*> Build(const std::string& name, const std::string& text,
                                                pb::DescriptorPool* pool) {
  const absl::StatusOr<pb::FileDescriptorProto> file = ParseFile(text, name);
  if (!file.ok()) return file.status();
  FirstError error;
  const pb::FileDescriptor* const built = pool->BuildFileCollectingErrors(*file, &error);
  if (built == nullptr) return error.status();
  return built;
}

ProtobufType TypeOf(const pb::FieldDescriptor& field) {
  using Field = pb::FieldDescriptor;
  switch (field.type()) {
    case Field::TYPE_INT32:
      return ProtobufType::kInt32;
    case Field::TYPE_INT64:
      return ProtobufType::kInt64;
    case Field::TYPE_UINT32:
      return ProtobufType::kUint32;
    case Field::TYPE_UINT64:
      return ProtobufType::kUint64;
    case Field::TYPE_SINT32:
      return ProtobufType::kSint32;
    case Field::TYPE_SINT64:
      return ProtobufType::kSint64;
    case Field::TYPE_FIXED32:
      return ProtobufType::kFixed32;
    case Field::TYPE_FIXED64:
      return ProtobufType::kFixed64;
    case Field::TYPE_SFIXED32:
      return ProtobufType::kSfixed32;
    case Field::TYPE_SFIXED64:
      return ProtobufType::kSfixed64;
    case Field::TYPE_FLOAT:
      return ProtobufType::kFloat;
    case Field::TYPE_DOUBLE:
      return ProtobufType::kDouble;
    case Field::TYPE_BOOL:
      return ProtobufType::kBool;
    case Field::TYPE_STRING:
    case Field::TYPE_BYTES:
      return ProtobufType::kString;
    case Field::TYPE_ENUM:
      return ProtobufType::kEnum;
    case Field::TYPE_GROUP:
      return ProtobufType::kGroup;
    case Field::TYPE_MESSAGE:
      return ProtobufType::kMessage;
  }
  return ProtobufType::kMessage;
}

bool IsProto3(const pb::FieldDescriptor& field) {
  return field.file()->syntax() == pb::FileDescriptor::SYNTAX_PROTO3;
}

// By the type, and whether the field that has it is of proto3.
using Enums = std::map<std::pair<const pb::EnumDescriptor*, bool>, std::shared_ptr<const ProtobufEnum>>;

ProtobufStep StepOf(const pb::FieldDescriptor& field, Enums& enums) {
  ProtobufStep step(static_cast<uint32_t>(field.number()));
  step.type = TypeOf(field);
  step.is_repeated = field.is_repeated();
  if (const pb::OneofDescriptor* oneof = field.real_containing_oneof()) {
    for (int i = 0; i < oneof->field_count(); ++i) {
      const pb::FieldDescriptor& other = *oneof->field(i);
      if (&other == &field) continue;
      step.rivals.push_back(
          ProtobufTag(static_cast<uint32_t>(other.number()), ProtobufWireOf(TypeOf(other))));
    }
    std::sort(step.rivals.begin(), step.rivals.end());
  }
  // The values of a map are never told apart from their default.
  const bool is_map_value = field.containing_type()->options().map_entry();
  step.has_default = is_map_value || (!field.is_repeated() && !field.has_presence());
  if (step.type == ProtobufType::kEnum) {
    std::shared_ptr<const ProtobufEnum>& known = enums[{field.enum_type(), IsProto3(field)}];
    step.symbols = known;
    if (known != nullptr) return step;
    auto symbols = std::make_shared<ProtobufEnum>();
    const pb::EnumDescriptor& type = *field.enum_type();
    symbols->is_closed = type.file()->syntax() == pb::FileDescriptor::SYNTAX_PROTO2 || !IsProto3(field);
    for (int i = 0; i < type.value_count(); ++i) {  // of those with the same number the first counts
      symbols->symbols.emplace(type.value(i)->number(), type.value(i)->name());
    }
    step.symbols = known = std::move(symbols);
  }
  return step;
}

const pb::FieldDescriptor* FieldOf(const pb::Descriptor& message, const std::string& name) {
  if (const pb::FieldDescriptor* field = message.FindFieldByName(name)) return field;
  for (int i = 0; i < message.field_count(); ++i) {
    if (message.field(i)->json_name() == name) return message.field(i);
  }
  return nullptr;
}

bool IsWrapper(const pb::Descriptor& message) {
  return message.file()->name() == pb::StringValue::descriptor()->file()->name() &&
         message.field_count() == 1;
}

ProtobufPlace PlaceOf(const pb::Descriptor& root, const std::string& pointer, Enums& enums) {
  ProtobufPlace place;
  const std::vector<PointerStep> steps = StepsOf(pointer);
  if (steps.size() > kMostSteps) return {};
  const pb::Descriptor* message = &root;
  for (size_t i = 0; i < steps.size();) {
    const pb::FieldDescriptor* field = message == nullptr ? nullptr : FieldOf(*message, steps[i].name);
    if (field == nullptr) return {};
    place.path.push_back(StepOf(*field, enums));
    ++i;
    if (field->is_map() && i < steps.size()) {
      place.path.back().map_key = steps[i++].name;
      place.path.back().key_type = TypeOf(*field->message_type()->map_key());
      field = field->message_type()->map_value();
      place.path.push_back(StepOf(*field, enums));
    } else if (field->is_repeated() && i < steps.size()) {
      if (steps[i].index < 0) return {};
      place.path.back().index = steps[i++].index;
    }
    message = field->message_type();
    const bool is_list = place.path.back().is_repeated && place.path.back().index < 0;
    const bool is_whole = i == steps.size() && message != nullptr && !is_list;
    const bool is_timestamp = is_whole && message->full_name() == "google.protobuf.Timestamp";
    if (is_timestamp || (is_whole && IsWrapper(*message))) {
      place.path.push_back(StepOf(*message->field(0), enums));
    }
    if (field->full_name() == "google.protobuf.Timestamp.seconds") place.unit = TimeUnit::kSeconds;
    if (is_timestamp) place.unit = TimeUnit::kTimestamp;
  }
  return place;
}

const pb::Descriptor* NestedOf(const pb::Descriptor& message, int32_t index) {
  if (index < 0) return nullptr;
  const auto is_entry = [&](int i) { return message.nested_type(i)->options().map_entry(); };
  if (index < message.nested_type_count() && !is_entry(index)) return message.nested_type(index);
  for (int i = 0; i < message.nested_type_count(); ++i) {
    if (!is_entry(i) && index-- == 0) return message.nested_type(i);
  }
  return nullptr;
}

// `looks`: how many more fields it may look at. Messages of many messages have no end otherwise.
void AppendPointers(const pb::Descriptor& message, const std::string& above, int depth, size_t most,
                    int* looks, std::vector<std::string>* pointers) {
  for (int i = 0; i < message.field_count() && pointers->size() < most && (*looks)-- > 0; ++i) {
    const pb::FieldDescriptor& field = *message.field(i);
    if (field.is_repeated() || field.type() == pb::FieldDescriptor::TYPE_BOOL) continue;
    const std::string pointer = absl::StrCat(above, "/", field.name());
    const pb::Descriptor* const inner = field.message_type();
    if (inner == nullptr || IsWrapper(*inner)) {
      pointers->push_back(pointer);
    } else if (depth > 1) {
      AppendPointers(*inner, pointer, depth - 1, most, looks, pointers);
    }
  }
}

}  // namespace

ProtobufSchema::ProtobufSchema() = default;
ProtobufSchema::ProtobufSchema(ProtobufSchema&&) noexcept = default;
ProtobufSchema::~ProtobufSchema() = default;

absl::StatusOr<ProtobufSchema> ProtobufSchema::Compile(const Schema& schema) {
  // What goes wrong is in the status: nothing of libprotobuf may write into the program's log.
  static std::once_flag is_silent;
  std::call_once(is_silent, [] { pb::SetLogHandler(nullptr); });
  size_t bytes = schema.text.size();
  for (const Schema::Reference& reference : schema.references) bytes += reference.text.size();
  if (bytes > kMostBytes) return absl::ResourceExhaustedError("is larger than 1 MiB");
  ProtobufSchema compiled;
  // Before it: the types that libprotobuf itself has, such as google.protobuf.Timestamp.
  const pb::DescriptorPool* const well_known = pb::DescriptorPool::generated_pool();
  compiled.pool_ = std::make_unique<pb::DescriptorPool>(well_known);
  // Registries know of imports that they have built in (google/type, confluent/meta.proto), and do not list
  // them.
  compiled.pool_->AllowUnknownDependencies();
  for (const Schema::Reference& reference : schema.references) {
    if (compiled.pool_->FindFileByName(reference.name) != nullptr) continue;
    const auto file = Build(reference.name, reference.text, compiled.pool_.get());
    if (!file.ok()) {
      return absl::Status(file.status().code(),
                          absl::StrCat("imports ", reference.name, ", which ", file.status().message()));
    }
  }
  const auto file = Build(kMainFile, schema.text, compiled.pool_.get());
  if (!file.ok()) return file.status();
  compiled.file_ = *file;
  return compiled;
}

const pb::Descriptor* ProtobufSchema::Find(absl::Span<const int32_t> indexes) const {
  const int32_t first = indexes.empty() ? 0 : indexes[0];
  if (first < 0 || first >= file_->message_type_count()) return nullptr;
  const pb::Descriptor* message = file_->message_type(first);
  for (const int32_t index : indexes.empty() ? indexes : indexes.subspan(1)) {
    message = NestedOf(*message, index);
    if (message == nullptr) return nullptr;
  }
  return message;
}

std::vector<std::string> ProtobufSchema::Pointers(absl::Span<const int32_t> indexes, int depth,
                                                  size_t most) const {
  std::vector<std::string> pointers;
  int looks = kMostLooks;
  if (const pb::Descriptor* message = Find(indexes)) {
    AppendPointers(*message, "", depth, most, &looks, &pointers);
  }
  return pointers;
}

std::optional<std::vector<ProtobufPlace>> ProtobufSchema::Places(
    absl::Span<const int32_t> indexes, const std::vector<std::string>& pointers) const {
  const pb::Descriptor* message = Find(indexes);
  if (message == nullptr) return std::nullopt;
  std::vector<ProtobufPlace> places;
  Enums enums;
  for (const std::string& pointer : pointers) places.push_back(PlaceOf(*message, pointer, enums));
  return places;
}

}  // namespace lethe
