// Pages that are there before they are touched.
#ifndef LETHE_SRC_FILTER_PREFAULT_H_
#define LETHE_SRC_FILTER_PREFAULT_H_

#include <atomic>
#include <cstdint>
#include <thread>

namespace lethe {

// Makes the pages of a range present in a thread of its own, from the end of the range down, a huge page at
// a time. The first touch of a huge page has the kernel find and clear 2 MiB: 0.1 ms on a good day, and some
// ms where memory is fragmented or a host has to find it first. Whoever touches it waits that long, also in
// small steps, and small pages that the kernel merges later leave a filter with TLB misses for minutes. So
// somebody else has to wait, and that is the thread: it ends when the range is done.
//
// Invariant: what lies from present_from() to the end of the range is present, or cannot be made so before
// it is touched (old kernels; no thread to be had). The content is not changed; the range may be read and
// written meanwhile. Thread safety: none, beside the thread within.
class Prefault {
 public:
  // [begin, end), in whole pages, is mapped for writing until this is destroyed.
  Prefault(char* begin, char* end);
  // Waits for a chunk at most.
  ~Prefault();
  Prefault(const Prefault&) = delete;
  Prefault& operator=(const Prefault&) = delete;

  const char* present_from() const { return present_from_.load(std::memory_order_acquire); }

  // A huge page.
  static constexpr int64_t kChunkBytes = int64_t{2} << 20;

 private:
  void Run();

  char* const begin_;
  char* const end_;
  std::atomic<char*> present_from_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_PREFAULT_H_
