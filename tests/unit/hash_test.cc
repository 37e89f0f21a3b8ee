#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "lethe/event.h"
#include "src/published/bit_positions.h"
#include "src/text/fixed_hash.h"
#include "src/text/sip_hash.h"
#include "tests/support/chosen_pairs.h"
#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

// The first bytes 0, 1, 2 ... under the key 0, 1, ... 15.
constexpr HashKey kKnownKey = {.low = 0x0706050403020100, .high = 0x0f0e0d0c0b0a0908};
std::string KnownInput(size_t size) {
  std::string input(size, '\0');
  for (size_t i = 0; i < size; ++i) input[i] = static_cast<char>(i);
  return input;
}

struct KnownAnswer {
  size_t size;
  IdHash hash;
};

// The first eight are those of the authors' reference code (vectors.h).
TEST(SipHashTest, TwoAndFourRoundsGiveTheAuthorsAnswers) {
  const KnownAnswer answers[] = {
      {0, {0xe6a825ba047f81a3, 0x930255c71472f66d}},   {1, {0x44af996bd8c187da, 0x45fc229b11597634}},
      {2, {0xc75da4a48d227781, 0xe4ff0af6de8ba3fc}},   {3, {0x4ea967520cb6709c, 0x51ed8529b0b6335f}},
      {4, {0xaf8f9c2dc16481f8, 0x7955cd7b7c6e0f7d}},   {5, {0x886f778059876813, 0x27960e69077a5254}},
      {6, {0x1386208b33caee14, 0x5ea1d78f30a05e48}},   {7, {0x53c1dbd8beebf1a1, 0x3982f01fa64ab8c0}},
      {8, {0x61f55862baa9623b, 0xb49714f364e2830f}},   {15, {0x11a8b03399e99354, 0xd9c3cf970fec087e}},
      {16, {0xbb54b067caa4e26e, 0x77052385bf1533fd}},  {36, {0x4648c4291f7dc43d, 0x11674f90ed769e1e}},
      {250, {0xc36e8c403215d8e4, 0x619f87eca66d63da}}, {1000, {0x863de09a78fada24, 0xa60b2f37574b6a53}},
  };
  for (const auto& [size, hash] : answers) {
    EXPECT_EQ((SipHash<2, 4>::Of(KnownInput(size), kKnownKey)), hash) << size;
  }
}

// Answers of another implementation (the Python package siphash-cffi 0.1.4). A filter that is stored under
// one hash must be read under the same.
TEST(HashIdTest, IsSipHashWithOneAndThreeRoundsAnd128Bits) {
  const KnownAnswer answers[] = {
      {0, {0xbea58827b2bc7ee7, 0x013030dd6adb62fd}},   {1, {0xa8edd36004376ffc, 0x63f02f2bcc73055e}},
      {2, {0x9b836905097f7875, 0x95ea6a8c54c95b85}},   {3, {0x9ff7dc1efaccc56b, 0x43d7eb1277182348}},
      {4, {0x5a282bac714e780c, 0x252cbf8fe7928e9f}},   {5, {0x0c625b3489db28f3, 0x3e849526a4295279}},
      {6, {0x10e743f7293dd0dc, 0xf8a68539e8b05109}},   {7, {0xc3e0aaf223b98410, 0x77ab4808c82e2fa6}},
      {8, {0xb4dae3d5e1fe12aa, 0x99c7f935ab164f72}},   {15, {0x6c52bdb205557ec1, 0x09017e1eeccd2129}},
      {16, {0xeb8e511557d9a8d0, 0x93179e3df8b013b5}},  {36, {0xda8e7102f010a137, 0x40f153e49e3f4bd2}},
      {250, {0x4397a0692b072b33, 0x88ff884668850689}}, {1000, {0x48161d9dfffa82e7, 0xfaf3d320a6864225}},
  };
  for (const auto& [size, hash] : answers) {
    EXPECT_EQ(HashId(KnownInput(size), kKnownKey), hash) << size;
  }
  EXPECT_EQ(HashId(absl::string_view(), kKnownKey), HashId("", kKnownKey));
}

TEST(SipHashTest, With64BitsToo) {
  const struct {
    size_t size;
    uint64_t hash;
  } answers[] = {{0, 0xabac0158050fc4dc},  {1, 0xc9f49bf37d57ca93},  {7, 0xd3927d989bb11140},
                 {8, 0x369095118d299a8e},  {15, 0xd320d86d2a519956}, {36, 0x2cf508d3ada26206},
                 {250, 0x4cfb9e1ed3073560}};
  for (const auto& [size, hash] : answers) {
    EXPECT_EQ((SipHash<1, 3>::Of64(KnownInput(size), kKnownKey)), hash) << size;
  }
}

// What names, fingerprints and routes are made with must stay as it is.
TEST(FixedHashTest, IsXxh3With128Bits) {
  EXPECT_EQ(FixedHash(""), (IdHash{.a = 0x6001c324468d497f, .b = 0x99aa06d3014798d8}));
  EXPECT_EQ(FixedHash(absl::string_view()), FixedHash("", 0));
}

TEST(HashIdTest, DependsOnEveryByteAndOnTheWholeKey) {
  const HashKey key = {.low = TestSeed(), .high = TestSeed()};
  for (const size_t size : {1u, 3u, 8u, 16u, 17u, 128u, 129u, 240u, 241u, 5000u}) {
    std::string id(size, '\0');
    const IdHash before = HashId(id, key);
    EXPECT_EQ(HashId(id, key), before);
    EXPECT_FALSE(HashId(id, {.low = key.low + 1, .high = key.high}) == before);
    EXPECT_FALSE(HashId(id, {.low = key.low, .high = key.high ^ uint64_t{1} << 63}) == before);
    EXPECT_FALSE(HashId(id + '\0', key) == before);
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      id[at] = 1;
      EXPECT_FALSE(HashId(id, key) == before) << size << " bytes, byte " << at;
      id[at] = 0;
    }
  }
}

// 10^7 pairs, or LETHE_PAIRS.
int64_t Pairs() {
  const char* const given = std::getenv("LETHE_PAIRS");
  int64_t pairs = 10'000'000;
  EXPECT_TRUE(given == nullptr || absl::SimpleAtoi(given, &pairs)) << "LETHE_PAIRS=" << given;
  return pairs;
}

// Hashes pairs under a key that changes. No half of two hashes is the same, and any 16 bits of a half are the
// same as often as two numbers of 16 bits: for each of eight places, within a bound for as many looks.
template <typename NextPair>
void ExpectIndependence(int64_t pairs, const NextPair& next) {
  constexpr int64_t kPairsOfKey = 4096;
  std::mt19937_64 random(TestSeed());
  HashKey key;
  std::string one;
  std::string other;
  int64_t same[8] = {};
  for (int64_t i = 0; i < pairs; ++i) {
    if (i % kPairsOfKey == 0) key = {.low = random(), .high = random()};
    next(&one, &other);
    const IdHash hash = HashId(one, key);
    const IdHash other_hash = HashId(other, key);
    const uint64_t differing[] = {hash.a ^ other_hash.a, hash.b ^ other_hash.b};
    ASSERT_NE(differing[0], 0u) << i;
    ASSERT_NE(differing[1], 0u) << i;
    for (size_t place = 0; place < 8; ++place) {
      same[place] += (differing[place / 4] >> (16 * (place % 4)) & 0xffff) == 0 ? 1 : 0;
    }
  }
  const double expected = std::ldexp(static_cast<double>(pairs), -16);
  for (const int64_t count : same) {
    EXPECT_NEAR(static_cast<double>(count), expected, 1.25 * kSigmas * std::sqrt(expected) + 10);
  }
}

TEST(HashIdTest, ChosenPairsOfLongIdsCollideNoMoreThanOthers) {
  for (const size_t size : {size_t{320}, size_t{1000}}) {
    LongPairs pairs(size, TestSeed());
    std::string one;
    std::string other;
    std::mt19937_64 random(TestSeed());
    int collide = 0;
    for (int i = 0; i < 100'000; ++i) {
      pairs.Next(&one, &other);
      const uint64_t seed = random();
      collide += FixedHash(one, seed) == FixedHash(other, seed) ? 1 : 0;
    }
    EXPECT_GT(collide, 10) << "these are no pairs that collide in XXH3";
    std::cout << size << " bytes: " << collide << " of 100000 pairs collide in XXH3\n";
    ExpectIndependence(Pairs() / 4, [&](std::string* a, std::string* b) { pairs.Next(a, b); });
  }
}

TEST(HashIdTest, ChosenPairsOfShortIdsCollideNoMoreThanOthers) {
  ShortPairs pairs(TestSeed());
  ExpectIndependence(Pairs() / 2, [&](std::string* a, std::string* b) { pairs.Next(a, b); });
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
