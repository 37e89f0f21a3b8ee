#include "src/memory/background_task.h"

#include <sched.h>

#include <algorithm>

#include "gtest/gtest.h"

namespace lethe {
namespace {

cpu_set_t Allowed() {
  cpu_set_t allowed;
  EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  return allowed;
}

TEST(BackgroundTask, RunsOnTheOtherProcessors) {
  const cpu_set_t owners = Allowed();
  cpu_set_t others;
  std::thread thread = StartBackgroundTask([&] { others = Allowed(); });
  ASSERT_TRUE(thread.joinable());
  thread.join();
  EXPECT_EQ(CPU_COUNT(&others), std::max(1, CPU_COUNT(&owners) - 1));
  cpu_set_t common;
  CPU_AND(&common, &owners, &others);
  EXPECT_TRUE(CPU_EQUAL(&common, &others)) << "none that the owner may not use";
  const cpu_set_t after = Allowed();
  EXPECT_TRUE(CPU_EQUAL(&owners, &after));
}

TEST(BackgroundTask, TakesTheOnlyProcessorThereIs) {
  const cpu_set_t before = Allowed();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  cpu_set_t of_thread;
  StartBackgroundTask([&] { of_thread = Allowed(); }).join();
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_TRUE(CPU_EQUAL(&of_thread, &one));
}

}  // namespace
}  // namespace lethe
