// "The Opposite of a Bloom Filter" (Jeff Hodges): by itself, shared by threads, and behind the filter.
#include <atomic>
#include <cmath>
#include <iostream>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "lethe/stage.h"
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

Table OppositeBehind(const OppositeSize& size) {
  constexpr double kTarget = 0.01;
  constexpr int64_t kHorizonS = 1000;
  Table table("opposite_behind",
              absl::StrCat("a stage with target ", kTarget, " and a second opinion; ", size.stage_ids,
                           " ids in a horizon, each sent again within it; three horizons; seed ", size.seed),
              {"engine", "memory_bytes", "opinion_bytes", "fresh", "fresh_confirmed", "fresh_suspect",
               "copies", "copies_confirmed", "copies_suspect", "copies_unique"});
  for (const Engine engine : {Engine::kSliced, Engine::kCompact}) {
    for (const int64_t bytes_per_id : {8, 16, 32, 64, 128}) {
      auto stage = DedupStage::Create({.horizon = absl::Seconds(kHorizonS),
                                       .target_fpp = kTarget,
                                       .memory_limit_bytes = size.stage_ids * bytes_per_id,
                                       .engine = engine,
                                       .second_opinion = SecondOpinion::kOpposite,
                                       .pass_suspects = false,
                                       .audit_share = 0,
                                       .hash_seed = size.seed});
      if (!stage.ok()) {
        std::cerr << stage.status() << std::endl;
        std::abort();
      }
      auto partition = (*stage)->Open("lab");
      if (!partition.ok()) {
        std::cerr << partition.status() << std::endl;
        std::abort();
      }
      std::mt19937_64 random(size.seed);
      int64_t fresh[3] = {}, copies[3] = {};
      std::vector<bool> passed(static_cast<size_t>(3 * size.stage_ids), false);
      const auto judge = [&](int64_t number, double at) {
        const auto verdict =
            (*partition)->Judge(absl::StrCat("update ", number), absl::UnixEpoch() + absl::Seconds(at));
        return verdict.ok() ? static_cast<size_t>(*verdict) : 0;
      };
      for (int64_t i = 0; i < 3 * size.stage_ids; ++i) {
        const double at = static_cast<double>(i) * kHorizonS / static_cast<double>(size.stage_ids);
        const size_t verdict = judge(i, at);
        ++fresh[verdict];
        passed[static_cast<size_t>(i)] = verdict == static_cast<size_t>(Verdict::kUnique);
        // A copy of one that was passed within nine tenths of the horizon: stream time lags a little.
        const auto back = static_cast<int64_t>(random() % static_cast<uint64_t>(size.stage_ids * 9 / 10));
        if (back >= i || !passed[static_cast<size_t>(i - 1 - back)]) continue;
        ++copies[judge(i - 1 - back, at)];
      }
      const PartitionStatus status = (*partition)->Status();
      const auto of = [](Verdict verdict) { return static_cast<size_t>(verdict); };
      table.Add({std::string(EngineName(engine)), size.stage_ids * bytes_per_id,
                 status.second_opinion.memory_bytes, fresh[0] + fresh[1] + fresh[2],
                 fresh[of(Verdict::kDuplicate)], fresh[of(Verdict::kSuspect)],
                 copies[0] + copies[1] + copies[2], copies[of(Verdict::kDuplicate)],
                 copies[of(Verdict::kSuspect)], copies[of(Verdict::kUnique)]});
    }
  }
  return table;
}

}  // namespace lethe::lab
