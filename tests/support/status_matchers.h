// Assertions about absl::Status and absl::StatusOr: a failure says which status it was. Abseil of Debian 12
// has none.
#ifndef LETHE_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define LETHE_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#define EXPECT_OK(expression) EXPECT_PRED_FORMAT1(::lethe::CheckOk, expression)
#define ASSERT_OK(expression) ASSERT_PRED_FORMAT1(::lethe::CheckOk, expression)

namespace absl {

// Where this is not the type of the standard library GoogleTest shows it as a list of characters.
inline void PrintTo(string_view text, std::ostream* out) {
  *out << testing::PrintToString(std::string(text));
}

}  // namespace absl

namespace lethe {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }

template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// What the macros above use.
template <typename T>
testing::AssertionResult CheckOk(const char* expression, const T& value) {
  const absl::Status& status = StatusOf(value);
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << expression << " is " << status;
}

// The status has this code; and a message that matches, if a matcher of strings is given.
MATCHER_P(StatusIs, code, "") { return StatusOf(arg).code() == code; }
MATCHER_P2(StatusIs, code, message,
           testing::PrintToString(code) + ", and its message " +
               testing::DescribeMatcher<std::string>(message, negation)) {
  return StatusOf(arg).code() == code &&
         testing::ExplainMatchResult(message, std::string(StatusOf(arg).message()), result_listener);
}

// An absl::StatusOr without an error, whose value matches.
MATCHER_P(IsOkAndHolds, value, "") {
  if (!arg.ok()) {
    *result_listener << "which is " << arg.status();
    return false;
  }
  *result_listener << "which holds " << testing::PrintToString(*arg);
  return testing::ExplainMatchResult(value, *arg, result_listener);
}

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_STATUS_MATCHERS_H_
