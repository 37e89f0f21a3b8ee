#include "src/text/format.h"

#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lethe {

std::string FormatBytes(int64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double size = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (size < 1024) break;
    size /= 1024;
    unit = larger;
  }
  return absl::StrFormat("%.1f %s", size, unit);
}

std::string BytesSetting(int64_t bytes) {
  for (const auto& [shift, unit] : {std::pair(40, "TiB"), {30, "GiB"}, {20, "MiB"}, {10, "KiB"}}) {
    const int64_t factor = int64_t{1} << shift;
    const bool is_whole = bytes > 0 && bytes % factor == 0;
    if (is_whole || bytes >= 10 * factor) return absl::StrCat((bytes - 1) / factor + 1, unit);
  }
  return absl::StrCat(bytes);
}

std::string DurationText(absl::Duration duration) {
  if (duration < absl::ZeroDuration()) return absl::StrCat("-", DurationText(-duration));
  if (duration == absl::InfiniteDuration()) return "inf";
  const absl::Duration shown =
      duration < absl::Minutes(1) ? duration : absl::Trunc(duration, absl::Seconds(1));
  // Configuration knows nothing below a millisecond, and a day is called 24h.
  if (shown < absl::Milliseconds(1) || shown == absl::Hours(24)) return absl::FormatDuration(shown);
  int64_t ms = absl::ToInt64Milliseconds(shown);
  std::string text;
  const auto take = [&](int64_t unit_ms, const char* unit) {
    if (ms >= unit_ms) absl::StrAppend(&text, ms / unit_ms, unit);
    ms %= unit_ms;
  };
  take(86'400'000, "d");
  take(3'600'000, "h");
  take(60'000, "m");
  take(1000, "s");
  take(1, "ms");
  return text;
}

std::string FormatCount(int64_t count) {
  const std::string digits = absl::StrCat(count < 0 ? -count : count);
  std::string text = count < 0 ? "-" : "";
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Several(int64_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

std::vector<std::string> OffsetRanges(absl::Span<const int64_t> offsets, size_t most_in_text) {
  std::vector<std::string> texts;
  size_t ranges = 0;
  for (size_t begin = 0, end = 0; begin < offsets.size(); begin = end, ++ranges) {
    for (end = begin + 1; end < offsets.size() && offsets[end] == offsets[end - 1] + 1;) ++end;
    if (ranges % most_in_text == 0) texts.emplace_back();
    absl::StrAppend(&texts.back(), texts.back().empty() ? "" : ", ", offsets[begin]);
    if (end > begin + 1) absl::StrAppend(&texts.back(), "-", offsets[end - 1]);
  }
  return texts;
}

std::string Digits(absl::int128 number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

}  // namespace lethe
