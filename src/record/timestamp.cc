#include "src/record/timestamp.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/time/civil_time.h"

namespace lethe {
namespace {

constexpr int64_t kFirstMillis = -62'167'219'200'000;  // 0000-01-01T00:00:00Z
constexpr int64_t kLastMillis = 253'402'300'799'999;   // 9999-12-31T23:59:59.999Z

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

std::optional<absl::Time> ParseUnixTime(absl::string_view integer, TimeUnit unit) {
  if (unit == TimeUnit::kMilliseconds) return ParseUnixMillis(integer);
  int64_t number = 0;
  if (!absl::SimpleAtoi(integer, &number)) return std::nullopt;
  absl::Time time;
  switch (unit) {
    case TimeUnit::kMilliseconds:
    case TimeUnit::kMicroseconds:
      time = absl::FromUnixMicros(number);
      break;
    case TimeUnit::kNanoseconds:
      time = absl::FromUnixNanos(number);
      break;
    case TimeUnit::kSeconds:
    case TimeUnit::kTimestamp:
      time = absl::FromUnixSeconds(number);
      break;
    case TimeUnit::kDays:
      time = absl::UnixEpoch() + number * absl::Hours(24);
      break;
  }
  if (time < absl::FromUnixMillis(kFirstMillis) || time > absl::FromUnixMillis(kLastMillis)) {
    return std::nullopt;
  }
  return time;
}

}  // namespace lethe
