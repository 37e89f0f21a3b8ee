#include "src/cli/terminal/last_words.h"

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

TEST(LastWords, SayThatThereIsNoMemory) {
  EXPECT_EXIT(
      {
        EndWithLastWords();
        ThrowPastAll(std::bad_alloc());
      },
      testing::ExitedWithCode(kExitFailed), "^lethe: the system has no memory left .* will be read again\n$");
}

TEST(LastWords, AreNotSaidOfAnythingElse) {
  EXPECT_EXIT(
      {
        EndWithLastWords();
        ThrowPastAll(std::logic_error("of another kind"));
      },
      testing::KilledBySignal(SIGABRT), "of another kind");
}

}  // namespace
}  // namespace lethe
