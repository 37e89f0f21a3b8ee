#include "src/filter/prefault.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace lethe {

namespace {

// Nor is the owner to wait for its processor: the thread runs on the others, if there are any.
void KeepOff(int processor) {
  cpu_set_t allowed;
  if (processor < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_CLR(static_cast<size_t>(processor), &allowed);
  if (CPU_COUNT(&allowed) > 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace

Prefault::Prefault(char* begin, char* end) : begin_(begin), end_(end), present_from_(end) {
  try {
    thread_ = std::thread([this, owners = sched_getcpu()] {
      KeepOff(owners);
      Run();
    });
  } catch (const std::exception&) {
    // No thread, or no memory for one: whoever touches a page first waits for it, as everywhere.
    present_from_ = begin_;
  }
}

Prefault::~Prefault() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Prefault::Run() {
  for (char* last = end_; last > begin_ && !stop_;) {
    const uintptr_t into_chunk = (reinterpret_cast<uintptr_t>(last) - 1) % kChunkBytes + 1;
    const auto size = std::min(static_cast<size_t>(into_chunk), static_cast<size_t>(last - begin_));
    // As a write would, but for the write: the range's owner may be at work in it.
    const bool present = madvise(last - size, size, MADV_POPULATE_WRITE) == 0;
    last = present ? last - size : begin_;
    present_from_.store(last, std::memory_order_release);
  }
}

}  // namespace lethe
