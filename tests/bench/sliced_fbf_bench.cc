// What the sliced filter costs: time per id, bits per id of the window and the rate of false positives, with
// the window full and no more memory than the model asks for; and how long calls take while a filter grows
// from nothing or gives its memory back.
//
// Arguments are the ids of a window, -log10 of the target, and the ids of a call.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "src/filter/sliced_fbf.h"
#include "src/fpp/sliced_model.h"

namespace lethe {
namespace {

constexpr int64_t kHorizonMs = 100'000'000;
constexpr size_t kIdsPerIteration = 1024;

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

IdHash Id(uint64_t number) {
  const uint64_t a = Mix(number);
  return {a, Mix(a ^ 0x1234567)};
}

double Seconds(const std::chrono::steady_clock::duration& time) {
  return std::chrono::duration<double>(time).count();
}

// A filter and new ids, at a steady rate of so many in a horizon.
class Stream {
 public:
  explicit Stream(const benchmark::State& state)
      : window_(static_cast<double>(state.range(0))),
        target_(std::pow(10.0, -static_cast<double>(state.range(1)))),
        per_call_(static_cast<size_t>(state.range(2))),
        // A hundredth over the model, and the smallest filter's own books.
        memory_(static_cast<int64_t>(1.01 / 8 * window_ * SlicedBitsPerId(SlicedShapeFor(target_), target_)) +
                20'000),
        filter_(*NewSlicedFbf(
            {.horizon = absl::Milliseconds(kHorizonMs), .target_fpp = target_, .memory = &memory_})),
        timed_(kIdsPerIteration),
        ids_(kIdsPerIteration),
        verdicts_(kIdsPerIteration) {}

  // Each judges as many ids and returns the seconds that it took, without the making of the ids.
  double TestAndInsert(double rate = 1) {
    for (TimedId& id : timed_) {
      time_ms_ += kHorizonMs / window_ / rate;
      id = {Id(next_++), static_cast<int64_t>(time_ms_)};
    }
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < timed_.size(); i += per_call_) {
      const size_t count = std::min(per_call_, timed_.size() - i);
      filter_->TestAndInsert({&timed_[i], count}, {&verdicts_[i], count});
    }
    return Seconds(std::chrono::steady_clock::now() - start);
  }
  double Contains() {
    for (IdHash& id : ids_) id = Id(next_++ | uint64_t{1} << 63);
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < ids_.size(); i += per_call_) {
      const size_t count = std::min(per_call_, ids_.size() - i);
      filter_->Contains({&ids_[i], count}, {&verdicts_[i], count});
    }
    return Seconds(std::chrono::steady_clock::now() - start);
  }

  // All that is new and yet called a duplicate is a false positive.
  double positives() const {
    return static_cast<double>(std::count(verdicts_.begin(), verdicts_.end(), Verdict::kDuplicate));
  }
  double horizons() const { return time_ms_ / kHorizonMs; }
  double window() const { return window_; }
  int64_t memory_bytes() const { return memory_.used_bytes(); }
  FilterStatus status() const { return filter_->Status(); }

 private:
  const double window_;
  const double target_;
  const size_t per_call_;
  MemoryBudget memory_;
  std::unique_ptr<Filter> filter_;
  std::vector<TimedId> timed_;
  std::vector<IdHash> ids_;
  std::vector<Verdict> verdicts_;
  uint64_t next_ = 0;
  double time_ms_ = 0;
};

void Report(benchmark::State& state, const Stream& stream, double positives) {
  const auto ids = static_cast<double>(state.iterations() * kIdsPerIteration);
  state.SetItemsProcessed(static_cast<int64_t>(ids));
  const FilterStatus status = stream.status();
  state.counters["bits_per_id"] = static_cast<double>(status.memory_bytes) * 8 / stream.window();
  state.counters["fpp"] = positives / ids;
  state.counters["fpp_estimated"] = status.fpp_estimated;
  state.counters["window_horizons"] = absl::ToDoubleMilliseconds(status.window) / kHorizonMs;
}

void TestAndInsert(benchmark::State& state) {
  Stream stream(state);
  while (stream.horizons() < 2) stream.TestAndInsert();
  double positives = 0;
  while (state.KeepRunning()) {
    state.SetIterationTime(stream.TestAndInsert());
    positives += stream.positives();
  }
  Report(state, stream, positives);
}

void Contains(benchmark::State& state) {
  Stream stream(state);
  while (stream.horizons() < 2) stream.TestAndInsert();
  double positives = 0;
  while (state.KeepRunning()) {
    state.SetIterationTime(stream.Contains());
    positives += stream.positives();
  }
  Report(state, stream, positives);
}

// The time of all is the first window's, of a filter that begins with some KiB; then the load falls to a
// twentieth. The slowest iterations of 1,024 ids say what a caller may have to wait for.
void GrowAndShrink(benchmark::State& state) {
  while (state.KeepRunning()) {
    Stream stream(state);
    double seconds = 0;
    double slowest_growing = 0;
    while (stream.horizons() < 1) {
      const double took = stream.TestAndInsert();
      seconds += took;
      slowest_growing = std::max(slowest_growing, took);
    }
    const auto most = static_cast<double>(stream.memory_bytes());
    double slowest_shrinking = 0;
    while (stream.horizons() < 5) {
      slowest_shrinking = std::max(slowest_shrinking, stream.TestAndInsert(0.05));
    }
    state.SetIterationTime(seconds);
    state.counters["slowest_growing_us"] = slowest_growing * 1e6;
    state.counters["slowest_shrinking_us"] = slowest_shrinking * 1e6;
    state.counters["MiB_at_most"] = most / (1 << 20);
    state.counters["MiB_at_last"] = static_cast<double>(stream.memory_bytes()) / (1 << 20);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void Status(benchmark::State& state) {
  Stream stream(state);
  while (stream.horizons() < 1) stream.TestAndInsert();
  while (state.KeepRunning()) benchmark::DoNotOptimize(stream.status().fpp_estimated);
}

BENCHMARK(TestAndInsert)
    ->UseManualTime()
    ->Args({1'000'000, 4, 512})
    ->Args({10'000'000, 2, 512})
    ->Args({10'000'000, 4, 512})
    ->Args({10'000'000, 4, 1})
    ->Args({10'000'000, 6, 512})
    ->Args({10'000'000, 9, 512});
BENCHMARK(Contains)
    ->UseManualTime()
    ->Args({10'000'000, 4, 512})
    ->Args({10'000'000, 4, 1})
    ->Args({10'000'000, 6, 512});
BENCHMARK(GrowAndShrink)
    ->UseManualTime()
    ->Args({10'000'000, 6, 512})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(Status)->Args({10'000'000, 6, 512})->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace lethe
