#include "src/record/schema_source.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lethe {

std::string SchemaName(const SchemaKey& key) {
  if (const auto* id = std::get_if<int32_t>(&key)) return absl::StrCat("schema id ", *id);
  const auto& bytes = std::get<1>(key);
  const std::string hex =
      absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return absl::StrCat("schema GUID ", hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

}  // namespace lethe
