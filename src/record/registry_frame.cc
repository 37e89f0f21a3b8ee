#include "src/record/registry_frame.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "src/record/varint.h"

namespace lethe {
namespace {

constexpr size_t kGuidFrame = 17;
constexpr char kGuidByte = 1;
constexpr char kGlueByte = 3;
constexpr size_t kGlueFrame = 18;
constexpr int64_t kMostIndexes = 32;

// Takes the schema's number or GUID off the front.
bool TakeSchemaId(absl::string_view& bytes, SchemaKey* key) {
  if (bytes.size() >= kGuidFrame && bytes[0] == kGuidByte) {
    auto& guid = key->emplace<std::array<uint8_t, 16>>();
    std::copy_n(bytes.begin() + 1, guid.size(), guid.begin());
    bytes.remove_prefix(kGuidFrame);
    return true;
  }
  if (bytes.size() < kFrameBytes || bytes[0] != '\0') return false;
  uint32_t number = 0;
  for (size_t i = 1; i < kFrameBytes; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  if (number == 0 || number > INT32_MAX) return false;
  *key = static_cast<int32_t>(number);
  bytes.remove_prefix(kFrameBytes);
  return true;
}

}  // namespace

Unframed Unframe(absl::string_view bytes, const RecordHeaders* headers, bool of_key) {
  static const auto* const kKeySchema = new std::string("__key_schema_id");
  static const auto* const kValueSchema = new std::string("__value_schema_id");
  Unframed unframed{.payload = bytes};
  if (headers != nullptr) {
    if (auto header = headers->Last(of_key ? *kKeySchema : *kValueSchema)) {
      unframed.in_header = true;
      const bool is_right = TakeSchemaId(*header, &unframed.schema);
      unframed.in_header_behind = *header;
      unframed.kind = is_right ? Unframed::Kind::kFramed : Unframed::Kind::kBroken;
      if (!is_right) unframed.why = "the header of its schema is neither 00 and an id nor 01 and a GUID";
      return unframed;
    }
  }
  if (bytes.empty()) return unframed;
  if (bytes[0] == '\0') {
    const bool is_right = TakeSchemaId(unframed.payload, &unframed.schema);
    unframed.kind = is_right ? Unframed::Kind::kFramed : Unframed::Kind::kBroken;
    if (!is_right) {
      unframed.why = bytes.size() < kFrameBytes ? "its frame (00 and a schema id) is cut off"
                                                : "its frame names a schema id of 0 or below";
    }
  } else if (bytes[0] == kGlueByte && bytes.size() >= kGlueFrame && (bytes[1] == 0 || bytes[1] == 5)) {
    unframed.kind = Unframed::Kind::kBroken;
    unframed.why = "it begins with the frame of AWS Glue's registry (03), which lethe cannot read";
  }
  return unframed;
}

bool TakeMessageIndexes(absl::string_view& bytes, std::vector<int32_t>* indexes) {
  indexes->clear();
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  int64_t count = 0;
  if (!TakeZigzag(&at, end, &count) || count < 0 || count > kMostIndexes) return false;
  for (; count > 0; --count) {
    int64_t index = 0;
    if (!TakeZigzag(&at, end, &index) || index < 0 || index > INT32_MAX) return false;
    indexes->push_back(static_cast<int32_t>(index));
  }
  bytes.remove_prefix(static_cast<size_t>(at - bytes.data()));
  return true;
}

std::string FrameText(int32_t schema) {
  return absl::StrCat("a schema registry's frame (00 and schema id ", schema, ")");
}

}  // namespace lethe
