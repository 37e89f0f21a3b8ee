#include "src/survey/id_sample.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "src/assertion.h"

namespace lethe {
namespace {

constexpr int64_t kLeastMemory = 1 << 20;
// An id with more than this share of the sightings that fit is folded.
constexpr size_t kFoldedPart = 64;
constexpr size_t kMostFolded = 1024;
constexpr size_t kExamples = 3;
constexpr double kNormal95 = 1.96;

bool IsBefore(const Sighting& x, const Sighting& y) {
  return std::tie(x.id, x.time_ms, x.partition, x.offset) < std::tie(y.id, y.time_ms, y.partition, y.offset);
}

// Counts and shares of copies over ids, each id with the weight of its sampling (Horvitz and Thompson).
class Weighted {
 public:
  void Add(double weight, double part, double whole) {
    const double spread = weight * (weight - 1);
    part_ += weight * part;
    whole_ += weight * whole;
    part2_ += spread * part * part;
    mixed_ += spread * part * whole;
    whole2_ += spread * whole * whole;
  }

  // `weight`: of one id that the sample may have missed.
  Estimate Count(double weight) const {
    return {part_, kNormal95 * std::sqrt(part2_ + weight * (weight - 1))};
  }

  Estimate Share(double weight) const {
    if (whole_ == 0) return {};
    const double share = part_ / whole_;
    const double variance =
        std::max(0.0, part2_ - 2 * share * mixed_ + share * share * whole2_) + weight * (weight - 1);
    return {share, std::min(1.0, kNormal95 * std::sqrt(variance) / whole_)};
  }

 private:
  double part_ = 0, whole_ = 0, part2_ = 0, mixed_ = 0, whole2_ = 0;
};

}  // namespace

void IdSample::Copies::Add(const Sighting& copy) {
  ++count;
  changed += copy.content != first.content;
  elsewhere += copy.partition != first.partition;
  const int64_t late_ms = std::max<int64_t>(0, copy.time_ms - first.time_ms);
  latest_ms = std::max(latest_ms, late_ms);
  size_t bucket = 0;
  while (bucket < kHorizons.size() && absl::Milliseconds(late_ms) > kHorizons[bucket]) ++bucket;
  ++late[bucket];
}

// Sums over the ids.
class IdSample::Sums {
 public:
  void Add(const Copies& copies, double weight) {
    if (copies.count + 1 > figures_.most) {
      figures_.most = copies.count + 1;
      figures_.most_first = copies.first;
    }
    if (copies.count == 0) return;
    const auto whole = static_cast<double>(copies.count);
    copies_.Add(weight, whole, whole);
    changed_.Add(weight, static_cast<double>(copies.changed), whole);
    elsewhere_.Add(weight, static_cast<double>(copies.elsewhere), whole);
    int64_t caught = 0;
    for (size_t i = 0; i < kHorizons.size(); ++i) {
      caught += copies.late[i];
      caught_[i].Add(weight, static_cast<double>(caught), whole);
    }
    figures_.latest = std::max(figures_.latest, absl::Milliseconds(copies.latest_ms));
  }

  void AddExample(const Sighting& first, const Sighting& copy) {
    if (copy.content != first.content && figures_.changed_examples.size() < kExamples) {
      figures_.changed_examples.push_back({first, copy});
    }
    if (copy.partition != first.partition && figures_.elsewhere_examples.size() < kExamples) {
      figures_.elsewhere_examples.push_back({first, copy});
    }
  }

  IdFigures Figures(double weight) {
    figures_.sampled_share = 1 / weight;
    figures_.copies = copies_.Count(weight);
    figures_.changed = changed_.Count(weight);
    figures_.changed_share = changed_.Share(weight);
    figures_.elsewhere = elsewhere_.Count(weight);
    figures_.elsewhere_share = elsewhere_.Share(weight);
    for (size_t i = 0; i < kHorizons.size(); ++i) {
      figures_.caught[i] = caught_[i].Count(weight);
      figures_.caught_share[i] = caught_[i].Share(weight);
    }
    return std::move(figures_);
  }

 private:
  IdFigures figures_;
  Weighted copies_, changed_, elsewhere_;
  std::array<Weighted, kHorizons.size()> caught_;
};

IdSample::IdSample(int64_t memory_bytes)
    : capacity_(static_cast<size_t>(std::max(memory_bytes, kLeastMemory)) / sizeof(Sighting)) {}

double IdSample::weight() const { return std::ldexp(1.0, halvings_); }

void IdSample::Add(const Sighting& sighting) {
  ++records_;
  if (!folded_.empty()) {
    const auto folded = folded_.find(sighting.id);
    if (folded != folded_.end()) {
      folded->second.copies.Add(sighting);
      return;
    }
  }
  if (halvings_ > 0 && sighting.id >> (64 - halvings_) != 0) return;
  // Default growth would exceed the limit.
  if (sightings_.size() == sightings_.capacity()) {
    sightings_.reserve(std::min(capacity_, std::max<size_t>(1024, sightings_.size() * 2)));
  }
  LETHE_ASSERT(sightings_.size() < capacity_);
  sightings_.push_back(sighting);
  if (sightings_.size() == capacity_) MakeRoom();
}

void IdSample::Sort() { std::sort(sightings_.begin(), sightings_.end(), IsBefore); }

size_t IdSample::EndOfRun(size_t begin) const {
  size_t end = begin + 1;
  while (end < sightings_.size() && sightings_[end].id == sightings_[begin].id) ++end;
  return end;
}

IdSample::Copies IdSample::CopiesOf(size_t begin, size_t end) const {
  Copies copies;
  copies.first = sightings_[begin];
  for (size_t i = begin + 1; i < end; ++i) copies.Add(sightings_[i]);
  return copies;
}

void IdSample::MakeRoom() {
  Sort();
  FoldLargest();
  while (sightings_.size() > capacity_ / 2 || folded_.size() > kMostFolded) HalveThreshold();
}

void IdSample::FoldLargest() {
  size_t kept = 0;
  for (size_t begin = 0, end; begin < sightings_.size(); begin = end) {
    end = EndOfRun(begin);
    if (end - begin > capacity_ / kFoldedPart) {
      folded_[sightings_[begin].id] = {CopiesOf(begin, end), weight()};
      continue;
    }
    std::copy(sightings_.begin() + static_cast<ptrdiff_t>(begin),
              sightings_.begin() + static_cast<ptrdiff_t>(end),
              sightings_.begin() + static_cast<ptrdiff_t>(kept));
    kept += end - begin;
  }
  sightings_.resize(kept);
}

void IdSample::HalveThreshold() {
  ++halvings_;
  const auto is_over = [this](uint64_t id) { return id >> (64 - halvings_) != 0; };
  sightings_.erase(std::remove_if(sightings_.begin(), sightings_.end(),
                                  [&](const Sighting& sighting) { return is_over(sighting.id); }),
                   sightings_.end());
  if (folded_.size() <= kMostFolded) return;
  // Too many: they are sampled like all others.
  absl::erase_if(folded_, [&](const auto& folded) { return is_over(folded.first); });
  for (auto& [id, folded] : folded_) folded.weight = weight();
}

IdFigures IdSample::Figures() {
  Sort();
  Sums sums;
  for (const auto& [id, folded] : folded_) sums.Add(folded.copies, folded.weight);
  for (size_t begin = 0, end; begin < sightings_.size(); begin = end) {
    end = EndOfRun(begin);
    sums.Add(CopiesOf(begin, end), weight());
    for (size_t i = begin + 1; i < end; ++i) sums.AddExample(sightings_[begin], sightings_[i]);
  }
  IdFigures figures = sums.Figures(weight());
  figures.records = records_;
  return figures;
}

}  // namespace lethe
