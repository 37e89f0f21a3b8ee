#include "src/filter/giveback.h"

#include <sys/mman.h>

#include <cstring>

#include "gtest/gtest.h"

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

}  // namespace
}  // namespace lethe
