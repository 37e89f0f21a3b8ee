// Pages that are given back beside their owner.
#ifndef LETHE_SRC_FILTER_GIVEBACK_H_
#define LETHE_SRC_FILTER_GIVEBACK_H_

#include <atomic>
#include <cstdint>
#include <thread>

#include "src/filter/prefault.h"

namespace lethe {

// Gives the pages of a mapping back to the system in a thread of its own, range after range, up to a huge
// page at a time, as far as the owner says. For one the kernel takes 50 us and more, in which whoever asks
// for it waits; and to start or end a thread takes as long, so that it lives as long as this does.
//
// Invariant: what is given back of a range reads as zeros; nothing else is touched. Thread safety: none,
// beside the thread within.
class Giveback {
 public:
  // The mapping outlives this. `base` is at the start of a huge page.
  explicit Giveback(char* base);
  // Waits for a huge page at most; what was asked for may not have been done by then.
  ~Giveback();
  Giveback(const Giveback&) = delete;
  Giveback& operator=(const Giveback&) = delete;

  // The next range is from `first_page` on, counted from the base. Nothing is left of the one before.
  void Begin(int64_t first_page);
  // Of the range, nothing before `page` is needed any more, which must not decrease.
  void Upto(int64_t page);
  // Of those that were asked for.
  int64_t pages_left() const;
  // Until all of it is done.
  void Await() const;

  static constexpr int64_t kChunkBytes = Prefault::kChunkBytes;

 private:
  // How far it is, and in which range, counted from 1.
  struct Place {
    uint32_t range;
    uint32_t page;
    bool operator==(const Place&) const = default;
  };
  static constexpr Place kEnd = {UINT32_MAX, 0};

  void Run();
  void GiveBackPiece(Place wanted);

  char* const base_;
  uint32_t first_page_ = 0;                 // of the range: written by the owner while nothing is left
  std::atomic<Place> wanted_{Place{1, 0}};  // written by the owner
  std::atomic<Place> done_{Place{1, 0}};    // written by the thread
  std::thread thread_;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_GIVEBACK_H_
