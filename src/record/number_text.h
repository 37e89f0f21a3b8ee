// Numbers as JSON writes them.
#ifndef LETHE_SRC_RECORD_NUMBER_TEXT_H_
#define LETHE_SRC_RECORD_NUMBER_TEXT_H_

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>

#include "src/record/field_value.h"

namespace lethe {

// The value of an integer, or the shortest text of a float; kOther if that is not finite. It views `digits`.
template <class Number>
FieldValue NumberValue(Number number, std::array<char, 32>& digits) {
  if constexpr (std::floating_point<Number>) {
    if (!std::isfinite(number)) return {FieldValue::Kind::kOther, false, {}};
    if (number == 0) number = 0;  // not -0
  }
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {FieldValue::Kind::kNumber, false, {digits.data(), static_cast<size_t>(end - digits.data())}};
}

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_NUMBER_TEXT_H_
