#include "src/filter/prefault.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "src/filter/beside.h"

namespace lethe {

Prefault::Prefault(char* begin, char* end)
    : begin_(begin), end_(end), present_from_(end), thread_(Beside([this] { Run(); })) {
  // Without a thread whoever touches a page first waits for it, as everywhere.
  if (!thread_.joinable()) present_from_ = begin_;
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
