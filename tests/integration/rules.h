// What the tests of the rules share.
#ifndef LETHE_TESTS_INTEGRATION_RULES_H_
#define LETHE_TESTS_INTEGRATION_RULES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/flow.h"
#include "tests/support/retrying_clients.h"

namespace lethe::test {

inline FlowOptions Options(int partitions = 1) { return {LETHE_PROGRAM, partitions, {}, {}}; }

// A field of the story that a commit carries, such as "r".
inline int64_t MetadataField(const CommittedOffset& committed, const std::string& name) {
  int64_t value = -1;
  for (absl::string_view word : absl::StrSplit(committed.metadata, ' ')) {
    if (absl::ConsumePrefix(&word, name + "=") && absl::SimpleAtoi(word, &value)) return value;
  }
  return -1;
}

inline testing::AssertionResult IsRefused(const Finished& finished, const std::string& remedy) {
  if (finished.exit_code == 1 && absl::StrContains(finished.err, remedy)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "ended with " << finished.exit_code << ", no \"" << remedy
                                     << "\" in\n"
                                     << finished.err;
}

// The stream goes on until the condition is met.
inline testing::AssertionResult SendUntil(Flow& flow, RetryingClients& clients,
                                          const std::function<bool()>& met) {
  const absl::Time deadline = SteadyNow() + absl::Minutes(1);
  while (!met()) {
    if (SteadyNow() >= deadline) return testing::AssertionFailure() << "not within a minute of the stream";
    flow.Send(clients.Take(300));
    absl::SleepFor(absl::Milliseconds(20));  // or the sender takes the processor from those under test
  }
  return testing::AssertionSuccess();
}

}  // namespace lethe::test

#endif  // LETHE_TESTS_INTEGRATION_RULES_H_
