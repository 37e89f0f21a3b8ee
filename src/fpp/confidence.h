// What a count of rare events says of their rate.
#ifndef LETHE_SRC_FPP_CONFIDENCE_H_
#define LETHE_SRC_FPP_CONFIDENCE_H_

#include <cstdint>

namespace lethe {

struct Interval {
  double low = 0;
  double high = 1;
};

// The interval that holds the rate of an event that was seen `count` times in `trials`, with at least the
// given confidence, half of the rest on either side; [0, 1] without trials. Exact for a Poisson count
// (Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28, 1936). A binomial count varies
// less, so for one it is conservative: for rare events it is Clopper and Pearson's interval, which a normal
// approximation misses by far when only a few were seen.
Interval RateInterval(int64_t count, int64_t trials, double confidence);

}  // namespace lethe

#endif  // LETHE_SRC_FPP_CONFIDENCE_H_
