#include "src/record/timestamp.h"

#include <cmath>
#include <cstdint>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"

namespace lethe {
namespace {

constexpr int64_t kFirstMillis = -62'167'219'200'000;  // 0000-01-01T00:00:00Z
constexpr int64_t kLastMillis = 253'402'300'799'999;   // 9999-12-31T23:59:59.999Z

absl::Duration LengthOf(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kMilliseconds:
      return absl::Milliseconds(1);
    case TimeUnit::kMicroseconds:
      return absl::Microseconds(1);
    case TimeUnit::kNanoseconds:
      return absl::Nanoseconds(1);
    case TimeUnit::kSeconds:
    case TimeUnit::kTimestamp:
      return absl::Seconds(1);
    case TimeUnit::kDays:
      return absl::Hours(24);
  }
  return absl::ZeroDuration();
}

// The units that are taken for milliseconds by mistake.
struct OtherUnit {
  TimeUnit unit;
  absl::string_view symbol;
  absl::string_view name;
};
constexpr OtherUnit kOtherUnits[] = {{TimeUnit::kSeconds, "s", "seconds"},
                                     {TimeUnit::kMicroseconds, "us", "microseconds"},
                                     {TimeUnit::kNanoseconds, "ns", "nanoseconds"}};

// Takes parts off the front of a text. After a missing part it stays not AllTaken().
class Parts {
 public:
  explicit Parts(absl::string_view text) : rest_(text) {}

  // Exactly so many digits.
  int Digits(size_t count) {
    if (!Has(count)) return 0;
    int number = 0;
    for (const char c : rest_.substr(0, count)) {
      if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) ok_ = false;
      number = number * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return ok_ ? number : 0;
  }

  // One character out of several, which it returns.
  char OneOf(absl::string_view characters) {
    if (!Has(1) || characters.find(rest_[0]) == characters.npos) {
      ok_ = false;
      return '\0';
    }
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }

  // A point and its digits, if there is a point; else zero.
  absl::Duration Fraction() {
    if (!ok_ || rest_.empty() || rest_[0] != '.') return absl::ZeroDuration();
    rest_.remove_prefix(1);
    if (rest_.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(rest_[0]))) ok_ = false;
    int64_t nanoseconds = 0;
    int64_t unit = 100'000'000;
    while (!rest_.empty() && absl::ascii_isdigit(static_cast<unsigned char>(rest_[0]))) {
      nanoseconds += (rest_[0] - '0') * unit;
      unit /= 10;
      rest_.remove_prefix(1);
    }
    return absl::Nanoseconds(nanoseconds);
  }

  bool AllTaken() const { return ok_ && rest_.empty(); }

 private:
  bool Has(size_t count) {
    if (rest_.size() < count) ok_ = false;
    return ok_;
  }

  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::optional<absl::Time> ParseRfc3339(absl::string_view text) {
  Parts parts(text);
  const int year = parts.Digits(4);
  parts.OneOf("-");
  const int month = parts.Digits(2);
  parts.OneOf("-");
  const int day = parts.Digits(2);
  parts.OneOf("Tt ");
  const int hour = parts.Digits(2);
  parts.OneOf(":");
  const int minute = parts.Digits(2);
  parts.OneOf(":");
  const int second = parts.Digits(2);
  const absl::Duration fraction = parts.Fraction();
  absl::Duration offset;
  const char zone = parts.OneOf("Zz+-");
  if (zone == '+' || zone == '-') {
    const int hours = parts.Digits(2);
    parts.OneOf(":");
    const int minutes = parts.Digits(2);
    if (hours > 23 || minutes > 59) return std::nullopt;
    offset = absl::Minutes((zone == '-' ? -1 : 1) * (hours * 60 + minutes));
  }
  if (!parts.AllTaken() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const absl::CivilDay civil(year, month, day);  // which makes 1 March of 30 February
  if (civil.month() != month || civil.day() != day) return std::nullopt;
  const int64_t days = civil - absl::CivilDay(1970, 1, 1);
  const absl::Time time = absl::FromUnixSeconds(((days * 24 + hour) * 60 + minute) * 60 + second);
  return time + fraction - offset;
}

std::optional<absl::Time> ParseUnixMillis(absl::string_view number) {
  int64_t milliseconds = 0;
  if (!absl::SimpleAtoi(number, &milliseconds)) {
    double value = 0;
    if (!absl::SimpleAtod(number, &value)) return std::nullopt;
    value = std::floor(value);
    if (!(value >= static_cast<double>(kFirstMillis) && value <= static_cast<double>(kLastMillis))) {
      return std::nullopt;
    }
    milliseconds = static_cast<int64_t>(value);
  }
  if (milliseconds < kFirstMillis || milliseconds > kLastMillis) return std::nullopt;
  return absl::FromUnixMillis(milliseconds);
}

std::optional<absl::Time> ParseUnixTime(absl::string_view number, TimeUnit unit) {
  if (unit == TimeUnit::kMilliseconds) return ParseUnixMillis(number);
  int64_t whole = 0;
  double value = 0;
  absl::Duration since;
  if (absl::SimpleAtoi(number, &whole)) {
    since = whole * LengthOf(unit);
  } else if (absl::SimpleAtod(number, &value)) {
    since = value * LengthOf(unit);
  } else {
    return std::nullopt;
  }
  const absl::Time time = absl::UnixEpoch() + since;
  if (time < absl::FromUnixMillis(kFirstMillis) || time > absl::FromUnixMillis(kLastMillis)) {
    return std::nullopt;
  }
  return time;
}

void TimeUnitCheck::AddWrong(int64_t number) {
  ++wrong_;
  example_ = number;
  for (size_t i = 0; i < kUnits; ++i) {
    const absl::Duration since = number * LengthOf(kOtherUnits[i].unit);
    if (since >= absl::Milliseconds(kFirst) && since < absl::Milliseconds(kEnd)) ++fitting_[i];
  }
}

std::optional<size_t> TimeUnitCheck::Likely() const {
  static_assert(std::size(kOtherUnits) == kUnits);
  for (size_t i = 0; i < kUnits; ++i) {
    if (2 * fitting_[i] > times_) return i;
  }
  return std::nullopt;
}

absl::string_view TimeUnitCheck::LikelyUnit() const {
  const auto likely = Likely();
  return likely ? kOtherUnits[*likely].symbol : "";
}

std::string TimeUnitCheck::Text() const {
  const auto likely = Likely();
  return absl::StrCat(
      wrong_, " of ", times_, " are before 2000 or after 2099, such as ", example_, " (",
      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixMillis(example_), absl::UTCTimeZone()), ")",
      likely ? absl::StrCat(", and likely ", kOtherUnits[*likely].name) : "");
}

}  // namespace lethe
