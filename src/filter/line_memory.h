// Memory that grows and shrinks without a copy and without a stall.
#ifndef LETHE_FILTER_LINE_MEMORY_H_
#define LETHE_FILTER_LINE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lethe/memory_budget.h"
#include "src/filter/giveback.h"
#include "src/filter/prefault.h"

namespace lethe {

// A range of address space of which the first bytes() are usable. Growing only makes more of it
// accessible: the kernel hands out zeroed pages at the first touch. From 2 MiB on the range asks for huge
// pages, because an id's lines are random and would each miss the TLB; and since the first touch of one takes
// long, Prepare() has it done beforehand.
//
// Invariant: what is usable, in whole pages, is reserved in the MemoryBudget, no more and no less.
// Thread safety: none.
class LineMemory {
 public:
  // Zeroed memory of `bytes`, which may grow up to `most_bytes` as far as the budget has it. The budget
  // outlives it. ResourceExhausted if the budget or the address space has no room for `bytes`.
  // What lies before `huge_from`, a multiple of kChunkBytes, does not ask for huge pages: memory that grows
  // by small ones is copied by the system, a huge page at a time, while calls that touch it wait.
  static absl::StatusOr<LineMemory> Create(MemoryBudget* budget, int64_t bytes, int64_t most_bytes,
                                           int64_t huge_from = 0);

  LineMemory(LineMemory&& other) noexcept;
  LineMemory& operator=(LineMemory&&) = delete;
  LineMemory(const LineMemory&) = delete;
  LineMemory& operator=(const LineMemory&) = delete;
  ~LineMemory();

  // True if the first `bytes` are usable now; else nothing has changed.
  bool Grow(int64_t bytes);
  // The same beyond what it was made for, too: then all of it is at another address, where it has room to
  // grow to a multiple. Pages are moved and not copied, which takes some microseconds for each gigabyte.
  bool GrowOrMove(int64_t bytes);
  // What is enough address space for a start, with GrowOrMove. Thousands of filters then take no more than a
  // multiple of what they hold.
  static constexpr int64_t kFirstRoomBytes = int64_t{4} << 20;

  // Begins to make the pages from `begin` to the end present, from the last one down, if they are huge: what
  // lies from present_from() on can be touched without a wait. Both are offsets.
  void Prepare(int64_t begin);
  int64_t present_from() const;
  // Starts the thread of Prepare(), which takes as long as a huge page, in a call that does not need it yet.
  void ExpectPrepare();
  // Until present_from() is at `offset`, or for so long.
  void Await(int64_t offset, int64_t most_nanos) const;

  // Keeps the first `bytes` and gives the rest back to the system and to the budget.
  void Shrink(int64_t bytes);

  // Says that the content from `begin` up to `end` is not needed, so that a later Shrink has less to do at
  // once: if kChunkBytes and more are behind `begin`, another thread gives back the pages before the last
  // boundary of kChunkBytes in it, and once `end` is less than two pages before the end, all before it. Until
  // the next Shrink `begin` is the same, `end` grows, and the range is neither read nor written.
  void Discard(int64_t begin, int64_t end);
  // Of that, what has not been given back yet.
  int64_t bytes_to_discard() const;
  // Until nothing is.
  void AwaitDiscarded() const;

  // How far a filter may come to grow under this budget: to its limit, and to four times that where address
  // space is no matter, since a limit can be raised.
  static int64_t RoomUnder(const MemoryBudget& budget);

  // `bytes`, rounded down to pages, and up.
  static int64_t WholePagesIn(int64_t bytes);
  static int64_t WholePagesFor(int64_t bytes);

  // Until the next GrowOrMove().
  void* data() const { return data_; }
  // In whole pages.
  int64_t bytes() const { return bytes_; }

  // What is discarded at a time: a huge page.
  static constexpr int64_t kChunkBytes = Prefault::kChunkBytes;

 private:
  LineMemory(MemoryBudget* budget, void* mapping, size_t mapping_bytes, char* data);
  void StopPreparing();
  bool Move(int64_t most_bytes);

  MemoryBudget* budget_;
  void* mapping_;         // nullptr after a move
  size_t mapping_bytes_;  // of address space
  char* data_;            // aligned to kChunkBytes
  int64_t most_bytes_;
  int64_t huge_from_ = 0;
  int64_t bytes_ = 0;
  std::unique_ptr<Prefault> prefault_ = nullptr;  // since the first Prepare()
  std::unique_ptr<Giveback> giveback_ = nullptr;  // since the first Discard()
  bool discards_ = false;                         // since the last Shrink()
};

}  // namespace lethe

#endif  // LETHE_FILTER_LINE_MEMORY_H_
