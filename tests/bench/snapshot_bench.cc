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

}  // namespace
}  // namespace lethe
