#include "src/text/host.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lethe {

bool IsLoopback(absl::string_view host) {
  if (absl::ConsumePrefix(&host, "[") && !absl::ConsumeSuffix(&host, "]")) return false;
  if (absl::EqualsIgnoreCase(host, "localhost") || host == "::1") return true;
  const std::vector<absl::string_view> parts = absl::StrSplit(host, '.');
  const auto is_byte = [](absl::string_view part) {
    int number = 0;
    return absl::c_all_of(part, absl::ascii_isdigit) && absl::SimpleAtoi(part, &number) && number <= 255;
  };
  return parts.size() == 4 && parts.front() == "127" && absl::c_all_of(parts, is_byte);
}

}  // namespace lethe
