// JSON pointers (RFC 6901).
#ifndef LETHE_SRC_RECORD_POINTER_H_
#define LETHE_SRC_RECORD_POINTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lethe {

struct PointerStep {
  std::string name;
  int64_t index = -1;  // of the element that the name means in an array; -1: of none
};

// The pointer is well-formed and not empty.
std::vector<PointerStep> StepsOf(absl::string_view pointer);

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_POINTER_H_
