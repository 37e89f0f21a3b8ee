#include "src/filter/giveback.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/filter/sliced_fbf.h"

namespace {

// How long a thread beside the test takes to give pages back, as if it had no processor.
std::atomic<std::chrono::milliseconds> slowness{};
const std::thread::id test_thread = std::this_thread::get_id();

}  // namespace

extern "C" int madvise(void* address, size_t size, int advice) noexcept {
  if (advice == MADV_DONTNEED && std::this_thread::get_id() != test_thread) {
    std::this_thread::sleep_for(slowness.load());
  }
  return static_cast<int>(syscall(SYS_madvise, address, size, advice));
}

namespace lethe {
namespace {

constexpr int64_t kChunk = Giveback::kChunkBytes;
constexpr int64_t kChunks = 32;

// Whole chunks, all of them written to.
class Range {
 public:
  Range() : mapping_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    const auto start = reinterpret_cast<uintptr_t>(mapping_);
    data_ = static_cast<char*>(mapping_) + ((start + kChunk - 1) / kChunk * kChunk - start);
    Fill();
  }
  ~Range() { munmap(mapping_, kBytes); }
  void Fill() { std::memset(data_, 7, kChunks * kChunk); }
  char* chunk(int64_t number) const { return data_ + number * kChunk; }

 private:
  static constexpr size_t kBytes = (kChunks + 1) * kChunk;
  void* mapping_;
  char* data_;
};

// One range after another, each beginning and ending anywhere, is given back, and nothing beside it.
TEST(Giveback, GivesBackRangesAndNoMore) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t pages = kChunk / page;  // of a chunk
  Range range;
  Giveback giveback(range.chunk(0));
  for (const auto& [first, last] :
       {std::pair(20 * pages - 3, 31 * pages + 5), std::pair(10 * pages + 7, 12 * pages - 1),
        std::pair(10 * pages + 7, 10 * pages + 8), std::pair(int64_t{0}, int64_t{1})}) {
    range.Fill();
    giveback.Begin(first);
    EXPECT_EQ(giveback.pages_left(), 0);
    giveback.Await();
    for (int64_t upto = first + 1; upto < last; upto += pages / 3) giveback.Upto(upto);
    giveback.Upto(last);
    giveback.Upto(first);  // it was more
    giveback.Await();
    EXPECT_EQ(giveback.pages_left(), 0);
    for (int64_t at = 0; at < kChunks * pages; ++at) {
      const bool given = first <= at && at < last;
      ASSERT_EQ(range.chunk(0)[at * page], given ? 0 : 7) << at;
      ASSERT_EQ(range.chunk(0)[at * page + page - 1], given ? 0 : 7) << at;
    }
  }
}

TEST(Giveback, EndsWhateverIsLeft) {
  for (int i = 0; i < 50; ++i) {
    Range range;
    {
      Giveback giveback(range.chunk(0));
      giveback.Begin(0);
      giveback.Upto(kChunks * kChunk / sysconf(_SC_PAGESIZE));
    }
    // From then on nothing is given back.
    std::memset(range.chunk(0), 9, kChunks * kChunk);
    EXPECT_EQ(range.chunk(kChunks - 1)[0], 9);
    EXPECT_EQ(range.chunk(0)[0], 9);
  }
}

// A fold waits for its pages to be given back, but not for ever: stream time may be faster than they are.
TEST(Giveback, AFoldDoesNotWaitLong) {
  constexpr int64_t kHourMs = 3'600'000;
  MemoryBudget memory(int64_t{1} << 30);
  absl::StatusOr<std::unique_ptr<Filter>> filter =
      NewSlicedFbf({.horizon = absl::Hours(1), .target_fpp = 1e-4, .memory = &memory});
  ASSERT_TRUE(filter.ok()) << filter.status();
  uint64_t number = 0;
  int64_t time = 0;
  const auto insert = [&](int64_t ids, int64_t step_ms) {
    for (const uint64_t end = number + static_cast<uint64_t>(ids); number < end; time += step_ms) {
      const TimedId id = {{++number * 0x9e3779b97f4a7c15, number * 0xbf58476d1ce4e5b9}, time};
      Verdict verdict;
      (*filter)->TestAndInsert({&id, 1}, {&verdict, 1});
    }
  };
  insert(2 * kHourMs, 1);
  const int64_t most = memory.used_bytes();
  ASSERT_GT(most, 4 * kChunk);
  slowness = std::chrono::milliseconds(100);
  insert(4 * kHourMs / 100, 100);
  slowness = std::chrono::milliseconds(0);
  EXPECT_LE(memory.used_bytes(), most / 32);
}

}  // namespace
}  // namespace lethe
