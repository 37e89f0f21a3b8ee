// Memory that grows and shrinks without a copy and without a stall.
#ifndef LETHE_SRC_MEMORY_LINE_MEMORY_H_
#define LETHE_SRC_MEMORY_LINE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lethe/memory_budget.h"
#include "src/memory/prefault.h"

namespace lethe {

// A range of address space; its first bytes() are usable. Growing only makes more of it
// accessible: the kernel hands out zeroed pages at the first touch. From 2 MiB on the range asks for huge
// pages, because an id's lines are random and would each miss the TLB; and since the first touch of one takes
// long, Prepare() has it done beforehand.
//
// Invariant: the usable bytes, in whole pages, are reserved in the MemoryBudget, no more and no less.
// Thread safety: none.
class LineMemory {
 public:
  // Zeroed memory of `bytes`, which may grow up to `most_bytes` as far as the budget has it. The budget
  // outlives it. ResourceExhausted if the budget or the address space has no room for `bytes`.
  // The bytes before `huge_from`, a multiple of kChunkBytes, do not ask for huge pages: memory that grows
  // by small ones is copied by the system, a huge page at a time, while calls that touch it wait. Prepare()
  // has that done beyond `huge_from`, two huge pages for each one that comes on top.
  static absl::StatusOr<LineMemory> Create(MemoryBudget* budget, int64_t bytes, int64_t most_bytes,
                                           int64_t huge_from = 0);

  LineMemory(LineMemory&& other) noexcept;
  LineMemory& operator=(LineMemory&&) = delete;
  LineMemory(const LineMemory&) = delete;
  LineMemory& operator=(const LineMemory&) = delete;
  ~LineMemory();

  // True if the first `bytes` are usable now; else nothing has changed.
  bool Grow(int64_t bytes);
  // The same, also beyond its first room: then all of it moves to another address, where it has room to
  // grow to a multiple. Pages are moved and not copied, which takes some microseconds for each gigabyte.
  bool GrowOrMove(int64_t bytes);
  // Enough address space for a start, with GrowOrMove. Thousands of filters then take no more than a
  // multiple of their contents.
  static constexpr int64_t kFirstRoomBytes = int64_t{4} << 20;

  // Begins to make the pages from `begin` (an offset) to the end present, from the last one down, if they are
  // huge. A background task does it, so that the owner does not wait at the first touch. `begin` is where the
  // memory ended before.
  void Prepare(int64_t begin);
  // Starts the background task of Prepare(), which takes as long as a huge page, in a call that has time.
  void ExpectPrepare();

  // Keeps the first `bytes` and gives the rest back to the system and to the budget.
  void Shrink(int64_t bytes);

  // `bytes`, rounded down to pages, and up.
  static int64_t WholePagesIn(int64_t bytes);
  static int64_t WholePagesFor(int64_t bytes);

  // Until the next GrowOrMove().
  void* data() const { return data_; }
  // In whole pages.
  int64_t bytes() const { return bytes_; }

  // A huge page.
  static constexpr int64_t kChunkBytes = Prefault::kChunkBytes;

 private:
  LineMemory(MemoryBudget* budget, void* mapping, size_t mapping_bytes, char* data);
  void StopPreparing();
  // In a forked process, leaves the background task's remains where they are.
  void ForgetForked();
  // Up to where small pages are gathered when the memory has so many bytes.
  char* GatheredAt(int64_t bytes) const;
  bool Move(int64_t most_bytes);

  MemoryBudget* budget_;
  void* mapping_;         // nullptr after a move
  size_t mapping_bytes_;  // of address space
  char* data_;            // aligned to kChunkBytes
  int64_t most_bytes_;
  int64_t huge_from_ = 0;
  int64_t bytes_ = 0;
  std::unique_ptr<Prefault> prefault_ = nullptr;  // since the first Prepare()
};

}  // namespace lethe

#endif  // LETHE_SRC_MEMORY_LINE_MEMORY_H_
