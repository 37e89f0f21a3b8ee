// "The Opposite of a Bloom Filter" (Jeff Hodges), by itself and shared by threads.
#include <atomic>
#include <cmath>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/lab/experiments.h"

namespace lethe::lab {
namespace {

struct Counts {
  int64_t fresh = 0;
  int64_t false_positives = 0;
  int64_t copies = 0;
  int64_t missed = 0;
};

// A stream of ids, one in `copy_each` of which is sent again when `distance` others have come, shared out
// among threads by position. What a thread is late with is left out, so that a copy is never sent before its
// id.
class Stream {
 public:
  Stream(Filter* filter, int64_t count, int64_t distance, int64_t copy_each, uint64_t seed)
      : filter_(filter),
        distance_(distance),
        copy_each_(copy_each),
        seed_(seed),
        was_sent_(static_cast<size_t>(count)) {}

  Counts Send() {
    Counts counts;
    const auto count = static_cast<int64_t>(was_sent_.size());
    for (int64_t i = next_++; i < count; i = next_++) {
      ++counts.fresh;
      counts.false_positives += TestAndInsert(i) == Verdict::kDuplicate ? 1 : 0;
      was_sent_[static_cast<size_t>(i)] = true;
      const int64_t copy = i - distance_;
      if (copy < 0 || copy % copy_each_ != 0 || !was_sent_[static_cast<size_t>(copy)]) continue;
      const bool is_missed = TestAndInsert(copy) == Verdict::kUnique;
      if (i < 3 * distance_) continue;  // the first have met fewer
      ++counts.copies;
      counts.missed += is_missed ? 1 : 0;
    }
    return counts;
  }

 private:
  Verdict TestAndInsert(int64_t i) {
    return TestAndInsertOne(*filter_, NumberedId(static_cast<uint64_t>(i), seed_), 0);
  }

  Filter* const filter_;
  const int64_t distance_;
  const int64_t copy_each_;
  const uint64_t seed_;
  std::vector<std::atomic<bool>> was_sent_;
  std::atomic<int64_t> next_{0};
};

}  // namespace

Table OppositeAlone(const OppositeSize& size) {
  Table table("opposite",
              absl::StrCat("each id, or one in 20, is sent again after load x slots ids; ", size.copies,
                           " copies at each point; seed ", size.seed),
              {"copied", "slots", "threads", "load", "missed_share", "low", "high", "model",
               "false_positives", "fresh"});
  struct Case {
    int64_t copy_each;
    int64_t slots;
    int threads;
  };
  std::vector<Case> cases = {{.copy_each = 20, .slots = 16'384, .threads = 1}};
  for (const int64_t slots : {int64_t{2048}, int64_t{16'384}, int64_t{131'072}}) {
    for (const int threads : {1, 2, 4}) cases.push_back({.copy_each = 1, .slots = slots, .threads = threads});
  }
  for (const auto& [copy_each, slots, threads] : cases) {
    for (const double load : {0.02, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0}) {
      const OwnedFilter filter = MakeFilter(
          {.horizon = absl::Hours(1), .target_fpp = 0.01, .engine = Engine::kOpposite}, 64 * 8 * slots);
      const auto distance = std::max<int64_t>(1, std::llround(load * static_cast<double>(slots)));
      Stream stream(filter.filter.get(), 3 * distance + size.copies * copy_each, distance, copy_each,
                    size.seed);
      std::vector<Counts> counts(static_cast<size_t>(threads));
      std::vector<std::thread> running;
      for (int i = 0; i < threads; ++i) {
        running.emplace_back([&, i] { counts[static_cast<size_t>(i)] = stream.Send(); });
      }
      for (std::thread& thread : running) thread.join();
      Counts all;
      for (const Counts& of_one : counts) {
        all.fresh += of_one.fresh;
        all.false_positives += of_one.false_positives;
        all.copies += of_one.copies;
        all.missed += of_one.missed;
      }
      const Interval band = RateInterval(all.missed, all.copies, 0.99);
      const double missed = static_cast<double>(all.missed) / static_cast<double>(all.copies);
      const double copied = 1 / static_cast<double>(copy_each);
      table.Add({copied, slots, int64_t{threads}, load, missed, band.low, band.high,
                 OppositeModel(load, copied), all.false_positives, all.fresh});
    }
  }
  return table;
}

double OppositeModel(double load, double share) { return -std::expm1(-(1 + share) * load); }

}  // namespace lethe::lab
