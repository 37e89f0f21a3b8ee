#include "src/cli/config/units.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lethe {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

struct Unit {
  absl::string_view name;
  int64_t factor;
};

// In milliseconds, largest first.
constexpr Unit kDurationUnits[] = {
    {"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};
constexpr Unit kByteUnits[] = {
    {"KiB", int64_t{1} << 10},
    {"MiB", int64_t{1} << 20},
    {"GiB", int64_t{1} << 30},
    {"TiB", int64_t{1} << 40},
    {"kB", 1'000},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"B", 1},
};

// Takes the leading characters for which `belongs` is true off `text`.
template <class Belongs>
absl::string_view TakeWhile(absl::string_view& text, Belongs belongs) {
  size_t size = 0;
  while (size < text.size() && belongs(static_cast<unsigned char>(text[size]))) ++size;
  const absl::string_view taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
}

bool IsDigits(absl::string_view text) {
  return !TakeWhile(text, absl::ascii_isdigit).empty() && text.empty();
}

absl::Status Expected(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", what));
}

// Short enough to repeat in a suggestion.
bool IsShort(absl::string_view text) { return text.size() <= 9; }

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  constexpr absl::string_view kForm = "a duration such as 100ms, 24h, 7d or 1h30m";
  if (IsDigits(text) && IsShort(text)) {
    return Expected(
        absl::StrCat("a duration with a unit (ms, s, m, h, d): say ", text, "h if hours are meant"));
  }
  int64_t total_ms = 0;
  const Unit* next = std::begin(kDurationUnits);
  absl::string_view rest = text;
  do {
    const absl::string_view digits = TakeWhile(rest, absl::ascii_isdigit);
    const absl::string_view name = TakeWhile(rest, absl::ascii_isalpha);
    while (next != std::end(kDurationUnits) && next->name != name) ++next;
    if (digits.empty() || next == std::end(kDurationUnits)) return Expected(kForm);
    int64_t count = 0;
    if (!absl::SimpleAtoi(digits, &count) || count > (kMost - total_ms) / next->factor) {
      return Expected("a duration of less than 292 million years");
    }
    total_ms += count * next->factor;
    ++next;
  } while (!rest.empty());
  return absl::Milliseconds(total_ms);
}

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  absl::string_view rest = text;
  const absl::string_view digits = TakeWhile(rest, absl::ascii_isdigit);
  if (digits.empty()) return Expected("a size such as 512MiB, 1GiB, 2GB, or a number of bytes");
  int64_t factor = rest.empty() ? 1 : 0;
  for (const Unit& unit : kByteUnits) {
    if (rest == unit.name) factor = unit.factor;
  }
  if (factor == 0) {
    // 512mib and 512M are near misses whose meaning is plain, or nearly so.
    for (const Unit& unit : kByteUnits) {
      if (IsShort(digits) && (absl::EqualsIgnoreCase(rest, unit.name) ||
                              absl::EqualsIgnoreCase(absl::StrCat(rest, "iB"), unit.name))) {
        return Expected(absl::StrCat("a size such as ", digits, unit.name));
      }
    }
    return Expected("a size such as 512MiB, 1GiB, 2GB, or a number of bytes");
  }
  int64_t count = 0;
  if (!absl::SimpleAtoi(digits, &count) || count > kMost / factor) {
    return Expected("a size of less than 8 EiB");
  }
  return count * factor;
}

template <class Number>
absl::StatusOr<Number> ParseWhole(absl::string_view text, Number least, Number most) {
  Number number = 0;
  // SimpleAtoi alone would also take spaces and a plus sign.
  absl::string_view digits = text;
  if (!digits.empty() && digits[0] == '-') digits.remove_prefix(1);
  if (!IsDigits(digits) || !absl::SimpleAtoi(text, &number) || number < least || number > most) {
    return Expected(most == std::numeric_limits<Number>::max()
                        ? absl::StrCat("a whole number of at least ", least)
                        : absl::StrCat("a whole number from ", least, " to ", most));
  }
  return number;
}

template absl::StatusOr<int> ParseWhole(absl::string_view, int, int);
template absl::StatusOr<int64_t> ParseWhole(absl::string_view, int64_t, int64_t);
template absl::StatusOr<uint64_t> ParseWhole(absl::string_view, uint64_t, uint64_t);

absl::StatusOr<double> ParseShare(absl::string_view text) {
  const double whole = absl::ConsumeSuffix(&text, "%") ? 100 : 1;
  double share = 0;
  if (!absl::SimpleAtod(text, &share) || !(share > 0 && share < whole)) {
    return Expected("a number between 0 and 1, such as 1e-6 or 0.1%");
  }
  return share / whole;
}

absl::StatusOr<double> ParseRate(absl::string_view text) {
  constexpr absl::string_view kForm = "a number above 0, such as 20000, 20k/s or 5M/d";
  absl::string_view number = text;
  double factor = 1;
  for (const Unit& per : kDurationUnits) {
    if (per.name != "ms" && absl::ConsumeSuffix(&number, absl::StrCat("/", per.name))) {
      factor = 1000 / static_cast<double>(per.factor);
      break;
    }
  }
  for (const auto& [suffix, times] : {std::pair("k", 1e3), {"M", 1e6}, {"G", 1e9}}) {
    if (absl::ConsumeSuffix(&number, suffix)) {
      factor *= times;
      break;
    }
  }
  double rate = 0;
  if (!absl::SimpleAtod(number, &rate) || !(rate > 0) || std::isinf(rate)) return Expected(kForm);
  return rate * factor;
}

}  // namespace lethe
