// Measures how often, how late, where and how changed ids repeat: exactly if memory holds every id, else from
// a sample.
#ifndef LETHE_SURVEY_ID_SAMPLE_H_
#define LETHE_SURVEY_ID_SAMPLE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace lethe {

// One record with an id.
struct Sighting {
  uint64_t id = 0;  // hash
  int64_t time_ms = 0;
  int64_t offset = 0;
  int32_t partition = 0;
  uint32_t content = 0;  // hash of key, value and headers
};

// The true figure is within value +- margin in 95 of 100 surveys; margin 0: exact.
struct Estimate {
  double value = 0;
  double margin = 0;
};

// Usual horizons.
inline constexpr std::array<absl::Duration, 10> kHorizons = {
    absl::Milliseconds(100), absl::Seconds(1), absl::Seconds(10), absl::Minutes(1), absl::Minutes(10),
    absl::Hours(1),          absl::Hours(6),   absl::Hours(24),   absl::Hours(168), absl::Hours(720)};

// A copy, and the first record with its id.
struct CopyExample {
  Sighting first;
  Sighting copy;
};

// Of the records with an id. The first of an id is the one with the earliest time; the others are copies.
struct IdFigures {
  int64_t records = 0;       // exact
  double sampled_share = 1;  // of the ids; 1: all
  Estimate copies;
  // Copies whose content, or partition, differs from the first one's.
  Estimate changed;
  Estimate elsewhere;
  Estimate changed_share;
  Estimate elsewhere_share;
  // Copies that came at most kHorizons[i] after the first: the horizon would have caught at least these.
  std::array<Estimate, kHorizons.size()> caught;
  std::array<Estimate, kHorizons.size()> caught_share;
  absl::Duration latest;  // among the sampled ids
  // The sampled id with the most records.
  int64_t most = 0;
  Sighting most_first;
  std::vector<CopyExample> changed_examples;
  std::vector<CopyExample> elsewhere_examples;
};

// The sample has all records of the ids whose hash is under a threshold, which is halved when memory is full.
// So shares are unbiased, and 1 / sampled_share scales counts. An id with very many records (such as a
// constant) is folded into counts, and keeps its weight. Invariant: memory stays near the limit.
// Thread-compatible.
class IdSample {
 public:
  // At least 1 MiB.
  explicit IdSample(int64_t memory_bytes);

  void Add(const Sighting& sighting);
  IdFigures Figures();

  int64_t records() const { return records_; }

 private:
  // Copies up to kHorizons[i] late; the last bucket is for later ones.
  using Late = std::array<int64_t, kHorizons.size() + 1>;

  // The copies of one id.
  struct Copies {
    Sighting first;
    int64_t count = 0;
    int64_t changed = 0;
    int64_t elsewhere = 0;
    int64_t latest_ms = 0;
    Late late = {};

    void Add(const Sighting& copy);
  };
  // An id with too many records. A record that is earlier than the first known at the folding counts as not
  // late.
  struct Folded {
    Copies copies;
    double weight = 1;
  };
  class Sums;

  void Sort();
  void MakeRoom();
  void FoldLargest();
  void HalveThreshold();
  Copies CopiesOf(size_t begin, size_t end) const;
  size_t EndOfRun(size_t begin) const;
  double weight() const;

  const size_t capacity_;  // of sightings_
  std::vector<Sighting> sightings_;
  absl::flat_hash_map<uint64_t, Folded> folded_;
  int halvings_ = 0;  // of the threshold, which begins at 2^64
  int64_t records_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SURVEY_ID_SAMPLE_H_
