// What a filter does while its pages come and go in other threads, faster or slower than its ids.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "src/filter/line_memory.h"
#include "src/reference/sliced/sliced_fbf.h"
#include "src/reference/sliced/sliced_model.h"

namespace {

const std::thread::id test_thread = std::this_thread::get_id();
// How long another thread takes to give pages back, as if it had no processor. It is not what a test waits
// for, but the fault itself.
std::atomic<std::chrono::milliseconds> slowness{};
// Whether they make none present.
std::atomic<bool> held = false;
// What they have made present, and the last that did.
std::atomic<int64_t> populated_bytes{0};
std::atomic<pid_t> populating{0};

}  // namespace

extern "C" int madvise(void* address, size_t size, int advice) noexcept {
  const bool beside = std::this_thread::get_id() != test_thread;
  if (beside && advice == MADV_DONTNEED) std::this_thread::sleep_for(slowness.load());
  if (beside && advice == MADV_POPULATE_WRITE) held.wait(true);
  const auto result = static_cast<int>(syscall(SYS_madvise, address, size, advice));
  if (beside && advice == MADV_POPULATE_WRITE) {
    populating = static_cast<pid_t>(syscall(SYS_gettid));
    populated_bytes += static_cast<int64_t>(size);
    populated_bytes.notify_one();
  }
  return result;
}

namespace lethe {
namespace {

constexpr int64_t kHourMs = 3'600'000;
constexpr double kTarget = 1e-4;

bool Sleeps(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number;
  std::string name;
  char state = 0;
  stat >> number >> name >> state;
  return state == 'S';
}

// A filter of an hour, and ids that are new.
class FilterPages : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Filter>> made =
        NewSlicedFbf({.horizon = absl::Hours(1), .target_fpp = kTarget, .memory = &memory_});
    ASSERT_TRUE(made.ok()) << made.status();
    filter_ = *std::move(made);
  }

  // One every so often.
  void Insert(int64_t ids, int64_t step_ms) {
    for (int64_t i = 0; i < ids; ++i, time_ += step_ms) {
      const TimedId id = {{++number_ * 0x9e3779b97f4a7c15, number_ * 0xbf58476d1ce4e5b9}, time_};
      Verdict verdict;
      filter_->TestAndInsert({&id, 1}, {&verdict, 1});
    }
  }

  MemoryBudget memory_{int64_t{1} << 30};
  std::unique_ptr<Filter> filter_;

 private:
  uint64_t number_ = 0;
  int64_t time_ = 0;
};

TEST(LinePages, AreAwaitedForAMomentAtMost) {
  constexpr int64_t kBytes = 4 * LineMemory::kChunkBytes;
  constexpr auto kMoment = std::chrono::microseconds(100);
  MemoryBudget budget(kBytes);
  absl::StatusOr<LineMemory> memory = LineMemory::Create(&budget, kBytes, kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  held = true;
  memory->Prepare(0);
  const auto start = std::chrono::steady_clock::now();
  memory->Await(0, std::chrono::nanoseconds(kMoment).count());
  EXPECT_GE(std::chrono::steady_clock::now() - start, kMoment);
  EXPECT_EQ(memory->present_from(), kBytes);
  memory->Await(kBytes, int64_t{1} << 60);  // for what is there, not at all
  held = false;
  held.notify_all();
  memory->Await(0, int64_t{1} << 60);
  EXPECT_EQ(memory->present_from(), 0);
}

// An unfold waits for pages, and for nothing else: once they are there it goes on at once, also where it
// copies to those that were there before.
TEST_F(FilterPages, AnUnfoldGoesOnOnceItsPagesAreThere) {
  constexpr int64_t kIds = 64;  // between two looks
  const double cap = SlicedCap(SlicedShapeFor(kTarget), kTarget);
  for (int64_t lines = 0; lines < 100'000;) {
    populated_bytes = 0;
    for (const int64_t before = memory_.used_bytes(); memory_.used_bytes() == before;) Insert(1, 1);
    ASSERT_EQ(filter_->Status().pass, FilterPass::kUnfold);
    lines = filter_->Status().lines;
    const int64_t new_bytes = lines * 64;
    if (new_bytes < 2 << 20) continue;
    for (int64_t now = populated_bytes; now < new_bytes; now = populated_bytes) populated_bytes.wait(now);
    while (!Sleeps(populating)) std::this_thread::yield();  // then it has also said so to the filter
    int64_t ids = 0;
    for (; filter_->Status().pass == FilterPass::kUnfold; ids += kIds) Insert(kIds, 1);
    const double ids_in_interval = static_cast<double>(lines) * cap;
    EXPECT_LT(static_cast<double>(ids), ids_in_interval / 20) << lines << " lines";
  }
}

// A fold waits for its pages to be given back, but not for ever: stream time may be faster than they are.
TEST_F(FilterPages, AFoldDoesNotWaitLong) {
  Insert(2 * kHourMs, 1);
  const int64_t most = memory_.used_bytes();
  ASSERT_GT(most, 8 << 20);
  slowness = std::chrono::milliseconds(100);
  Insert(4 * kHourMs / 100, 100);
  slowness = std::chrono::milliseconds(0);
  EXPECT_LE(memory_.used_bytes(), most / 32);
}

}  // namespace
}  // namespace lethe
