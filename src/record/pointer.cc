#include "src/record/pointer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace lethe {
namespace {

// RFC 6901: no sign, no leading zero.
int64_t ArrayIndex(absl::string_view step) {
  int64_t index = -1;
  if (step.empty() || !std::all_of(step.begin(), step.end(), absl::ascii_isdigit)) return -1;
  if (step.size() > 1 && step[0] == '0') return -1;
  return absl::SimpleAtoi(step, &index) ? index : -1;
}

}  // namespace

std::vector<PointerStep> StepsOf(absl::string_view pointer) {
  std::vector<PointerStep> steps;
  for (const absl::string_view step : absl::StrSplit(pointer.substr(1), '/')) {
    std::string name = absl::StrReplaceAll(step, {{"~1", "/"}, {"~0", "~"}});
    const int64_t index = ArrayIndex(name);
    steps.push_back({std::move(name), index});
  }
  return steps;
}

}  // namespace lethe
