#include "src/memory/prefault.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace lethe {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Memory as LineMemory has it: whole chunks, aligned, and huge pages asked for.
class Range {
 public:
  explicit Range(int64_t bytes)
      : bytes_(static_cast<size_t>(bytes + Prefault::kChunkBytes)),
        mapping_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    const auto start = reinterpret_cast<uintptr_t>(mapping_);
    const uintptr_t chunk = Prefault::kChunkBytes;
    data_ = static_cast<char*>(mapping_) + ((start + chunk - 1) / chunk * chunk - start);
    madvise(data_, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  }
  ~Range() { munmap(mapping_, bytes_); }
  char* data() const { return data_; }

 private:
  size_t bytes_;
  void* mapping_;
  char* data_;
};

// Pages of [begin, end), which is in whole pages, that are not there.
int64_t Missing(char* begin, char* end) {
  std::vector<unsigned char> present(static_cast<size_t>(end - begin) / 4096);
  EXPECT_EQ(mincore(begin, static_cast<size_t>(end - begin), present.data()), 0);
  return std::count_if(present.begin(), present.end(), [](unsigned char page) { return (page & 1) == 0; });
}

void Await(const Prefault& prefault, const char* position) {
  while (prefault.present_from() > position) std::this_thread::yield();
}

TEST(Prefault, MakesAllPagesPresent) {
  Range range(17 * kMiB);
  char* const begin = range.data() + 4096;  // within a chunk, at both ends
  char* const end = range.data() + 16 * kMiB + 8192;
  EXPECT_GT(Missing(begin, end), 0);
  Prefault prefault;
  prefault.Fill(begin, end);
  Await(prefault, begin);
  EXPECT_EQ(prefault.present_from(), begin);
  EXPECT_EQ(Missing(begin, end), 0);
}

TEST(Prefault, LeavesWhatIsThere) {
  Range range(8 * kMiB);
  std::memset(range.data(), 7, 4 * kMiB);
  Prefault prefault;
  prefault.Fill(range.data(), range.data() + 8 * kMiB);
  // At work in it at the same time.
  std::memset(range.data() + 6 * kMiB, 9, kMiB);
  Await(prefault, range.data());
  EXPECT_EQ(range.data()[kMiB], 7);
  EXPECT_EQ(range.data()[5 * kMiB], 0);
  EXPECT_EQ(range.data()[6 * kMiB], 9);
}

TEST(Prefault, EndsWhenItIsNoLongerWanted) {
  Range range(256 * kMiB);
  for (int i = 0; i < 20; ++i) {
    Prefault prefault;
    prefault.Fill(range.data(), range.data() + 256 * kMiB);
  }
}

TEST(Prefault, GoesOnWithTheNextRange) {
  Range range(256 * kMiB);
  Prefault prefault;
  for (int i = 0; i < 20; ++i) {
    prefault.Fill(range.data(), range.data() + 256 * kMiB);
    char* const begin = range.data() + i * 2 * kMiB;
    prefault.Fill(begin, begin + 2 * kMiB);
    Await(prefault, begin);
    EXPECT_EQ(Missing(begin, begin + 2 * kMiB), 0);
  }
  // The rest of the former range is left alone once Fill has returned: it may be unmapped.
  prefault.Fill(range.data(), range.data());
  EXPECT_EQ(prefault.present_from(), range.data());
}

// In KiB, in the mapping of `at`.
int64_t HugeKiB(const char* at) {
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    int64_t kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      is_here = begin <= reinterpret_cast<uintptr_t>(at) && reinterpret_cast<uintptr_t>(at) < end;
    } else if (is_here && std::sscanf(line.c_str(), "AnonHugePages: %ld", &kib) == 1) {
      return kib;
    }
  }
  return 0;
}

TEST(Prefault, GathersSmallPages) {
  Range range(16 * kMiB);
  char* const data = range.data();
  madvise(data, 16 * kMiB, MADV_NOHUGEPAGE);
  for (int64_t at = 0; at < 8 * kMiB; at += 4096) data[at] = static_cast<char>(at / 4096 % 101);
  EXPECT_EQ(HugeKiB(data), 0);
  madvise(data, 16 * kMiB, MADV_HUGEPAGE);
  Prefault prefault;
  prefault.Fill(data + 8 * kMiB, data + 8 * kMiB);
  prefault.Gather(data, data + 8 * kMiB);
  const bool may_gather = madvise(data + 8 * kMiB, 2 * kMiB, 25 /* MADV_COLLAPSE */) == 0;
  // At work in it at the same time.
  for (int i = 0; may_gather && HugeKiB(data) < 10 * 1024 && i < 100'000; ++i) ++data[7 * kMiB];
  data[7 * kMiB] = static_cast<char>(7 * kMiB / 4096 % 101);
  EXPECT_TRUE(!may_gather || HugeKiB(data) == 10 * 1024);  // not all systems can
  for (int64_t at = 0; at < 8 * kMiB; at += 4096) ASSERT_EQ(data[at], static_cast<char>(at / 4096 % 101));
}

}  // namespace
}  // namespace lethe
