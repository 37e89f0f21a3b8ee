#include "src/cli/terminal/exit_code.h"

#include "src/cli/terminal/plain_text.h"

namespace lethe {

int ReportError(const absl::Status& status, std::ostream& err) {
  if (status.ok()) return kExitOk;
  err << "lethe: " << Printable(status.message()) << "\n";
  return status.code() == absl::StatusCode::kInvalidArgument ? kExitUsage : kExitFailed;
}

}  // namespace lethe
