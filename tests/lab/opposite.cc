// "The Opposite of a Bloom Filter" (Jeff Hodges), by itself and shared by threads.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

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

// The article's other design: a lock for each index.
class LockedOpposite {
 public:
  explicit LockedOpposite(int64_t slots) : slots_(static_cast<size_t>(slots)) {}

  Verdict TestAndInsert(uint64_t id) {
    Slot& slot = slots_[id % slots_.size()];
    const std::lock_guard<std::mutex> lock(slot.mutex);
    return std::exchange(slot.id, id) == id ? Verdict::kDuplicate : Verdict::kUnique;
  }

 private:
  struct Slot {
    std::mutex mutex;
    uint64_t id = 0;
  };

  std::vector<Slot> slots_;
};

// And with an atomic exchange.
class ExchangedOpposite {
 public:
  explicit ExchangedOpposite(int64_t slots) : slots_(static_cast<size_t>(slots)) {}

  Verdict TestAndInsert(uint64_t id) {
    return slots_[id % slots_.size()].exchange(id) == id ? Verdict::kDuplicate : Verdict::kUnique;
  }

 private:
  std::vector<std::atomic<uint64_t>> slots_;
};

// Bits for each of these ids if they are sorted and the differences stored in Golomb-Rice code, which is
// within 0.04 bits of the best for random ids.
double IntervalBits(std::vector<uint64_t> ids) {
  std::sort(ids.begin(), ids.end());
  const double mean = static_cast<double>(ids.back() - ids.front()) / static_cast<double>(ids.size());
  const int low_bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(mean * std::log(2)))) - 1;
  double bits = 0;
  for (size_t i = 1; i < ids.size(); ++i) {
    bits += static_cast<double>((ids[i] - ids[i - 1]) >> low_bits) + 1 + low_bits;
  }
  return bits / static_cast<double>(ids.size());
}

}  // namespace

Table OppositeVariants(const OppositeSize& size) {
  constexpr int64_t kSlots = 16'384;
  Table table("opposite_variants", absl::StrCat(kSlots, " slots of 64 bits; seed ", size.seed),
              {"ids", "verdicts", "other_verdicts_with_locks", "bits_per_slot_of_a_lock",
               "bits_per_id_as_intervals"});
  std::mt19937_64 random(size.seed);
  for (const char* kind : {"random", "one in ten of a sequence"}) {
    const bool is_random = std::string_view(kind) == "random";
    LockedOpposite locked(kSlots);
    ExchangedOpposite exchanged(kSlots);
    std::vector<uint64_t> sent;
    int64_t other = 0;
    for (int64_t i = 0; i < size.copies; ++i) {
      // Each second one is a copy of one of the last slots' worth.
      const bool is_copy = i % 2 == 1;
      const uint64_t back = 1 + random() % std::min<uint64_t>(std::max<size_t>(sent.size(), 1), kSlots);
      const uint64_t id = is_copy     ? sent[sent.size() - back]
                          : is_random ? random()
                                      : static_cast<uint64_t>(sent.size()) * 10 + random() % 10 + 1;
      if (!is_copy) sent.push_back(id);
      other += locked.TestAndInsert(id) != exchanged.TestAndInsert(id) ? 1 : 0;
    }
    table.Add({std::string(kind), size.copies, other, int64_t{8} * static_cast<int64_t>(sizeof(std::mutex)),
               IntervalBits({sent.end() - kSlots, sent.end()})});
  }
  return table;
}

namespace {

struct Case {
  int64_t copy_each;
  int64_t slots;
  int threads;
};

Table Misses(const std::string& name, const OppositeSize& size, const std::vector<Case>& cases) {
  Table table(name,
              absl::StrCat("each id, or one in 20, is sent again after load x slots ids; ", size.copies,
                           " copies at each point; seed ", size.seed),
              {"copied", "slots", "threads", "load", "missed_share", "low", "high", "model",
               "false_positives", "fresh"});
  for (const auto& [copy_each, slots, threads] : cases) {
    for (const double load : {0.02, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0}) {
      const OwnedFilter filter =
          MakeFilter(Reference::kOpposite, {.horizon = absl::Hours(1), .target_fpp = 0.01}, 64 * 8 * slots);
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

}  // namespace

Table OppositeAlone(const OppositeSize& size) {
  std::vector<Case> cases = {{.copy_each = 20, .slots = 16'384, .threads = 1}};
  for (const int64_t slots : {2048, 16'384, 131'072}) {
    cases.push_back({.copy_each = 1, .slots = slots, .threads = 1});
  }
  return Misses("opposite", size, cases);
}

Table OppositeThreads(const OppositeSize& size) {
  return Misses(
      "opposite_threads", size,
      {{.copy_each = 1, .slots = 16'384, .threads = 2}, {.copy_each = 1, .slots = 16'384, .threads = 4}});
}

double OppositeModel(double load, double share) { return -std::expm1(-(1 + share) * load); }

}  // namespace lethe::lab
