// What a snapshot in the background costs those who are judged meanwhile.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "src/filter/engine_filter.h"

namespace lethe {
namespace {

constexpr int64_t kIds = 10'000'000;
constexpr int64_t kStartMs = 1'700'000'000'000;

struct Filled {
  std::unique_ptr<DedupStage> stage;
  std::unique_ptr<Partition> partition;
  std::string path;

  ~Filled() { std::filesystem::remove(path); }
};

StageOptions Options(int shards) {
  return {.horizon = absl::Hours(24),
          .target_fpp = 1e-6,
          .memory_limit_bytes = int64_t{1} << 30,
          .shards = shards};
}

std::unique_ptr<Filled> Fill(int shards) {
  auto filled = std::make_unique<Filled>();
  filled->stage = *DedupStage::Create(Options(shards));
  filled->partition = *filled->stage->Open("p");
  filled->path = std::filesystem::temp_directory_path() / absl::StrCat("lethe-snapshot-bench-", getpid());
  std::vector<Event> events;
  std::vector<Verdict> verdicts(1000);
  for (int64_t i = 0; i < kIds; ++i) {
    events.push_back(
        {.id = filled->partition->Hash(absl::StrCat(i)), .time = absl::FromUnixMillis(kStartMs + i * 8)});
    if (events.size() < verdicts.size()) continue;
    filled->partition->Judge(events, absl::MakeSpan(verdicts)).IgnoreError();
    events.clear();
  }
  return filled;
}

// What a transaction of 500 new ids takes, alone (0) and while the partition is saved in another thread, over
// and over (1): its mean, and the slowest one, in which whatever else the machine did is counted too.
void BM_JudgeWhileSaved(benchmark::State& state) {
  const auto filled = Fill(1);
  std::atomic<bool> stop = false;
  std::atomic<int64_t> saved = 0;
  std::thread saver([&] {
    while (state.range(0) == 1 && !stop) {
      auto live = filled->partition->BeginSnapshot({}, {});
      // A transaction is open, or the filter was refreshed meanwhile.
      if (live.ok() && (*live)->Write(filled->path).ok()) ++saved;
    }
  });
  std::vector<Event> events(500);
  std::vector<Verdict> verdicts(events.size());
  int64_t next = kIds;
  double slowest = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (Event& event : events) {
      event = {.id = filled->partition->Hash(absl::StrCat(next)),
               .time = absl::FromUnixMillis(kStartMs + next * 8)};
      ++next;
    }
    state.ResumeTiming();
    const auto start = std::chrono::steady_clock::now();
    auto transaction = filled->partition->Begin();
    transaction->Judge(events, absl::MakeSpan(verdicts)).IgnoreError();
    transaction->Commit();
    slowest =
        std::max(slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  stop = true;
  saver.join();
  state.counters["slowest_ms"] = slowest * 1e3;
  state.counters["saved"] = static_cast<double>(saved);
}
BENCHMARK(BM_JudgeWhileSaved)->Arg(0)->Arg(1)->Iterations(4000)->UseRealTime()->Unit(benchmark::kMicrosecond);

// A snapshot holds a shard's lock for one slice at a time: the longest that a judging call waits for it, on a
// processor of its own. By the shards that 10^7 ids are spread over.
void BM_CopySlice(benchmark::State& state) {
  constexpr size_t kSliceBytes = size_t{256} << 10;
  MemoryBudget memory(int64_t{1} << 30);
  const auto filter = *NewFilter({.target_fpp = 1e-6, .memory = &memory});
  std::vector<TimedId> ids(512);
  uint64_t number = 0;
  for (int64_t inserted = 0; inserted < kIds / state.range(0); inserted += std::ssize(ids)) {
    for (TimedId& each : ids) each = {HashId(absl::StrCat(number++), {}), kStartMs};
    filter->Insert(ids);
  }
  const auto* const engine = static_cast<const EngineFilter*>(filter.get());
  const auto image = *engine->BeginCopy();
  const absl::Span<const char> all = image.memory.front();
  std::string to(kSliceBytes, '\0');
  size_t at = 0;
  for (auto _ : state) {
    const absl::Span<const char> slice = all.subspan(at, kSliceBytes);
    benchmark::DoNotOptimize(engine->CopyMemory(image, slice, to.data()));
    at = at + slice.size() < all.size() ? at + slice.size() : 0;
  }
}
BENCHMARK(BM_CopySlice)->Arg(1)->Arg(4)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace lethe
