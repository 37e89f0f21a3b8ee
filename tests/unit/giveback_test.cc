#include "src/filter/giveback.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
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
    std::memset(data_, 7, kChunks * kChunk);
  }
  ~Range() { munmap(mapping_, kBytes); }
  char* chunk(int64_t number) const { return data_ + number * kChunk; }

 private:
  static constexpr size_t kBytes = (kChunks + 1) * kChunk;
  void* mapping_;
  char* data_;
};

TEST(Giveback, GivesBackWholeChunksAndNoMore) {
  Range range;
  Giveback giveback(range.chunk(1));
  giveback.Upto(range.chunk(1) + kChunk - 1);
  EXPECT_EQ(giveback.bytes_left(), 0);
  for (int64_t chunk = 2; chunk < kChunks; ++chunk) giveback.Upto(range.chunk(chunk) + 5);
  giveback.Upto(range.chunk(3));  // it was more
  giveback.Await();
  EXPECT_EQ(giveback.given_back(), range.chunk(kChunks - 1));
  EXPECT_EQ(giveback.bytes_left(), 0);
  EXPECT_EQ(range.chunk(1)[-1], 7);
  for (int64_t chunk = 1; chunk < kChunks - 1; ++chunk) {
    EXPECT_EQ(range.chunk(chunk)[0], 0);
    EXPECT_EQ(range.chunk(chunk)[kChunk - 1], 0);
  }
  EXPECT_EQ(range.chunk(kChunks - 1)[0], 7);
}

TEST(Giveback, EndsWhateverIsLeft) {
  for (int i = 0; i < 50; ++i) {
    Range range;
    {
      Giveback giveback(range.chunk(0));
      giveback.Upto(range.chunk(kChunks));
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
