#include "src/memory/prefault.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "src/assertion.h"
#include "src/memory/background_task.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace lethe {

Prefault::Prefault() : process_(getpid()), thread_(StartBackgroundTask([this] { Run(); })) {}

Prefault::~Prefault() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Prefault::IsForked() const { return getpid() != process_; }

void Prefault::Fill(char* begin, char* end) {
  LETHE_DEBUG_ASSERT(begin <= end);
  // Without a thread the first touch of a page waits, as usual.
  if (!thread_.joinable()) {
    present_from_ = begin;
    return;
  }
  {
    MutexLock lock(mutex_);
    last_ = begin_;  // no more of the ranges before
    gather_begin_ = gather_end_;
    changed_.wait(lock.held(), [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !is_busy_; });
    begin_ = begin;
    last_ = end;
    present_from_ = end;
  }
  changed_.notify_all();
}

void Prefault::Gather(char* begin, char* end) {
  {
    const MutexLock lock(mutex_);
    gather_begin_ = begin;
    gather_end_ = end;
  }
  changed_.notify_all();
}

void Prefault::Run() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock.held(), [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stop_ || last_ > begin_ || gather_end_ > gather_begin_;
    });
    if (stop_) return;
    const bool fills = last_ > begin_;
    const uintptr_t into_chunk = (reinterpret_cast<uintptr_t>(last_) - 1) % kChunkBytes + 1;
    const auto size = fills ? std::min(static_cast<size_t>(into_chunk), static_cast<size_t>(last_ - begin_))
                            : static_cast<size_t>(kChunkBytes);
    char* const piece = fills ? last_ - size : std::exchange(gather_begin_, gather_begin_ + kChunkBytes);
    is_busy_ = true;
    lock.Unlock();
    // Faults the pages in without writing: the owner may be working in the range. Pages that stay small are
    // as true.
    const bool done = madvise(piece, size, fills ? MADV_POPULATE_WRITE : MADV_COLLAPSE) == 0;
    lock.Lock();
    is_busy_ = false;
    if (fills && last_ > begin_) {
      last_ = done ? piece : begin_;
      present_from_.store(last_, std::memory_order_release);
    }
    changed_.notify_all();  // Fill() may wait
  }
}

}  // namespace lethe
