// The quantities that people write in configuration: durations, sizes, numbers.
#ifndef LETHE_SRC_CLI_CONFIG_UNITS_H_
#define LETHE_SRC_CLI_CONFIG_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/text/format.h"  // the way back

namespace lethe {

// Errors are InvalidArgument and say the expected form, without the given text: the caller names
// it, and the place that it stands in.

// Whole numbers with a unit, largest first: 100ms, 24h, 7d, 1h30m. Units are ms, s, m, h and d.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// A whole number of bytes, or one with KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (of 1000).
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);

// A whole decimal number from `least` to `most`. Number is int, int64_t or uint64_t.
template <class Number>
absl::StatusOr<Number> ParseWhole(absl::string_view text, Number least, Number most);

// A share between 0 and 1, both excluded: 1e-6, 0.001, 0.1%.
absl::StatusOr<double> ParseShare(absl::string_view text);

// A number above 0, a second if no other time is named: 20000, 2.5e4, 20k/s, 5M/d. Factors are k, M and G;
// times s, m, h and d.
absl::StatusOr<double> ParseRate(absl::string_view text);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_UNITS_H_
