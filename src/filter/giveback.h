// Pages that are given back beside their owner.
#ifndef LETHE_SRC_FILTER_GIVEBACK_H_
#define LETHE_SRC_FILTER_GIVEBACK_H_

#include <atomic>
#include <cstdint>
#include <thread>

#include "src/filter/prefault.h"

namespace lethe {

// Gives the pages of a range back to the system in a thread of its own, a huge page at a time, as far as the
// owner says. For one the kernel takes 50 us and more, in which whoever asks for it waits.
//
// Invariant: what lies before given_back() is given back and reads as zeros; what lies behind the last
// Upto() is untouched. Thread safety: none, beside the thread within.
class Giveback {
 public:
  // The range is mapped for writing until this is destroyed. `begin` is at the start of a huge page.
  explicit Giveback(char* begin);
  // Waits for a chunk at most; what was asked for may not have been done by then.
  ~Giveback();
  Giveback(const Giveback&) = delete;
  Giveback& operator=(const Giveback&) = delete;

  // Nothing before `end` is needed any more, which must not decrease. A last part of a chunk stays.
  void Upto(char* end);
  char* given_back() const { return given_back_.load(std::memory_order_acquire); }
  // Of what was asked for.
  int64_t bytes_left() const { return wanted_.load(std::memory_order_relaxed) - given_back(); }
  // Until all of it is done.
  void Await() const;

  static constexpr int64_t kChunkBytes = Prefault::kChunkBytes;

 private:
  void Run();
  void GiveBackChunk();

  std::atomic<char*> given_back_;
  std::atomic<char*> wanted_;  // nullptr: no more
  std::thread thread_;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_GIVEBACK_H_
