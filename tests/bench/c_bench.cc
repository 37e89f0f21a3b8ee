// What the C interface costs beside the C++ API: the same ids, from their bytes to their verdicts.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/lethe.h"
#include "lethe/stage.h"

namespace lethe {
namespace {

constexpr int64_t kWindow = 1'000'000;  // ids of a horizon
constexpr int64_t kHorizonMs = 3'600'000;
constexpr size_t kBatch = 512;
constexpr size_t kTexts = size_t{1} << 22;

// Ids that do not repeat for four horizons.
const std::vector<std::string>& Texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> made(kTexts);
    for (size_t i = 0; i < kTexts; ++i) made[i] = absl::StrCat("order-", 1'000'000'000 + i);
    return made;
  }();
  return texts;
}

struct Next {
  int64_t n = 0;
  const std::string& id() const { return Texts()[static_cast<size_t>(n) % kTexts]; }
  int64_t time_ms() const { return n * kHorizonMs / kWindow; }
};

void Check(bool ok) {
  if (!ok) std::abort();
}

// judge(next) takes some ids; two windows pass before any is timed.
template <typename Judge>
void Run(benchmark::State& state, size_t per_call, Judge judge) {
  Next next;
  while (next.n < 2 * kWindow) judge(&next);
  for (auto _ : state) judge(&next);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * per_call));
}

struct Cpp {
  std::unique_ptr<DedupStage> stage = *DedupStage::Create({.horizon = absl::Milliseconds(kHorizonMs)});
  std::unique_ptr<Partition> partition = *stage->Open("bench");
};

struct C {
  C() {
    lethe_options options;
    lethe_options_init(&options, sizeof options);
    options.horizon_ms = kHorizonMs;
    Check(lethe_stage_create(&options, &stage) == LETHE_OK);
    Check(lethe_partition_open(stage, "bench", &partition) == LETHE_OK);
  }
  ~C() {
    lethe_partition_free(partition);
    lethe_stage_free(stage);
  }
  C(const C&) = delete;
  C& operator=(const C&) = delete;
  lethe_stage* stage = nullptr;
  lethe_partition* partition = nullptr;
};

void BM_CppBatch(benchmark::State& state) {
  Cpp cpp;
  std::vector<Event> events(kBatch);
  std::vector<Verdict> verdicts(kBatch);
  Run(state, kBatch, [&](Next* next) {
    for (Event& event : events) {
      event = {.id = cpp.partition->Hash(next->id()), .time = absl::FromUnixMillis(next->time_ms())};
      ++next->n;
    }
    Check(cpp.partition->Judge(events, absl::MakeSpan(verdicts)).ok());
  });
}

void BM_CBatch(benchmark::State& state) {
  C c;
  std::vector<lethe_event> events(kBatch);
  std::vector<uint8_t> verdicts(kBatch);
  Run(state, kBatch, [&](Next* next) {
    for (lethe_event& event : events) {
      event = {.id = next->id().data(),
               .id_size = next->id().size(),
               .time_ms = next->time_ms(),
               .payload = nullptr,
               .payload_size = 0};
      ++next->n;
    }
    Check(lethe_partition_judge_batch(c.partition, events.data(), kBatch, verdicts.data()) == LETHE_OK);
  });
}

void BM_CppSingle(benchmark::State& state) {
  Cpp cpp;
  Run(state, 1, [&](Next* next) {
    Check(cpp.partition->Judge(next->id(), absl::FromUnixMillis(next->time_ms())).ok());
    ++next->n;
  });
}

void BM_CSingle(benchmark::State& state) {
  C c;
  uint8_t verdict = 0;
  Run(state, 1, [&](Next* next) {
    const std::string& id = next->id();
    Check(lethe_partition_judge(c.partition, id.data(), id.size(), next->time_ms(), &verdict) == LETHE_OK);
    ++next->n;
  });
}

BENCHMARK(BM_CppBatch);
BENCHMARK(BM_CBatch);
BENCHMARK(BM_CppSingle);
BENCHMARK(BM_CSingle);

}  // namespace
}  // namespace lethe
