// What the status of a partition costs, and what it costs those who judge meanwhile.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lethe/stage.h"

namespace lethe {
namespace {

constexpr int64_t kIds = 1'000'000;
constexpr int64_t kHorizonMs = 24 * 3'600'000;
constexpr size_t kBatch = 500;

class Filled {
 public:
  explicit Filled(int shards)
      : stage_(*DedupStage::Create({.horizon = absl::Milliseconds(kHorizonMs), .shards = shards})),
        partition_(*stage_->Open("p")) {
    while (next_ < 2 * kIds) Judge();
  }

  // Judges a batch of new ids, which come steadily.
  void Judge() {
    for (Event& event : events_) {
      event = {.id = partition_->Hash(absl::StrCat(next_)),
               .time = absl::FromUnixMillis(next_ * (kHorizonMs / kIds))};
      ++next_;
    }
    partition_->Judge(events_, absl::MakeSpan(verdicts_)).IgnoreError();
  }
  Partition& partition() { return *partition_; }

 private:
  const std::unique_ptr<DedupStage> stage_;
  const std::unique_ptr<Partition> partition_;
  int64_t next_ = 0;
  std::vector<Event> events_{kBatch};
  std::vector<Verdict> verdicts_{kBatch};
};

// Each after a batch that was judged, so that what it reads is as it is in a program at work.
void BM_Status(benchmark::State& state) {
  Filled filled(static_cast<int>(state.range(0)));
  double slowest = 0;
  for (auto _ : state) {
    filled.Judge();
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(filled.partition().Status());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(took.count());
    slowest = std::max(slowest, took.count());
  }
  state.counters["slowest_us"] = slowest * 1e6;
}
BENCHMARK(BM_Status)->Arg(1)->Arg(16)->Arg(256)->UseManualTime()->Iterations(2000)->Unit(
    benchmark::kMicrosecond);

// Batches alone (0), and while another thread asks for the status a thousand times a second (1).
void BM_JudgeBesideStatus(benchmark::State& state) {
  Filled filled(static_cast<int>(state.range(0)));
  std::atomic<bool> stop = false;
  std::thread asker([&] {
    while (state.range(1) == 1 && !stop) {
      benchmark::DoNotOptimize(filled.partition().Status());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  double slowest = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    filled.Judge();
    slowest =
        std::max(slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  stop = true;
  asker.join();
  state.counters["slowest_us"] = slowest * 1e6;
}
BENCHMARK(BM_JudgeBesideStatus)
    ->ArgsProduct({{1, 16, 256}, {0, 1}})
    ->UseRealTime()
    ->Iterations(20000)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace lethe
