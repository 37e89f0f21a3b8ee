#include "src/cli/service/periodic.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lethe {
namespace {

TEST(Periodic, BeginsAtOnceAndEndsSo) {
  std::atomic<int> calls = 0;
  {
    const Periodic hourly(absl::Hours(1), [&] { ++calls; });
    while (calls == 0) std::this_thread::yield();
  }
  EXPECT_EQ(calls, 1);
}

TEST(Periodic, GoesOn) {
  std::atomic<int> calls = 0;
  const Periodic often(absl::Milliseconds(1), [&] { ++calls; });
  while (calls < 3) std::this_thread::yield();
}

}  // namespace
}  // namespace lethe
