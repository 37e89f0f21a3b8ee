// The Forgetful Bloom Filter of the paper to the letter, with each of its errata to be had or not.
#ifndef LETHE_TESTS_LAB_FBF_H_
#define LETHE_TESTS_LAB_FBF_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "src/published/bit_array.h"
#include "src/published/published_check.h"
#include "src/published/published_model.h"

namespace lethe::lab {

// Equation 3, from the ids of each interval, newest first: generation j holds those of the intervals j and
// j - 1.
inline double EquationThree(const std::vector<double>& interval_ids, double bits, int hashes) {
  std::vector<double> fpp;
  for (size_t age = 0; age < interval_ids.size(); ++age) {
    fpp.push_back(BloomFpp(interval_ids[age] + (age > 0 ? interval_ids[age - 1] : 0), bits, hashes));
  }
  return PublishedFpp(fpp);
}

// Generations, newest first. The caller refreshes it.
class LabFbf {
 public:
  enum class Check {
    kSimple,   // section III-A: in any generation
    kPrinted,  // the pseudocode of Algorithm 2
    kText,     // the text of section III-D: the oldest alone is always looked at, last
  };
  enum class Mapping {
    kShared,       // the paper's: all generations use the same k functions
    kAlternating,  // even and odd generations use different ones
  };

  LabFbf(int past, int64_t bits, int hashes, Check check, Mapping mapping = Mapping::kShared)
      : bits_(bits), hashes_(hashes), check_(check), mapping_(mapping) {
    for (int i = 0; i < past + 2; ++i) Append();
  }

  bool ContainsId(IdHash id) const { return ContainsId(id, check_); }

  bool ContainsId(IdHash id, Check check) const {
    const auto in = [&](size_t age) { return GenerationContains(age, id); };
    const size_t oldest = generations_.size() - 1;
    if (check == Check::kText) return PublishedCheck(generations_.size(), in);
    if (check == Check::kSimple) {
      for (size_t age = 0; age <= oldest; ++age) {
        if (in(age)) return true;
      }
      return false;
    }
    // As printed, with future = 0, present = 1, pastNewest = 2, pastOldest = `oldest`.
    if (in(0)) return true;
    if (oldest >= 2 && in(1) && in(2)) return true;
    if (oldest > 2) {
      for (size_t i = 2; i + 1 <= oldest; ++i) {
        if (in(i) && in(i + 1)) return true;
      }
      return false;  // nothing comes behind the loop: what follows it is an `else if`
    }
    return in(oldest);
  }

  // The generation of that age alone, 0 the newest.
  bool GenerationContains(size_t age, IdHash id) const {
    return generations_[age].bits.Contains(IdFor(generations_[age], id));
  }

  void InsertId(IdHash id) {
    generations_[0].bits.Insert(IdFor(generations_[0], id));
    generations_[1].bits.Insert(IdFor(generations_[1], id));
    ++generations_[0].ids;
  }

  void Refresh() {
    DropOldest();
    generations_.push_front(NewGeneration(++newest_number_));
  }
  // The paper's scale-up: an empty filter "to the set of past Bloom filters".
  void Append() {
    generations_.push_back(NewGeneration(newest_number_ - static_cast<int>(generations_.size())));
  }
  void DropOldest() { generations_.pop_back(); }

  // The same filter in memory of its own.
  LabFbf Copy() const {
    LabFbf copy(0, bits_, hashes_, check_, mapping_);
    copy.generations_.clear();
    copy.newest_number_ = newest_number_;
    for (const Generation& generation : generations_) {
      Generation& made = copy.generations_.emplace_back(NewGeneration(0));
      made.ids = generation.ids;
      made.is_odd = generation.is_odd;
      absl::c_copy(generation.bits.memory(), made.bits.memory().begin());
    }
    return copy;
  }

  // Positions that are set in the newest or in the oldest generation.
  std::vector<uint64_t> NewestOrOldest() const {
    std::vector<uint64_t> positions;
    const absl::Span<const uint64_t> newest = generations_.front().bits.words();
    const absl::Span<const uint64_t> oldest = generations_.back().bits.words();
    for (uint64_t position = 0; position < static_cast<uint64_t>(bits_); ++position) {
      const uint64_t word = newest[position / 64] | oldest[position / 64];
      if ((word >> (position % 64) & 1) != 0) positions.push_back(position);
    }
    return positions;
  }
  int64_t bits() const { return bits_; }

  int filters() const { return static_cast<int>(generations_.size()); }
  // Newest first.
  std::vector<double> IntervalIds() const {
    std::vector<double> ids;
    for (const Generation& generation : generations_) ids.push_back(generation.ids);
    return ids;
  }
  double EquationThree() const {
    return lab::EquationThree(IntervalIds(), static_cast<double>(bits_), hashes_);
  }
  double SharedModel() const {
    return FppWithSharedIntervals(IntervalIds(), static_cast<double>(bits_), hashes_);
  }

 private:
  struct Generation {
    BitArray bits;
    double ids = 0;  // of its own interval
    bool is_odd = false;
  };

  Generation NewGeneration(int number) const {
    std::optional<BitArray> bits = BitArray::Create(bits_, hashes_);
    if (!bits.has_value()) {
      std::cerr << "no memory for " << bits_ << " bits" << std::endl;
      std::abort();
    }
    return {.bits = *std::move(bits), .ids = 0, .is_odd = number % 2 != 0};
  }

  IdHash IdFor(const Generation& generation, IdHash id) const {
    if (mapping_ == Mapping::kShared || !generation.is_odd) return id;
    return {id.b * 0x9e3779b97f4a7c15u, id.a * 0xd6e8feb86659fd93u};
  }

  const int64_t bits_;
  const int hashes_;
  const Check check_;
  const Mapping mapping_;
  int newest_number_ = 0;
  std::deque<Generation> generations_;
};

}  // namespace lethe::lab

#endif  // LETHE_TESTS_LAB_FBF_H_
