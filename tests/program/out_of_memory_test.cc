#include "src/cli/terminal/out_of_memory.h"

#include <csignal>
#include <new>
#include <stdexcept>

#include "gtest/gtest.h"
#include "src/cli/terminal/exit_code.h"

namespace lethe {
namespace {

template <typename Error>
void ThrowPastAll(const Error& error) noexcept {
  const auto deeper = [&] { throw error; };
  deeper();
}

TEST(OutOfMemory, EndsWithAMessage) {
  EXPECT_EXIT(
      {
        ExitWhenOutOfMemory();
        ThrowPastAll(std::bad_alloc());
      },
      testing::ExitedWithCode(kExitFailed),
      "^lethe: the system has no memory left .* replays uncommitted records\n$");
}

TEST(OutOfMemory, OtherExceptionsEndAsBefore) {
  EXPECT_EXIT(
      {
        ExitWhenOutOfMemory();
        ThrowPastAll(std::logic_error("of another kind"));
      },
      testing::KilledBySignal(SIGABRT), "of another kind");
}

}  // namespace
}  // namespace lethe
