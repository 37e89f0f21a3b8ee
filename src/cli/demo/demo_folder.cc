#include "src/cli/demo/demo_folder.h"

#include <stdlib.h>

#include <filesystem>
#include <system_error>

#include "absl/status/status.h"

namespace lethe {

absl::StatusOr<std::string> MakeDemoFolder() {
  std::error_code none;
  for (const std::filesystem::path& parent :
       {std::filesystem::temp_directory_path(none), std::filesystem::path("/dev/shm")}) {
    std::string pattern = (parent / "lethe-demo-XXXXXX").string();
    if (!parent.empty() && mkdtemp(pattern.data()) != nullptr) return pattern;
  }
  return absl::FailedPreconditionError(
      "cannot create a temporary folder; set TMPDIR to one that can be written");
}

}  // namespace lethe
