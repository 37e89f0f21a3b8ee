// Seeds of random tests: printed, and taken from the environment to run a failure again.
#ifndef LETHE_TESTS_SUPPORT_SEED_H_
#define LETHE_TESTS_SUPPORT_SEED_H_

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace lethe {

// LETHE_SEED if that is set, else a random one; either is printed.
inline uint64_t TestSeed() {
  const char* const given = std::getenv("LETHE_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device()();
  std::cout << "LETHE_SEED=" << seed << std::endl;
  return seed;
}

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_SEED_H_
