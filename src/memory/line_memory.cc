#include "src/memory/line_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/assertion.h"

namespace lethe {
namespace {

// For one filter: tens of billions of ids. The processor's address space has 2048 times that.
constexpr int64_t kMostAddressSpace = int64_t{64} << 30;
// By how much memory that moves has more room than it needs at once.
constexpr int64_t kRoomToGrow = 4;

int64_t PageBytes() {
  static const int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

// Address space, in which `data` is the first boundary of huge pages. Null if there is none.
struct AddressSpace {
  void* mapping = nullptr;
  size_t bytes = 0;
  char* data = nullptr;
};

AddressSpace Take(int64_t most) {
  constexpr uintptr_t kChunk = LineMemory::kChunkBytes;
  AddressSpace space = {.bytes = static_cast<size_t>(most) + kChunk};
  void* const mapping =
      mmap(nullptr, space.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return {};
  space.mapping = mapping;
  const auto start = reinterpret_cast<uintptr_t>(mapping);
  space.data = static_cast<char*>(mapping) + ((start + kChunk - 1) / kChunk * kChunk - start);
  return space;
}

// Moves pages to where there are none yet. They are of one mapping, or else (the system has divided it) they
// are copied.
void MovePages(char* from, size_t bytes, char* to) {
  if (bytes == 0) return;
  if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) return;
  std::memcpy(to, from, bytes);
}

}  // namespace

int64_t LineMemory::WholePagesIn(int64_t bytes) { return bytes / PageBytes() * PageBytes(); }

int64_t LineMemory::WholePagesFor(int64_t bytes) { return WholePagesIn(bytes + PageBytes() - 1); }

absl::StatusOr<LineMemory> LineMemory::Create(MemoryBudget* budget, int64_t bytes, int64_t most_bytes,
                                              int64_t huge_from) {
  // Address space may be short (RLIMIT_AS), and then less room to grow must do. Nor may some thousands of
  // filters take all of it, since everything else in the process needs some too.
  int64_t most = WholePagesFor(std::max(bytes, std::min(most_bytes, kMostAddressSpace)));
  AddressSpace space = Take(most);
  while (space.mapping == nullptr && most > WholePagesFor(bytes)) {
    most = std::max(WholePagesFor(bytes), WholePagesFor(most / 2));
    space = Take(most);
  }
  if (space.mapping == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no address space for a filter of ", bytes, " bytes (", std::generic_category().message(errno),
        "): raise the process's limit of virtual memory (ulimit -v), or open fewer partitions"));
  }
  LineMemory memory(budget, space.mapping, space.bytes, space.data);
  memory.most_bytes_ = most;
  memory.huge_from_ = huge_from;
  if (!memory.Grow(bytes)) {
    if (WholePagesFor(bytes) <= budget->free_bytes()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the system refused ", bytes,
                       " bytes for a filter, which the memory limit allows: raise the process's limits, or "
                       "lower the memory limit"));
    }
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the smallest filter (", bytes, " bytes): ", budget->free_bytes(), " of ",
                     budget->limit_bytes(),
                     " bytes of the memory limit are left; raise the limit, or open fewer partitions"));
  }
  return memory;
}

LineMemory::LineMemory(MemoryBudget* budget, void* mapping, size_t mapping_bytes, char* data)
    : budget_(budget), mapping_(mapping), mapping_bytes_(mapping_bytes), data_(data), most_bytes_(0) {}

LineMemory::LineMemory(LineMemory&& other) noexcept
    : budget_(other.budget_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(other.mapping_bytes_),
      data_(std::exchange(other.data_, nullptr)),
      most_bytes_(other.most_bytes_),
      huge_from_(other.huge_from_),
      bytes_(std::exchange(other.bytes_, 0)),
      prefault_(std::move(other.prefault_)) {}

LineMemory::~LineMemory() {
  if (mapping_ == nullptr) return;
  ForgetForked();
  prefault_.reset();
  munmap(mapping_, mapping_bytes_);
  budget_->Release(bytes_);
}

bool LineMemory::Grow(int64_t bytes) {
  const int64_t wanted = WholePagesFor(bytes);
  if (wanted <= bytes_) return true;
  const int64_t more = wanted - bytes_;
  if (wanted > most_bytes_) return false;
  if (!(bytes_ == 0 ? budget_->ReserveFirst(more) : budget_->Reserve(more))) return false;
  if (mprotect(data_ + bytes_, static_cast<size_t>(more), PROT_READ | PROT_WRITE) != 0) {
    budget_->Release(more);
    return false;
  }
  // Advice only: without huge pages all is as true, if slower.
  if (wanted >= huge_from_ + kChunkBytes) {
    madvise(data_ + huge_from_, static_cast<size_t>(wanted - huge_from_), MADV_HUGEPAGE);
  }
  bytes_ = wanted;
  LETHE_DEBUG_ASSERT(bytes_ == WholePagesFor(bytes_) && bytes_ <= most_bytes_);
  return true;
}

bool LineMemory::GrowOrMove(int64_t bytes) {
  if (bytes <= most_bytes_) return Grow(bytes);
  if (!budget_->HasRoomFor(WholePagesFor(bytes) - bytes_)) return false;
  int64_t room = kRoomToGrow * WholePagesFor(bytes);
  while (!Move(room)) {
    if (room <= WholePagesFor(bytes)) return false;
    room = std::max(WholePagesFor(bytes), WholePagesFor(room / 2));
  }
  return Grow(bytes);
}

bool LineMemory::Move(int64_t most_bytes) {
  const AddressSpace space = Take(most_bytes);
  if (space.mapping == nullptr) return false;
  if (mprotect(space.data, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE) != 0) {
    munmap(space.mapping, space.bytes);
    return false;
  }
  StopPreparing();
  // Huge pages are asked for from huge_from_ on, which makes that a mapping of its own.
  const auto small = static_cast<size_t>(std::min(huge_from_, bytes_));
  MovePages(data_, small, space.data);
  MovePages(data_ + small, static_cast<size_t>(bytes_) - small, space.data + small);
  munmap(mapping_, mapping_bytes_);
  mapping_ = space.mapping;
  mapping_bytes_ = space.bytes;
  data_ = space.data;
  most_bytes_ = most_bytes;
  return true;
}

void LineMemory::Prepare(int64_t begin) {
  if (bytes_ - begin < kChunkBytes) return StopPreparing();
  ExpectPrepare();
  if (prefault_ == nullptr) return;
  prefault_->Fill(data_ + WholePagesIn(begin), data_ + bytes_);
  prefault_->Gather(GatheredAt(begin), GatheredAt(bytes_));
}

char* LineMemory::GatheredAt(int64_t bytes) const {
  return data_ + std::clamp(2 * (bytes - huge_from_) / kChunkBytes * kChunkBytes, int64_t{0}, huge_from_);
}

void LineMemory::ForgetForked() {
  if (prefault_ != nullptr && prefault_->IsForked()) (void)prefault_.release();
}

void LineMemory::ExpectPrepare() {
  ForgetForked();
  if (prefault_ == nullptr) prefault_.reset(new (std::nothrow) Prefault);
}

void LineMemory::StopPreparing() {
  ForgetForked();
  if (prefault_ != nullptr) prefault_->Fill(data_, data_);
}

void LineMemory::Shrink(int64_t bytes) {
  const int64_t kept = WholePagesFor(bytes);
  if (kept >= bytes_) return;
  StopPreparing();
  const auto less = static_cast<size_t>(bytes_ - kept);
  madvise(data_ + kept, less, MADV_DONTNEED);
  mprotect(data_ + kept, less, PROT_NONE);
  budget_->Release(bytes_ - kept);
  bytes_ = kept;
}

}  // namespace lethe
