#include "src/record/record_format.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/record/json_scanner.h"
#include "src/record/pointer.h"
#include "src/record/protobuf_walk.h"
#include "src/record/registry_frame.h"
#include "src/record/schema_formats.h"

namespace lethe {
namespace {

// JSON, or JSON behind a frame.
class JsonFormat final : public RecordFormat {
 public:
  JsonFormat(const std::vector<std::string>& pointers, bool framed, bool in_key)
      : scanner_(pointers), framed_(framed), in_key_(in_key) {}

  bool Read(absl::string_view bytes, const RecordHeaders* headers) override {
    why_ = nullptr;
    bytes_ = bytes;
    if (framed_) {
      const Unframed unframed = Unframe(bytes, headers, in_key_);
      bytes_ = unframed.payload;
      if (unframed.kind == Unframed::Kind::kBroken) {
        why_ = unframed.why;
        return false;
      }
    }
    return scanner_.Scan(bytes_);
  }
  const FieldValue& value(size_t i) const override { return scanner_.value(i); }
  void AppendWhy(std::string* reason) const override {
    absl::StrAppend(reason, "is not JSON: ");
    if (why_ != nullptr) {
      absl::StrAppend(reason, why_);
    } else if (const auto schema = framed_ ? std::nullopt : SchemaIdOf(bytes_)) {
      absl::StrAppend(reason, "it begins with ", FrameText(*schema));
    } else {
      absl::StrAppend(reason, scanner_.error(), ", at byte ", scanner_.error_offset());
    }
  }
  const char* name() const override { return "JSON"; }

 private:
  JsonScanner scanner_;
  const bool framed_;
  const bool in_key_;
  absl::string_view bytes_;
  const char* why_ = nullptr;  // of a broken frame
};

// Protobuf by numbers, behind a frame or without: no message begins with the zero byte of a frame, which
// would be a field without a number.
class ProtobufNumbers final : public RecordFormat {
 public:
  ProtobufNumbers(std::vector<ProtobufPlace> places, bool in_key)
      : walk_(std::move(places)), in_key_(in_key) {}

  bool Read(absl::string_view bytes, const RecordHeaders* headers) override {
    why_ = nullptr;
    const Unframed unframed = Unframe(bytes, headers, in_key_);
    absl::string_view message = unframed.payload;
    if (unframed.kind == Unframed::Kind::kBroken) {
      why_ = unframed.why;
    } else if (unframed.kind == Unframed::Kind::kFramed && !unframed.in_header &&
               !TakeMessageIndexes(message, &indexes_)) {
      why_ = "the message indexes of its frame cannot be";
    }
    return why_ == nullptr && walk_.Walk(message);
  }
  const FieldValue& value(size_t i) const override { return walk_.value(i); }
  void AppendWhy(std::string* reason) const override {
    absl::StrAppend(reason, "is not Protobuf: ");
    if (why_ != nullptr) {
      absl::StrAppend(reason, why_);
    } else {
      absl::StrAppend(reason, walk_.error(), ", at byte ", walk_.error_offset(), " of the message");
    }
  }
  const char* name() const override { return "Protobuf"; }

 private:
  ProtobufWalk walk_;
  const bool in_key_;
  std::vector<int32_t> indexes_;
  const char* why_ = nullptr;  // of a broken frame
};

}  // namespace

std::unique_ptr<RecordFormat> MakeFormat(const Field& field, const std::vector<std::string>& places,
                                         SchemaSource* schemas) {
  switch (field.kind) {
    case Field::Kind::kAvro:
      return MakeAvroFormat(places, field.in_key, schemas);
    case Field::Kind::kProtobufNames:
      return MakeProtobufFormat(places, field.in_key, schemas);
    case Field::Kind::kProtobuf: {
      std::vector<ProtobufPlace> numbers;
      for (const std::string& place : places) {
        ProtobufPath& path = numbers.emplace_back().path;
        for (const PointerStep& step : StepsOf(place)) {
          path.push_back(static_cast<uint32_t>(step.index));
        }
      }
      return std::make_unique<ProtobufNumbers>(std::move(numbers), field.in_key);
    }
    case Field::Kind::kJson:
    case Field::Kind::kFramedJson:
    default:
      return std::make_unique<JsonFormat>(places, field.kind == Field::Kind::kFramedJson, field.in_key);
  }
}

}  // namespace lethe
