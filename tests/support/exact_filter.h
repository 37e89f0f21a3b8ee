// Filters that stand in for the real ones in tests of the stage: exact, or wrong at a known rate.
#ifndef LETHE_TESTS_SUPPORT_EXACT_FILTER_H_
#define LETHE_TESTS_SUPPORT_EXACT_FILTER_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "lethe/stage.h"
#include "src/filter/engine_filter.h"

namespace lethe {

struct IdHashHash {
  size_t operator()(IdHash id) const { return id.a ^ (id.b << 1); }
};

// Remembers an id for exactly the horizon, and no other id. Ids that were inserted before the filter had a
// time are as old as its first time. Allocates only beyond `expected_ids`.
class ExactFilter : public EngineFilter {
 public:
  static constexpr int64_t kBytes = 1 << 20;  // what it takes from the budget, whatever it holds

  ExactFilter(const FilterOptions& options, size_t expected_ids)
      : options_(options), horizon_ms_(absl::ToInt64Milliseconds(options.horizon)) {
    times_.reserve(expected_ids);
  }
  ~ExactFilter() override { options_.memory->Release(kBytes); }

  // For DedupStage::Create.
  static FilterFactory Factory(size_t expected_ids = 0) {
    return [expected_ids](const FilterOptions& options) -> absl::StatusOr<std::unique_ptr<Filter>> {
      if (!options.memory->Reserve(kBytes)) {
        return absl::ResourceExhaustedError("the memory limit leaves no room for a filter");
      }
      return std::make_unique<ExactFilter>(options, expected_ids);
    };
  }

  void Contains(absl::Span<const IdHash> ids, absl::Span<Verdict> verdicts) const override {
    for (size_t i = 0; i < ids.size(); ++i) verdicts[i] = Test(ids[i], now_ms_);
  }

  void ContainsAt(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) const override {
    for (size_t i = 0; i < ids.size(); ++i) {
      verdicts[i] = Test(ids[i].id, std::max(now_ms_, ids[i].stream_time_ms));
    }
  }

  void Insert(absl::Span<const TimedId> ids) override {
    for (const TimedId& timed : ids) {
      AdvanceTo(timed.stream_time_ms);
      times_[timed.id] = now_ms_;
    }
  }

  void TestAndInsert(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) override {
    for (size_t i = 0; i < ids.size(); ++i) {
      AdvanceTo(ids[i].stream_time_ms);
      verdicts[i] = Test(ids[i].id, now_ms_);
      if (verdicts[i] == Verdict::kUnique) times_[ids[i].id] = now_ms_;
    }
  }

  void AdvanceTo(int64_t stream_time_ms) override {
    if (now_ms_ == kNoStreamTime && stream_time_ms != kNoStreamTime) {
      for (auto& [id, time_ms] : times_) time_ms = stream_time_ms;
    }
    now_ms_ = std::max(now_ms_, stream_time_ms);
  }

  FilterStatus Status() const override {
    FilterStatus status;
    status.shape.bits_per_generation = 100;
    status.shape.bits_per_id = 3;
    status.ids = static_cast<int64_t>(times_.size());
    status.window = options_.horizon;
    status.fpp.target = options_.target_fpp;
    status.memory_bytes = kBytes;
    return status;
  }

 private:
  Verdict Test(IdHash id, int64_t now_ms) const {
    const auto found = times_.find(id);
    if (found == times_.end()) return Verdict::kUnique;
    return found->second == kNoStreamTime || now_ms - found->second <= horizon_ms_ ? Verdict::kDuplicate
                                                                                   : Verdict::kUnique;
  }

  const FilterOptions options_;
  const int64_t horizon_ms_;
  absl::flat_hash_map<IdHash, int64_t, IdHashHash> times_;
  int64_t now_ms_ = kNoStreamTime;
};

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_EXACT_FILTER_H_
