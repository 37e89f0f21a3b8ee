#include "src/memory/background_task.h"

#include <sched.h>

#include <exception>
#include <utility>

namespace lethe {
namespace {

void KeepOff(int processor) {
  cpu_set_t allowed;
  if (processor < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_CLR(static_cast<size_t>(processor), &allowed);
  if (CPU_COUNT(&allowed) > 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace

std::thread StartBackgroundTask(std::function<void()> work) {
  try {
    return std::thread([work = std::move(work), owners = sched_getcpu()] {
      KeepOff(owners);
      work();
    });
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace lethe
