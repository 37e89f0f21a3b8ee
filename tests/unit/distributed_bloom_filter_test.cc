#include "lethe/distributed_bloom_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr uint64_t kHere = 0x1234;
constexpr uint64_t kThere = 0x9876;

std::vector<uint64_t> Elements(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> elements(static_cast<size_t>(count));
  for (uint64_t& element : elements) element = random();
  return elements;
}

TEST(DistributedBloomFilterTest, ContainsWhatWasInsertedAndLittleElse) {
  // k, bits per element, and equation 1 of the paper.
  for (const auto& [hashes, bits] : {std::pair{1, 2}, {4, 8}, {5, 8}, {10, 16}}) {
    const int n = 20'000;
    DistributedBloomFilter filter(kHere, kThere, 0, static_cast<uint64_t>(n * bits), hashes);
    for (const uint64_t element : Elements(n, 1)) filter.Insert(element);
    for (const uint64_t element : Elements(n, 1)) ASSERT_TRUE(filter.Contains(element));
    const int probes = 200'000;
    int contained = 0;
    for (const uint64_t element : Elements(probes, 2)) contained += filter.Contains(element) ? 1 : 0;
    const double expected = std::pow(1 - std::exp(-1.0 * hashes / bits), hashes);
    // Five deviations, of the probes and of how full the filter is.
    EXPECT_NEAR(contained, probes * expected, 5 * std::sqrt(probes * expected) + 0.03 * probes * expected)
        << hashes << " hashes, " << bits << " bits";
  }
}

// The peers' ids are XOR-ed, so both sides make the same filter.
TEST(DistributedBloomFilterTest, BothPeersMakeTheSameMappingAndEachPairAnother) {
  DistributedBloomFilter here(kHere, kThere, 3, 1000, 4), there(kThere, kHere, 3, 1000, 4);
  DistributedBloomFilter others(kHere, kThere + 1, 3, 1000, 4), later(kHere, kThere, 4, 1000, 4);
  for (DistributedBloomFilter* filter : {&here, &there, &others, &later}) filter->Insert(77);
  EXPECT_EQ(here.bytes(), there.bytes());
  EXPECT_NE(here.bytes(), others.bytes());
  EXPECT_NE(here.bytes(), later.bytes());
}

// How many of so many missing elements are hidden in each of five rounds.
int HiddenInEachRound(uint64_t bits, uint64_t mask) {
  int hidden = 0;
  const std::vector<uint64_t> set = Elements(1000, 3);
  for (const uint64_t element : Elements(4096, 4)) {
    bool in_all = true;
    for (uint64_t round = 0; round < 5 && in_all; ++round) {
      DistributedBloomFilter filter(kHere, kThere, round, bits, 1);
      for (const uint64_t inserted : set) filter.Insert(inserted & mask);
      in_all = filter.Contains(element & mask);
    }
    hidden += in_all ? 1 : 0;
  }
  return hidden;
}

// At a false-positive rate of a half a round hides every second element, and five rounds one in 32.
TEST(DistributedBloomFilterTest, ANewRoundShowsWhatTheLastOneHid) {
  const double hidden = HiddenInEachRound(1443, ~uint64_t{0});
  EXPECT_NEAR(hidden / 4096, 1.0 / 32, 5 * std::sqrt(1.0 / 32 / 4096));
}

// Modulo a power of two is a mask, and a mask commutes with XOR: two elements share their bit in every round
// or in none. The class rounds m up to an odd number; this shows on bare arithmetic why.
TEST(DistributedBloomFilterTest, APowerOfTwoWouldHideTheSameElementsInEveryRound) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t x = random(), y = random(), seed = random();
    constexpr uint64_t kPower = 1 << 4;
    EXPECT_EQ(x % kPower == y % kPower, (x ^ seed) % kPower == (y ^ seed) % kPower);
  }
  EXPECT_EQ(DistributedBloomFilter(kHere, kThere, 0, 1024, 1).bits() % 2, 1u);
}

TEST(DistributedBloomFilterTest, TakesOnlyBytesOfItsSize) {
  DistributedBloomFilter filter(kHere, kThere, 0, 100, 2);
  EXPECT_THAT(filter.SetBytes("short"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(filter.SetBytes(std::string(filter.bytes().size(), '\xff')));
  EXPECT_TRUE(filter.Contains(1));
}

}  // namespace
}  // namespace lethe
