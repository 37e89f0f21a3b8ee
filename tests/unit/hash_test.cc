#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "lethe/event.h"
#include "src/reference/arrays/bit_positions.h"
#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

// XXH3's own known answer: a filter that is stored under one hash must be read under the same.
TEST(HashIdTest, IsXxh3With128Bits) {
  EXPECT_EQ(HashId("", 0), (IdHash{.a = 0x6001c324468d497f, .b = 0x99aa06d3014798d8}));
  EXPECT_EQ(HashId(absl::string_view(), 0), HashId("", 0));
}

TEST(HashIdTest, DependsOnEveryByteAndOnTheSeed) {
  const uint64_t seed = TestSeed();
  for (const size_t size : {1u, 3u, 8u, 16u, 17u, 128u, 129u, 240u, 241u, 5000u}) {
    std::string id(size, '\0');
    const IdHash before = HashId(id, seed);
    EXPECT_EQ(HashId(id, seed), before);
    EXPECT_FALSE(HashId(id, seed + 1) == before);
    EXPECT_FALSE(HashId(id + '\0', seed) == before);
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      id[at] = 1;
      EXPECT_FALSE(HashId(id, seed) == before) << size << " bytes, byte " << at;
      id[at] = 0;
    }
  }
}

// Each of the 128 bits is 1 for half of the ids, and each pair of neighbours over both halves agrees for
// half of them, within a bound for as many looks as these are.
TEST(HashIdTest, BitsAreEvenAndIndependent) {
  const uint64_t seed = TestSeed();
  constexpr uint64_t kIds = 20'000;
  std::vector<int> ones(128);
  std::vector<int> agree(128);
  for (uint64_t i = 0; i < kIds; ++i) {
    const IdHash id = NumberedId(i, seed);
    for (size_t bit = 0; bit < 128; ++bit) {
      const auto at = [&](size_t n) { return ((n % 128 < 64 ? id.a >> n % 64 : id.b >> n % 64) & 1) != 0; };
      ones[bit] += at(bit);
      agree[bit] += at(bit) == at(bit + 1);
    }
  }
  const double bound = 1.25 * kSigmas * std::sqrt(kIds / 4.0);
  for (size_t bit = 0; bit < 128; ++bit) {
    EXPECT_NEAR(ones[bit], kIds / 2.0, bound) << bit;
    EXPECT_NEAR(agree[bit], kIds / 2.0, bound) << bit;
  }
}

// Double hashing with a constant step gives one id in some m nearly all its positions in one place, and so
// a floor of about 1 / m under any false-positive rate: of these ids some 50 would be spread over four
// neighbouring positions. With the moving step it is one in a thousand runs of this test; three in one
// run are less likely than 1e-9.
TEST(BitPositionsTest, IdsWithAShortStepAreSpreadToo) {
  const uint64_t seed = TestSeed();
  constexpr uint64_t kBits = 4096;
  constexpr int kPositions = 16;
  int at_most_four = 0;
  for (uint64_t i = 0; i < 400'000; ++i) {
    BitPositions positions(NumberedId(i, seed), kBits);
    uint64_t last = kBits;
    int distinct = 0;
    for (int j = 0; j < kPositions; ++j) {
      const uint64_t position = positions.Next();
      ASSERT_LT(position, kBits);
      distinct += position != last ? 1 : 0;
      last = position;
    }
    at_most_four += distinct <= 4 ? 1 : 0;
  }
  EXPECT_LE(at_most_four, 2);
}

}  // namespace
}  // namespace lethe
