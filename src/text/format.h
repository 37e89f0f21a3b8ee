// Quantities as people read them.
#ifndef LETHE_SRC_TEXT_FORMAT_H_
#define LETHE_SRC_TEXT_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace lethe {

// "512 B", "17.3 MiB".
std::string FormatBytes(int64_t bytes);

// As configuration takes it: "64KiB", "2151MiB". Rounded up, by less than a tenth.
std::string BytesSetting(int64_t bytes);

// As configuration takes it, largest unit first: "100ms", "24h", "7d", "1d12h", "1h30m". Whole days are days
// from two on. From a minute up, what is below a second is left out.
std::string DurationText(absl::Duration duration);

// "1,234,567".
std::string FormatCount(int64_t count);

// "1 partition", "12 partitions".
std::string Several(int64_t count, absl::string_view what);

// "5-9, 12": ascending offsets, in texts of at most so many ranges each.
std::vector<std::string> OffsetRanges(absl::Span<const int64_t> offsets, size_t most_in_text);

// "-1234567": what 64 bits may not hold.
std::string Digits(absl::int128 number);

}  // namespace lethe

#endif  // LETHE_SRC_TEXT_FORMAT_H_
