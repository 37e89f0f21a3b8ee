#include "src/fpp/confidence.h"

#include <math.h>  // lgamma_r() of POSIX

#include <algorithm>
#include <cmath>

namespace lethe {
namespace {

double PoissonTerm(double count, double mean) {
  int sign;  // std::lgamma would write it to a global, from every thread
  return std::exp(count * std::log(mean) - mean - ::lgamma_r(count + 1, &sign));
}

// P(X <= count), for a mean above count: the terms fall from `count` down.
double AtMost(double count, double mean) {
  double term = PoissonTerm(count, mean);
  double sum = term;
  for (double k = count; k > 0 && term > 1e-17 * sum; --k) {
    term *= k / mean;
    sum += term;
  }
  return sum;
}

// P(X >= count), for a mean below count: the terms fall from `count` up.
double AtLeast(double count, double mean) {
  double term = PoissonTerm(count, mean);
  double sum = term;
  for (double k = count + 1; term > 1e-17 * sum; ++k) {
    term *= mean / k;
    sum += term;
  }
  return sum;
}

// From here on the square root of a Poisson count is normal around that of its mean, with variance 1/4, to
// more digits than are shown; the sums would have as many terms as the count has standard deviations.
constexpr int64_t kLargeCount = 100'000'000;

// Where `above(mean)` changes from false to true.
template <typename Above>
double Bisect(double low, double high, Above above) {
  for (int i = 0; i < 100 && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (above(middle) ? high : low) = middle;
  }
  return (low + high) / 2;
}

// The standard deviations beyond which a normal variable is with this probability.
double NormalQuantile(double tail) {
  return Bisect(0, 40, [&](double x) { return std::erfc(x / std::sqrt(2.0)) / 2 < tail; });
}

}  // namespace

Interval RateInterval(int64_t count, int64_t trials, double confidence) {
  if (trials <= 0) return {};
  const double tail = (1 - confidence) / 2;
  const auto seen = static_cast<double>(count);
  const auto all = static_cast<double>(trials);
  if (count > kLargeCount) {
    const double root = std::sqrt(seen), half = NormalQuantile(tail) / 2;
    return {.low = (root - half) * (root - half) / all,
            .high = std::min(1.0, (root + half) * (root + half) / all)};
  }
  // Beyond ten standard deviations there is less than any tail that is asked for.
  const double far = 20 + 10 * std::sqrt(seen);
  const double high = Bisect(seen, seen + far, [&](double mean) { return AtMost(seen, mean) < tail; });
  const double low =
      count == 0 ? 0 : Bisect(0, seen, [&](double mean) { return AtLeast(seen, mean) > tail; });
  return {.low = low / all, .high = std::min(1.0, high / all)};
}

}  // namespace lethe
