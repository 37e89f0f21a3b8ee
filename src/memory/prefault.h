// Pages that are there before they are touched, and small ones that become huge.
#ifndef LETHE_SRC_MEMORY_PREFAULT_H_
#define LETHE_SRC_MEMORY_PREFAULT_H_

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "src/sync/mutex.h"

namespace lethe {

// Makes the pages of a range present in a thread of its own, from the end of the range down, a huge page at
// a time. The first touch of a huge page has the kernel find and clear 2 MiB: 0.1 ms on a good day, and some
// ms where memory is fragmented or a host has to find it first. A thread that touches it waits that long,
// also in small steps, and small pages that the kernel merges later leave a filter with TLB misses for
// minutes. So somebody else has to wait, and that is the thread. To start one takes as long as a huge page,
// so it lives as long as this does.
//
// Small pages that are there can be gathered into huge ones later. The kernel copies 2 MiB for each, and a
// thread that touches them meanwhile waits for that: half a millisecond, and some on a busy machine.
//
// Invariant: the pages from present_from() to the end of the range are present, or cannot be made so before
// they are touched (old kernels, or no thread). The content is not changed; the range may be read and
// written meanwhile. Thread safety: none, apart from its own thread.
class Prefault {
 public:
  Prefault();
  // Waits for a chunk at most.
  ~Prefault();
  Prefault(const Prefault&) = delete;
  Prefault& operator=(const Prefault&) = delete;

  // Begins with [begin, end), in whole pages, which is mapped for writing until the next Fill has returned;
  // drops the rest of the ranges before. Waits for a chunk of these at most.
  void Fill(char* begin, char* end);
  // After that, in the same thread: makes the small pages of [begin, end), in whole chunks, into huge ones,
  // until the next Fill has returned. Does nothing on Linux before 6.1.
  void Gather(char* begin, char* end);

  // Whether this process was forked from the one that made this. The thread is not in it, so the destructor
  // would wait for it forever.
  bool IsForked() const;

  const char* present_from() const { return present_from_.load(std::memory_order_acquire); }

  // A huge page.
  static constexpr int64_t kChunkBytes = int64_t{2} << 20;

 private:
  void Run();

  const pid_t process_;
  Mutex mutex_;
  std::condition_variable changed_;
  char* begin_ ABSL_GUARDED_BY(mutex_) = nullptr;
  char* last_ ABSL_GUARDED_BY(mutex_) = nullptr;          // the end of the pages still to fill
  char* gather_begin_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the chunks still to gather
  char* gather_end_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<char*> present_from_ = nullptr;
  std::thread thread_;
};

}  // namespace lethe

#endif  // LETHE_SRC_MEMORY_PREFAULT_H_
