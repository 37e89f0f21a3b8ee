#include "src/fpp/confidence.h"

#include <algorithm>
#include <boost/math/policies/policy.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

namespace lethe {
namespace {

// From here on the square root of a Poisson count is normal around that of its mean, with variance 1/4, to
// more digits than are shown; series of the gamma function take ever more terms.
constexpr int64_t kLargeCount = 100'000'000;

// Doubles are precise enough, and no argument is out of range: messages about that would be dead code.
namespace policies = boost::math::policies;
using Plain = policies::policy<
    policies::promote_double<false>, policies::domain_error<policies::ignore_error>,
    policies::pole_error<policies::ignore_error>, policies::overflow_error<policies::ignore_error>,
    policies::rounding_error<policies::ignore_error>, policies::evaluation_error<policies::ignore_error>>;

}  // namespace

// A Poisson count is at most (at least) `count` as often as a gamma variable of shape count + 1 (of shape
// `count`) is above (below) the mean.
Interval RateInterval(int64_t count, int64_t trials, double confidence) {
  if (trials <= 0) return {};
  const double tail = (1 - confidence) / 2;
  const auto seen = static_cast<double>(count);
  const auto all = static_cast<double>(trials);
  if (count > kLargeCount) {
    const double root = std::sqrt(seen), half = boost::math::erfc_inv(2 * tail, Plain()) / std::sqrt(2.0);
    return {.low = (root - half) * (root - half) / all,
            .high = std::min(1.0, (root + half) * (root + half) / all)};
  }
  const double low = count == 0 ? 0 : boost::math::gamma_p_inv(seen, tail, Plain());
  return {.low = low / all, .high = std::min(1.0, boost::math::gamma_q_inv(seen + 1, tail, Plain()) / all)};
}

}  // namespace lethe
