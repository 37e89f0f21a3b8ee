#include "src/cli/terminal/out_of_memory.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>

#include "absl/strings/string_view.h"
#include "src/cli/terminal/exit_code.h"

namespace lethe {
namespace {

constexpr absl::string_view kNoMemory =
    "lethe: the system has no memory left for this process: raise its limit (of the container, the service, "
    "or ulimit -v), or lower the memory limit in the configuration; the next start replays uncommitted "
    "records\n";

std::terminate_handler handler_before = nullptr;

bool IsForMemory(const std::exception_ptr& error) {
  if (error == nullptr) return false;
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

[[noreturn]] void End() {
  if (IsForMemory(std::current_exception())) {
    // No stream and no log: they take memory. A failed write is ignored.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kNoMemory.data(), kNoMemory.size());
    _exit(kExitFailed);
  }
  if (handler_before != nullptr) handler_before();
  std::abort();
}

}  // namespace

void ExitWhenOutOfMemory() { handler_before = std::set_terminate(End); }

}  // namespace lethe
