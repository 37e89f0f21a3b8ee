// How long the sliced filter takes per id, and how many bits: fills a filter until its window is in a
// steady state, then measures.
//
//   sliced_fbf_speed [ids in the window] [target] [ids per call]
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "src/filter/sliced_fbf.h"
#include "src/fpp/sliced_model.h"

namespace {

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

lethe::IdHash Id(uint64_t number) {
  const uint64_t a = Mix(number);
  return {a, Mix(a ^ 0x1234567)};
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  const double window = argc > 1 ? std::atof(argv[1]) : 1e7;
  const double target = argc > 2 ? std::atof(argv[2]) : 1e-4;
  const size_t per_call = argc > 3 ? static_cast<size_t>(std::atoll(argv[3])) : 512;
  const double spare = argc > 4 ? std::atof(argv[4]) : 1.0;
  const lethe::SlicedShape shape = lethe::SlicedShapeFor(target);
  // A limit with no room beyond what the model asks for.
  const auto limit = static_cast<int64_t>(window * lethe::SlicedBitsPerId(shape, target) / 8 * spare) + 20000;
  lethe::MemoryBudget memory(limit);
  constexpr int64_t kHorizon = 100'000'000;
  auto made = lethe::NewSlicedFbf(
      {.horizon = absl::Milliseconds(kHorizon), .target_fpp = target, .memory = &memory});
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", std::string(made.status().message()).c_str());
    return 1;
  }
  lethe::Filter& filter = **made;
  std::vector<lethe::TimedId> ids(per_call);
  std::vector<lethe::Verdict> verdicts(per_call);
  const auto count = static_cast<uint64_t>(window);
  uint64_t next = 0;
  double seconds = 0;
  double slowest = 0;
  uint64_t timed = 0;
  uint64_t duplicates = 0;
  while (next < 4 * count) {
    for (lethe::TimedId& id : ids) {
      id = {Id(next), static_cast<int64_t>(static_cast<double>(next) * kHorizon / window)};
      ++next;
    }
    const double start = Now();
    filter.TestAndInsert(ids, absl::MakeSpan(verdicts));
    const double took = Now() - start;
    slowest = std::max(slowest, took);
    if (next < 2 * count) continue;
    seconds += took;
    timed += per_call;
    for (const lethe::Verdict verdict : verdicts) duplicates += verdict == lethe::Verdict::kDuplicate;
  }
  std::vector<lethe::IdHash> strangers(per_call);
  double probing = 0;
  double positives = 0;
  uint64_t probes = 0;
  for (uint64_t i = 0; probes < count; ++i) {
    for (size_t j = 0; j < per_call; ++j) strangers[j] = Id((i * per_call + j) | uint64_t{1} << 63);
    const double start = Now();
    filter.Contains(strangers, absl::MakeSpan(verdicts));
    probing += Now() - start;
    for (const lethe::Verdict verdict : verdicts) positives += verdict == lethe::Verdict::kDuplicate;
    probes += per_call;
  }
  const double status_start = Now();
  const lethe::FilterStatus status = filter.Status();
  const double status_seconds = Now() - status_start;
  std::printf(
      "window %.0f target %g, %zu ids a call: %.1f ns per id (look-ups alone %.1f), slowest call %.0f us, "
      "%.1f bits per id, FPP %.3g while inserting, %.3g by probing, modelled %.3g estimated %.3g at end "
      "%.3g, window %.3f horizons, %ld limit hits, status %.2f ms\n",
      window, target, per_call, seconds / static_cast<double>(timed) * 1e9,
      probing / static_cast<double>(probes) * 1e9, slowest * 1e6,
      static_cast<double>(status.memory_bytes) * 8 / window,
      static_cast<double>(duplicates) / static_cast<double>(timed), positives / static_cast<double>(probes),
      status.fpp_modelled, status.fpp_estimated, status.fpp_at_interval_end,
      absl::ToDoubleMilliseconds(status.window) / kHorizon, static_cast<long>(status.limit_hits),
      status_seconds * 1e3);
}
