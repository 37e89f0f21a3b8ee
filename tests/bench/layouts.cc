#include "tests/bench/layouts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/filter/compact_formats.h"
#include "src/filter/compact_probe.h"
#include "src/published/published_fbf.h"
#include "src/published/published_model.h"
#include "tests/bench/rivals/apbf.h"
#include "tests/bench/rivals/cuckoo.h"
#include "tests/bench/rivals/fixed_table.h"
#include "tests/bench/rivals/hash_set_generations.h"
#include "tests/bench/rivals/rocks_store.h"
#include "tests/bench/rivals/split_block.h"
#include "tests/bench/rivals/two_lines.h"
#include "tests/bench/traffic.h"

namespace lethe::bench {
namespace {

// An engine that begins with a 64th of its limit, at most, and grows as it must.
absl::StatusOr<Layout> FromEngine(const std::string& name, Engine engine, int generations, double window,
                                  double target_fpp) {
  constexpr double kMostBitsPerId = 512;
  Layout layout{.name = name,
                .generations = generations,
                .memory = std::make_unique<MemoryBudget>(static_cast<int64_t>(kMostBitsPerId / 8 * window))};
  absl::StatusOr<std::unique_ptr<Filter>> filter = NewFilter({.horizon = absl::Milliseconds(kHorizonMs),
                                                              .target_fpp = target_fpp,
                                                              .memory = layout.memory.get(),
                                                              .engine = engine});
  if (!filter.ok()) return filter.status();
  layout.filter = *std::move(filter);
  return layout;
}

// As many bits as compact takes with many ids.
constexpr double kPublishedBits = 38;
constexpr double kTwoLinesBits = 38;

// The memory of the lines that compact has once it has grown, filled as far as there.
template <typename Tag, typename Processor>
absl::StatusOr<Layout> MakeFixedTableOf(const CompactFormats& formats, double window) {
  const CompactFormat format = formats[kCompactSmallLevel];
  const double most_ids = window * (1 + 1.0 / CompactEpochs::kInHorizon);
  const auto lines = static_cast<int64_t>(most_ids / (kCompactFullLoad * format.slots)) + 1;
  return OnLines(
      "fixed table", CompactEpochs::kInHorizon + 1, lines * kCompactLineBytes, [&](LineMemory memory) {
        return std::make_unique<FixedTable<Tag, Processor>>(std::move(memory), lines, format, kHorizonMs);
      });
}

template <typename Processor>
absl::StatusOr<Layout> MakeFixedTableFor(double window, double target_fpp) {
  const CompactFormats formats = CompactFormatsFor(target_fpp);
  return formats.wide ? MakeFixedTableOf<uint16_t, Processor>(formats, window)
                      : MakeFixedTableOf<uint8_t, Processor>(formats, window);
}

absl::StatusOr<Layout> MakeFixedTable(double window, double target_fpp) {
#if defined(__x86_64__)
  if (RunsAvx2()) return MakeFixedTableFor<Avx2Processor>(window, target_fpp);
#endif
  return MakeFixedTableFor<AnyProcessor>(window, target_fpp);
}

absl::StatusOr<Layout> MakeCuckoo(double window, double target_fpp) {
  const int64_t buckets = CuckooEpochs::BucketsFor(window);
  const int bits = CuckooEpochs::FingerprintBitsFor(target_fpp);
  return OnLines("cuckoo", CuckooEpochs::kEpochs + 1, CuckooEpochs::BytesFor(buckets, bits),
                 [&](LineMemory memory) {
                   return std::make_unique<CuckooEpochs>(std::move(memory), buckets, bits, kHorizonMs);
                 });
}

// Bits per id of the window for 1e-4 and for 1e-6. An id is a bucket and 32 bits: too few for lower targets.
absl::StatusOr<Layout> MakeSplitBlock(double window, double target_fpp) {
  const double bits_per_id = target_fpp > 1e-5 ? 34.1 : 55.6;
  const auto buckets = static_cast<int64_t>(bits_per_id * window / (256 * kSplitGenerations));
  return OnLines("split-block", kSplitGenerations, buckets * kSplitGenerations * 32, [&](LineMemory memory) {
    return std::make_unique<SplitBlockFbf>(std::move(memory), buckets, kHorizonMs);
  });
}

// The k and l of the fewest bits among those with l up to 64, by the paper's recursion for the rate.
absl::StatusOr<Layout> MakeApbf(double window, double target_fpp) {
  const int k = target_fpp > 1e-5 ? 18 : target_fpp > 1e-8 ? 25 : 34;
  const int l = target_fpp > 1e-5 ? 61 : target_fpp > 1e-8 ? 63 : 58;
  // Half full after the ids of k intervals.
  const auto slice = static_cast<int64_t>(k * window / l / std::log(2) / 64 + 1) * 64;
  return OnLines("apbf", k + l, (k + l) * slice / 8, [&](LineMemory memory) {
    return std::make_unique<Apbf>(std::move(memory), k, l, slice, kHorizonMs);
  });
}

absl::StatusOr<Layout> MakeTwoLines(double window) {
  return OnLines(kFloor, 0, static_cast<int64_t>(kTwoLinesBits / 8 * window),
                 [](LineMemory memory) { return std::make_unique<TwoLines>(std::move(memory), kHorizonMs); });
}

// The fewest hashes with a rate within a tenth of the lowest that the size allows.
int PublishedHashes(double bits_per_id) {
  const std::vector<double> interval(16, 1.0 / 15);
  std::vector<double> fpp;
  for (int k = 1; k <= 30; ++k) fpp.push_back(FppWithSharedIntervals(interval, bits_per_id / 16, k));
  const double lowest = *std::min_element(fpp.begin(), fpp.end());
  const auto enough = [&](double value) { return value <= 1.1 * lowest; };
  return static_cast<int>(std::find_if(fpp.begin(), fpp.end(), enough) - fpp.begin()) + 1;
}

absl::StatusOr<Layout> MakeHashSets(const std::string& name, double window) {
  const int generations = HashSetGenerations::SmallestFor(window);
  Layout layout{.name = name, .generations = generations};
  layout.filter = std::make_unique<HashSetGenerations>(generations, window, kHorizonMs);
  return layout;
}

absl::StatusOr<Layout> MakeRocksStore() {
#ifdef LETHE_ROCKSDB
  absl::StatusOr<std::unique_ptr<Filter>> store = NewRocksStore(kHorizonMs);
  if (!store.ok()) return store.status();
  return Layout{.name = "RocksDB", .generations = 1, .filter = *std::move(store)};
#else
  return absl::UnimplementedError("built without RocksDB");
#endif
}

absl::StatusOr<Layout> MakePublished(double window) {
  constexpr int kGenerations = 16;
  Layout layout{.name = "published",
                .generations = kGenerations,
                .memory = std::make_unique<MemoryBudget>(kAmpleBytes)};
  absl::StatusOr<std::unique_ptr<Filter>> filter = PublishedFbf::Create(
      {.past_generations = kGenerations - 2,
       .bits_per_generation = static_cast<int64_t>(kPublishedBits * window / kGenerations),
       .hashes = PublishedHashes(kPublishedBits),
       .refresh_period = absl::Milliseconds(kHorizonMs / (kGenerations - 1) + 1),
       .memory = layout.memory.get()});
  if (!filter.ok()) return filter.status();
  layout.filter = *std::move(filter);
  return layout;
}

}  // namespace

std::vector<std::string> LayoutNames(double window, double target_fpp) {
  const bool has_all = target_fpp == kDefaultTarget;
  std::vector<std::string> names = {"compact", "fixed table"};
  if (has_all) names.emplace_back(kFloor);
  if (window > 5e7) return names;
  names.insert(names.end(), {"cuckoo", "apbf"});
  if (target_fpp > 1e-8) names.emplace_back("split-block");
  if (!has_all) return names;
  names.insert(names.end(), {"published", "exact", "exact-engine"});
#ifdef LETHE_ROCKSDB
  if (window < 5e6) names.emplace_back("RocksDB");
#endif
  return names;
}

absl::StatusOr<Layout> MakeLayout(const std::string& name, double window, double target_fpp) {
  if (name == kFloor) return MakeTwoLines(window);
  if (name == "published") return MakePublished(window);
  if (name == "fixed table") return MakeFixedTable(window, target_fpp);
  if (name == "cuckoo") return MakeCuckoo(window, target_fpp);
  if (name == "split-block") return MakeSplitBlock(window, target_fpp);
  if (name == "apbf") return MakeApbf(window, target_fpp);
  if (name == "compact") return FromEngine(name, Engine::kCompact, 18, window, target_fpp);
  if (name == "exact-engine") return FromEngine(name, Engine::kExact, 18, window, target_fpp);
  if (name == "exact") return MakeHashSets(name, window);
  if (name == "RocksDB") return MakeRocksStore();
  return absl::InvalidArgumentError(absl::StrCat("there is no layout ", name));
}

}  // namespace lethe::bench
