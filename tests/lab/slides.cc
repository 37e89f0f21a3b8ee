// The slides' comparison of the three approaches and the recycled Bloom filter, on one run.
#include <algorithm>
#include <cmath>
#include <random>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tests/lab/experiments.h"

namespace lethe::lab {
namespace {

struct Update {
  uint64_t number;
  int64_t time_ms;
  bool is_retry;
  bool is_late = false;  // its first request was lost: this is the client's second one
};

// Steady updates, of which a share is sent once more within the horizon, because the acknowledgement was
// lost; of another share the request was lost, and only what is sent again arrives.
std::vector<Update> Updates(const SlidesSize& size) {
  std::mt19937_64 random(size.seed);
  std::vector<Update> updates;
  const int64_t count = size.horizons * size.ids_per_horizon;
  const int64_t end_ms = size.horizons * size.horizon_ms;
  std::bernoulli_distribution is_retried(size.retried);
  std::bernoulli_distribution is_lost(size.requests_lost);
  std::uniform_int_distribution<int64_t> delay(1, size.horizon_ms);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t now_ms = i * end_ms / count;
    const int64_t retry_ms = now_ms + delay(random);
    if (is_lost(random)) {
      if (retry_ms < end_ms) updates.push_back({static_cast<uint64_t>(i), retry_ms, false, true});
      continue;
    }
    updates.push_back({static_cast<uint64_t>(i), now_ms, false});
    if (is_retried(random) && retry_ms < end_ms)
      updates.push_back({static_cast<uint64_t>(i), retry_ms, true});
  }
  std::stable_sort(updates.begin(), updates.end(),
                   [](const Update& x, const Update& y) { return x.time_ms < y.time_ms; });
  return updates;
}

// Approach 2: "server maintains list of all updates".
class ExactList {
 public:
  bool InsertIfNew(IdHash id) { return ids_.insert({id.a, id.b}).second; }
  // A control byte beside each place.
  int64_t bytes() const { return static_cast<int64_t>(ids_.capacity() * (sizeof(IdHash) + 1)); }

 private:
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> ids_;
};

// With that many bytes, which are a 64th of the limit for those of a fixed size.
OwnedFilter MakeEqual(const AnyEngine& engine, const FilterOptions& options, int64_t bytes) {
  return engine == Engine::kPublished ? MakeFixedPublished(options, 64 * bytes)
                                      : MakeFilter(engine, options, 64 * bytes);
}

}  // namespace

Table Slides(const SlidesSize& size) {
  const int64_t bytes = size.ids_per_horizon * size.bits_per_id / 8;
  Table table("slides",
              absl::StrCat("horizon ", size.horizon_ms / 1000, " s; ", size.ids_per_horizon,
                           " updates in a horizon; ", 100 * size.retried,
                           " % are retried within it, since the acknowledgement was lost, and ",
                           100 * size.requests_lost, " %, since the request was; target ", size.target,
                           "; Bloom, recycled and published filters of ", bytes, " bytes; ", size.probes,
                           " probes at each point; seed ", size.seed),
              {"filter", "second", "bytes", "fpp", "low", "high", "estimated", "counter", "truth", "lost",
               "passed_retries"});
  const std::vector<Update> updates = Updates(size);
  const auto run = [&](const std::string& name, const auto& insert_if_new, const auto& count_hits,
                       const auto& bytes_now, const auto& estimated_fpp) {
    int64_t truth = 0, lost = 0, passed_retries = 0;
    const int64_t point_ms = size.horizon_ms / size.points_per_horizon;
    int64_t next_point_ms = point_ms;
    const auto note = [&] {
      CountedRate rate;
      rate.Add(count_hits(), size.probes);
      const Interval band = rate.Band();
      table.Add({name, static_cast<double>(next_point_ms) / 1000, int64_t{bytes_now()}, rate.rate(), band.low,
                 band.high, double{estimated_fpp()}, truth - lost + passed_retries, truth, lost,
                 passed_retries});
      next_point_ms += point_ms;
    };
    for (const Update& update : updates) {
      while (update.time_ms >= next_point_ms) note();
      const bool is_new = insert_if_new(NumberedId(update.number, size.seed), update);
      truth += update.is_retry ? 0 : 1;
      lost += !update.is_retry && !is_new ? 1 : 0;
      passed_retries += update.is_retry && is_new ? 1 : 0;
    }
    note();
  };
  const auto none = [] { return int64_t{0}; };
  const auto no_rate = [] { return 0.0; };
  run(
      "no retries", [](IdHash, const Update& update) { return !update.is_retry && !update.is_late; }, none,
      none, no_rate);
  run(
      "no filter", [](IdHash, const Update&) { return true; }, none, none, no_rate);
  ExactList list;
  run(
      "exact list", [&](IdHash id, const Update&) { return list.InsertIfNew(id); }, none,
      [&] { return list.bytes(); }, no_rate);
  for (const AnyEngine& engine : {AnyEngine(Reference::kBloom), AnyEngine(Reference::kRecycled),
                                  AnyEngine(Engine::kPublished), AnyEngine(Engine::kCompact)}) {
    const FilterOptions options = {.horizon = absl::Milliseconds(size.horizon_ms), .target_fpp = size.target};
    const OwnedFilter filter = MakeEqual(engine, options, bytes);
    run(
        std::string(EngineName(engine)),
        [&](IdHash id, const Update& update) {
          return TestAndInsertOne(*filter, id, update.time_ms) == Verdict::kUnique;
        },
        [&] { return CountStrangers(*filter, size.probes, size.seed); },
        [&] { return filter->Status().memory_bytes; }, [&] { return filter->Status().fpp.estimated; });
  }
  return table;
}

Table RecycledPeriods(const SlidesSize& size, const std::vector<double>& periods) {
  const int64_t bytes = size.ids_per_horizon * size.bits_per_id / 8;
  Table table("recycled",
              absl::StrCat("as the slides' run, of ", size.horizons, " horizons; filters of ", bytes,
                           " bytes; seed ", size.seed),
              {"filter", "periods", "missed_share", "lost_share"});
  const std::vector<Update> updates = Updates(size);
  const auto run = [&](const AnyEngine& engine, double horizons) {
    const FilterOptions options = {
        .horizon = absl::Milliseconds(std::llround(horizons * static_cast<double>(size.horizon_ms))),
        .target_fpp = size.target};
    const OwnedFilter filter = MakeEqual(engine, options, bytes);
    std::vector<bool> has_passed(static_cast<size_t>(size.horizons * size.ids_per_horizon));
    int64_t firsts = 0, lost = 0, retries = 0, missed = 0;
    for (const Update& update : updates) {
      const bool is_new =
          TestAndInsertOne(*filter, NumberedId(update.number, size.seed), update.time_ms) == Verdict::kUnique;
      if (!update.is_retry) {
        ++firsts;
        lost += is_new ? 0 : 1;
        has_passed[update.number] = is_new;
      } else if (has_passed[update.number]) {
        ++retries;
        missed += is_new ? 1 : 0;
      }
    }
    const auto share = [](int64_t part, int64_t all) {
      return static_cast<double>(part) / static_cast<double>(all);
    };
    table.Add({std::string(EngineName(engine)), horizons, share(missed, retries), share(lost, firsts)});
  };
  for (const double period : periods) run(Reference::kRecycled, period);
  run(Engine::kPublished, 1);
  return table;
}

}  // namespace lethe::lab
