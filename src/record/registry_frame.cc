#include "src/record/registry_frame.h"

#include "absl/strings/str_cat.h"

namespace lethe {

std::string FrameText(int32_t schema) {
  return absl::StrCat("a schema registry's frame (00 and schema id ", schema, ")");
}

}  // namespace lethe
