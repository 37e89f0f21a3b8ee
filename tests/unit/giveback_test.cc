#include "src/filter/giveback.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

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

}  // namespace
}  // namespace lethe
