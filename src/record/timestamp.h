// Times as records write them.
#ifndef LETHE_SRC_RECORD_TIMESTAMP_H_
#define LETHE_SRC_RECORD_TIMESTAMP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/record/field_value.h"

namespace lethe {

// A date-time of RFC 3339, such as 2015-09-12T00:46:58.771Z or 2015-09-12 02:46:58+02:00: `T` or one space,
// letters of either case, any number of fraction digits (cut off at nanoseconds), a leap second (the first of
// the next minute). Some ten times as fast as absl::ParseTime, which also accepts more.
std::optional<absl::Time> ParseRfc3339(absl::string_view text);

// Milliseconds since the Unix epoch, as a JSON number; a fraction is cut off. Only the years 0 to 9999, as in
// RFC 3339, so that arithmetic on times cannot overflow.
std::optional<absl::Time> ParseUnixMillis(absl::string_view number);
// The same of numbers in another unit.
std::optional<absl::Time> ParseUnixTime(absl::string_view number, TimeUnit unit);

// Finds out whether numbers that are taken for Unix milliseconds are of another unit: then they are before
// 2000 or after 2099. Thread-compatible.
class TimeUnitCheck {
 public:
  void Add(int64_t number) {
    ++times_;
    if (number < kFirst || number >= kEnd) AddWrong(number);
  }

  int64_t times() const { return times_; }
  bool MostAreWrong() const { return 2 * wrong_ > times_; }
  // "s", "us" or "ns": the unit in which most of them are of the years 2000 to 2099. Empty: none of these.
  absl::string_view LikelyUnit() const;
  // "100 of 120 are before 2000 or after 2099, such as 1700000000 (1970-01-20 16:13:20 UTC), and likely
  // seconds"
  std::string Text() const;

 private:
  static constexpr int64_t kFirst = 946'684'800'000;  // 2000-01-01T00:00:00Z
  static constexpr int64_t kEnd = 4'102'444'800'000;  // 2100-01-01T00:00:00Z
  static constexpr size_t kUnits = 3;

  void AddWrong(int64_t number);
  std::optional<size_t> Likely() const;

  int64_t times_ = 0;
  int64_t wrong_ = 0;
  int64_t example_ = 0;                       // a wrong one
  std::array<int64_t, kUnits> fitting_ = {};  // of the wrong ones, by unit
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_TIMESTAMP_H_
