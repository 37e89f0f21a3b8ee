#include "src/filter/fingerprint_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

struct alignas(64) Line {
  uint32_t entries[kEntriesInLine];
};

class FingerprintLinesTest : public testing::TestWithParam<const LineOperations*> {};

TEST_P(FingerprintLinesTest, ScanTellsHitsAndFreeEntries) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    Line lines[2];
    // Few fingerprints, with the highest bit in some, so that many are hit.
    for (Line& line : lines) {
      for (uint32_t& entry : line.entries) {
        entry = static_cast<uint32_t>(random() % 4 << 30 | random() % 2 << 4 | random() % 16);
      }
    }
    const auto live = static_cast<uint32_t>(random() & 0xfffe);
    const auto wanted = static_cast<uint32_t>(random() % 4 << 30 | random() % 2 << 4);
    TwoLines expected;
    for (int i = 0; i < 2 * kEntriesInLine; ++i) {
      const uint32_t entry = lines[i / kEntriesInLine].entries[i % kEntriesInLine];
      const bool alive = (live >> (entry % 16) & 1) != 0;
      if (alive && entry / 16 == wanted / 16) expected.hits |= uint32_t{1} << i;
      if (!alive) expected.free |= uint32_t{1} << i;
    }
    ASSERT_TRUE(GetParam()->scan(lines[0].entries, lines[1].entries, wanted, live) == expected);
  }
}

TEST_P(FingerprintLinesTest, ClearDeadEmptiesDeadEntriesOnly) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Line> lines(5);
    for (Line& line : lines) {
      for (uint32_t& entry : line.entries) entry = static_cast<uint32_t>(random());
    }
    std::vector<Line> expected = lines;
    const auto live = static_cast<uint32_t>(random() & 0xfffe);
    for (size_t i = 1; i < 4; ++i) {
      for (uint32_t& entry : expected[i].entries) {
        if ((live >> (entry % 16) & 1) == 0) entry = 0;
      }
    }
    GetParam()->clear_dead(lines[1].entries, 3, live);
    for (size_t i = 0; i < lines.size(); ++i) {
      ASSERT_TRUE(std::equal(lines[i].entries, lines[i].entries + kEntriesInLine, expected[i].entries));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Processors, FingerprintLinesTest,
                         testing::Values(&PortableLineOperations(), &FastestLineOperations()),
                         [](const auto& of) { return of.index == 0 ? "Portable" : "Fastest"; });

}  // namespace
}  // namespace lethe
