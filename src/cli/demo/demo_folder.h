// Where the demo keeps what it does not show.
#ifndef LETHE_SRC_CLI_DEMO_DEMO_FOLDER_H_
#define LETHE_SRC_CLI_DEMO_DEMO_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"

namespace lethe {

// Makes a temporary folder: where such folders are, or in memory, since a container may have nothing else
// that can be written. The caller removes it.
absl::StatusOr<std::string> MakeDemoFolder();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_DEMO_DEMO_FOLDER_H_
