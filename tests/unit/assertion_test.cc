#include "src/assertion.h"

#include <gtest/gtest.h>

#include "lethe/memory_budget.h"
#include "src/memory/reservation.h"

namespace lethe {
namespace {

TEST(AssertDeathTest, WhatHoldsCostsNothingAndWhatDoesNotEndsTheProcess) {
  LETHE_ASSERT(1 + 1 == 2);
  EXPECT_DEATH(LETHE_ASSERT(1 + 1 == 3), "assertion_test.cc:[0-9]+: 1 \\+ 1 == 3 does not hold");
}

#ifdef LETHE_DEBUG_ASSERTS
TEST(AssertDeathTest, ReservationsGiveBackWhatTheyHave) {
  MemoryBudget budget(1000);
  Reservation reservation(&budget);
  ASSERT_TRUE(reservation.Grow(100));
  EXPECT_DEATH(reservation.Shrink(101), "does not hold");
  reservation.Shrink(100);
}
#endif

// Also where the expensive ones are left out their conditions compile, and are not worked out.
TEST(AssertTest, ExpensiveAssertionsAreForDebugging) {
  int calls = 0;
  const auto condition = [&calls] { return ++calls > 0; };
  LETHE_DEBUG_ASSERT(condition());
#ifdef LETHE_DEBUG_ASSERTS
  EXPECT_EQ(calls, 1);
#else
  EXPECT_EQ(calls, 0);
#endif
}

}  // namespace
}  // namespace lethe
