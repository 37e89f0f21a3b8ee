// Against an oracle that keeps everything, and, where the sample is one, against its own margins.
#include "src/survey/id_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "tests/support/seed.h"

namespace lethe {
namespace {

constexpr int64_t kStart = 1'700'000'000'000;

// 5.5 standard deviations of a normal variable: missed by chance less than once in ten million.
double Bound(const Estimate& estimate) { return estimate.margin * 5.5 / 1.96 + 1e-9; }

// Whether a figure is as near to the truth as it says.
testing::AssertionResult IsNear(const Estimate& estimate, double truth) {
  if (std::abs(estimate.value - truth) <= Bound(estimate)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << estimate.value << " +- " << estimate.margin << ", truly " << truth;
}

struct Truth {
  double copies = 0, changed = 0, elsewhere = 0;
  std::array<double, kHorizons.size()> caught = {};
  int64_t most = 0;
};

Truth TruthOf(std::vector<Sighting> sightings) {
  std::sort(sightings.begin(), sightings.end(), [](const Sighting& x, const Sighting& y) {
    return std::tie(x.time_ms, x.partition, x.offset) < std::tie(y.time_ms, y.partition, y.offset);
  });
  std::map<uint64_t, std::vector<Sighting>> by_id;
  for (const Sighting& sighting : sightings) by_id[sighting.id].push_back(sighting);
  Truth truth;
  for (const auto& [id, all] : by_id) {
    truth.most = std::max(truth.most, static_cast<int64_t>(all.size()));
    for (size_t i = 1; i < all.size(); ++i) {
      ++truth.copies;
      truth.changed += all[i].content != all[0].content;
      truth.elsewhere += all[i].partition != all[0].partition;
      for (size_t b = 0; b < kHorizons.size(); ++b) {
        truth.caught[b] += absl::Milliseconds(all[i].time_ms - all[0].time_ms) <= kHorizons[b];
      }
    }
  }
  return truth;
}

void ExpectNear(const IdFigures& figures, const Truth& truth) {
  EXPECT_TRUE(IsNear(figures.copies, truth.copies));
  EXPECT_TRUE(IsNear(figures.changed, truth.changed));
  EXPECT_TRUE(IsNear(figures.elsewhere, truth.elsewhere));
  EXPECT_TRUE(IsNear(figures.changed_share, truth.changed / truth.copies));
  EXPECT_TRUE(IsNear(figures.elsewhere_share, truth.elsewhere / truth.copies));
  for (size_t b = 0; b < kHorizons.size(); ++b) {
    EXPECT_TRUE(IsNear(figures.caught[b], truth.caught[b])) << b;
    EXPECT_TRUE(IsNear(figures.caught_share[b], truth.caught[b] / truth.copies)) << b;
  }
}

class IdSampleTest : public testing::Test {
 protected:
  // Events one after another, `rate` of them sent again up to three times, up to two days later, some with
  // another payload, some to another partition; in the order of sending.
  std::vector<Sighting> Stream(int events, double rate) {
    std::vector<Sighting> stream;
    std::bernoulli_distribution is_sent_again(rate), is_odd(0.2);
    std::uniform_real_distribution<double> late(0, std::log(2.0 * 86'400'000));
    for (int i = 0; i < events; ++i) {
      Sighting sighting = {.id = random_(),
                           .time_ms = kStart + 10 * i,
                           .partition = static_cast<int32_t>(random_() % 8),
                           .content = 1};
      stream.push_back(sighting);
      for (int copies = 0; copies < 3 && is_sent_again(random_); ++copies) {
        Sighting copy = sighting;
        copy.time_ms += static_cast<int64_t>(std::exp(late(random_)));
        if (is_odd(random_)) copy.content = 2;
        if (is_odd(random_)) copy.partition = (copy.partition + 1) % 8;
        stream.push_back(copy);
      }
    }
    for (size_t i = 0; i < stream.size(); ++i) stream[i].offset = static_cast<int64_t>(i);
    return stream;
  }

  std::mt19937_64 random_{TestSeed()};
};

TEST_F(IdSampleTest, IsExactWhileEverythingFits) {
  const std::vector<Sighting> stream = Stream(10000, 0.3);
  IdSample sample(64 << 20);
  for (const Sighting& sighting : stream) sample.Add(sighting);
  const IdFigures figures = sample.Figures();
  const Truth truth = TruthOf(stream);
  EXPECT_EQ(figures.records, static_cast<int64_t>(stream.size()));
  EXPECT_EQ(figures.sampled_share, 1);
  EXPECT_EQ(figures.copies.margin, 0);
  EXPECT_EQ(figures.caught_share[3].margin, 0);
  EXPECT_EQ(figures.most, truth.most);
  ExpectNear(figures, truth);
}

TEST_F(IdSampleTest, DoesNotAskForOrder) {
  std::vector<Sighting> stream = Stream(5000, 0.3);
  const Truth truth = TruthOf(stream);
  std::shuffle(stream.begin(), stream.end(), random_);
  IdSample sample(64 << 20);
  for (const Sighting& sighting : stream) sample.Add(sighting);
  ExpectNear(sample.Figures(), truth);
}

TEST_F(IdSampleTest, CanBeAskedOnTheWay) {
  const std::vector<Sighting> stream = Stream(2000, 0.3);
  IdSample sample(64 << 20);
  for (const Sighting& sighting : stream) {
    sample.Add(sighting);
    if (sample.records() % 500 == 0) sample.Figures();
  }
  ExpectNear(sample.Figures(), TruthOf(stream));
}

TEST_F(IdSampleTest, SamplesWithinItsMarginsWhenMemoryIsShort) {
  const std::vector<Sighting> stream = Stream(400'000, 0.1);
  IdSample sample(1 << 20);
  for (const Sighting& sighting : stream) sample.Add(sighting);
  const IdFigures figures = sample.Figures();
  EXPECT_LE(figures.sampled_share, 1.0 / 8);
  EXPECT_GE(figures.sampled_share, 1.0 / 64);
  EXPECT_EQ(figures.records, static_cast<int64_t>(stream.size()));
  const Truth truth = TruthOf(stream);
  ExpectNear(figures, truth);
  // The margins say something.
  EXPECT_GT(figures.copies.margin, 0);
  EXPECT_LT(figures.copies.margin, 0.1 * truth.copies);
  EXPECT_LT(figures.caught_share[4].margin, 0.1);
}

TEST_F(IdSampleTest, AConstantAmongIdsIsCountedAndCrowdsNothingOut) {
  std::vector<Sighting> stream = Stream(200'000, 0.1);
  const Truth before = TruthOf(stream);
  const Sighting constant = {.id = ~uint64_t{0}, .time_ms = kStart, .partition = 1, .content = 3};
  IdSample sample(1 << 20);
  for (const Sighting& sighting : stream) {
    sample.Add(sighting);
    for (int i = 0; i < 4; ++i) sample.Add(constant);
  }
  const IdFigures figures = sample.Figures();
  const double constants = 4 * static_cast<double>(stream.size());
  EXPECT_EQ(figures.most, static_cast<int64_t>(constants));
  EXPECT_EQ(figures.most_first.partition, 1);
  EXPECT_TRUE(IsNear(figures.copies, before.copies + constants - 1));
  EXPECT_LT(figures.copies.margin, 0.1 * before.copies);
}

TEST_F(IdSampleTest, ManyIdsWithManyRecordsStayWithinMemory) {
  IdSample sample(1 << 20);
  double copies = -20000;
  for (uint64_t id = 0; id < 20000; ++id) {
    const Sighting sighting = {.id = id * 0x9E3779B97F4A7C15, .time_ms = kStart};
    for (int i = 0; i < 600; ++i, ++copies) sample.Add(sighting);
  }
  EXPECT_TRUE(IsNear(sample.Figures().copies, copies));
}

TEST_F(IdSampleTest, NothingSeenIsNothing) {
  const IdFigures figures = IdSample(1).Figures();
  EXPECT_EQ(figures.records, 0);
  EXPECT_EQ(figures.copies.value, 0);
  EXPECT_EQ(figures.caught_share[0].value, 0);
}

TEST_F(IdSampleTest, NamesExamples) {
  IdSample sample(1 << 20);
  sample.Add({.id = 7, .time_ms = kStart + 5, .offset = 40, .partition = 2, .content = 9});
  sample.Add({.id = 7, .time_ms = kStart, .offset = 17, .partition = 1, .content = 8});
  const IdFigures figures = sample.Figures();
  ASSERT_EQ(figures.changed_examples.size(), 1u);
  EXPECT_EQ(figures.changed_examples[0].first.offset, 17);
  EXPECT_EQ(figures.changed_examples[0].copy.offset, 40);
  ASSERT_EQ(figures.elsewhere_examples.size(), 1u);
  EXPECT_EQ(figures.elsewhere_examples[0].copy.partition, 2);
  EXPECT_EQ(figures.latest, absl::Milliseconds(5));
}

}  // namespace
}  // namespace lethe
