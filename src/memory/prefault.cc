#include "src/memory/prefault.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "src/memory/background_task.h"

namespace lethe {

Prefault::Prefault() : thread_(StartBackgroundTask([this] { Run(); })) {}

Prefault::~Prefault() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Prefault::Fill(char* begin, char* end) {
  // Without a thread the first touch of a page waits, as usual.
  if (!thread_.joinable()) {
    present_from_ = begin;
    return;
  }
  {
    std::unique_lock<std::mutex> lock(mutex_);
    last_ = begin_;  // no more of the range before
    changed_.wait(lock, [this] { return !is_filling_; });
    begin_ = begin;
    last_ = end;
    present_from_ = end;
  }
  changed_.notify_all();
}

void Prefault::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || last_ > begin_; });
    if (stop_) return;
    const uintptr_t into_chunk = (reinterpret_cast<uintptr_t>(last_) - 1) % kChunkBytes + 1;
    const auto size = std::min(static_cast<size_t>(into_chunk), static_cast<size_t>(last_ - begin_));
    char* const piece = last_ - size;
    is_filling_ = true;
    lock.unlock();
    // Faults the pages in without writing: the owner may be working in the range.
    const bool present = madvise(piece, size, MADV_POPULATE_WRITE) == 0;
    lock.lock();
    is_filling_ = false;
    if (last_ > begin_) {
      last_ = present ? piece : begin_;
      present_from_.store(last_, std::memory_order_release);
    } else {
      changed_.notify_all();  // Fill() waits
    }
  }
}

}  // namespace lethe
