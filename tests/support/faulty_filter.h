// A filter that is wrong at known rates, around one that is right.
#ifndef LETHE_TESTS_SUPPORT_FAULTY_FILTER_H_
#define LETHE_TESTS_SUPPORT_FAULTY_FILTER_H_

#include <memory>
#include <utility>

#include "lethe/filter.h"
#include "lethe/stage.h"

namespace lethe {

// Of all ids, a share `false_positives` is always called a duplicate, and a share `losses` always unique;
// which ones is a function of their hash, by bits that nothing else uses.
struct FaultyRates {
  double false_positives = 0;
  double losses = 0;
};

class FaultyFilter : public Filter {
 public:
  FaultyFilter(std::unique_ptr<Filter> right, FaultyRates rates) : right_(std::move(right)), rates_(rates) {}

  static FilterFactory Factory(FilterFactory right, FaultyRates rates) {
    return [right, rates](const FilterOptions& options) -> absl::StatusOr<std::unique_ptr<Filter>> {
      auto filter = right(options);
      if (!filter.ok()) return filter.status();
      return std::make_unique<FaultyFilter>(*std::move(filter), rates);
    };
  }

  static bool IsFalsePositive(IdHash id, FaultyRates rates) { return Uniform(id.a) < rates.false_positives; }
  static bool IsLost(IdHash id, FaultyRates rates) { return 1 - Uniform(id.a) <= rates.losses; }

  void Contains(absl::Span<const IdHash> ids, absl::Span<Verdict> verdicts) const override {
    right_->Contains(ids, verdicts);
    for (size_t i = 0; i < ids.size(); ++i) Spoil(ids[i], &verdicts[i]);
  }
  void ContainsAt(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) const override {
    right_->ContainsAt(ids, verdicts);
    for (size_t i = 0; i < ids.size(); ++i) Spoil(ids[i].id, &verdicts[i]);
  }
  void Insert(absl::Span<const TimedId> ids) override { right_->Insert(ids); }
  void TestAndInsert(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) override {
    right_->TestAndInsert(ids, verdicts);
    for (size_t i = 0; i < ids.size(); ++i) Spoil(ids[i].id, &verdicts[i]);
  }
  void AdvanceTo(int64_t stream_time_ms) override { right_->AdvanceTo(stream_time_ms); }
  FilterStatus Status() const override { return right_->Status(); }

 private:
  static double Uniform(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }
  void Spoil(IdHash id, Verdict* verdict) const {
    if (IsFalsePositive(id, rates_)) *verdict = Verdict::kDuplicate;
    if (IsLost(id, rates_)) *verdict = Verdict::kUnique;
  }

  const std::unique_ptr<Filter> right_;
  const FaultyRates rates_;
};

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_FAULTY_FILTER_H_
