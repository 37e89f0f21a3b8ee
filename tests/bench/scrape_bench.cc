// What a scrape of 1,000 partitions costs. It works on a copy of the figures, in a thread of the HTTP server:
// the stream waits only while a pointer is taken, and for its processor.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "connectors/http/responses.h"
#include "lethe/stage.h"
#include "src/cli/metrics/metrics.h"
#include "src/pipeline/report/lane_figures.h"

namespace lethe {
namespace {

// A partition's status as it is: that of a filter which has seen some horizons.
PartitionStatus SomeStatus() {
  auto stage = *DedupStage::Create(
      {.horizon = absl::Hours(1), .target_fpp = 1e-6, .memory_limit_bytes = int64_t{64} << 20});
  auto partition = *stage->Open("orders-0");
  for (int i = 0; i < 100'000; ++i) {
    partition->Judge(std::to_string(i), absl::FromUnixSeconds(1'700'000'000 + i / 10)).status().IgnoreError();
  }
  return partition->Status();
}

DaemonReport Report(int64_t partitions) {
  DaemonReport report;
  report.first.input = "orders";
  report.first.output = "orders-unique";
  report.group = "lethe-orders";
  report.lanes.resize(4);
  const PartitionStatus status = SomeStatus();
  for (int64_t i = 0; i < partitions; ++i) {
    PartitionReport partition;
    partition.partition = static_cast<int32_t>(i);
    partition.topic = "orders";
    partition.filter = status;
    partition.counts.unique = 1'234'567 * i;
    report.lanes[static_cast<size_t>(i) % report.lanes.size()].partitions.push_back(std::move(partition));
  }
  for (LaneReport& lane : report.lanes) {
    lane.histograms = LaneFigures().histograms();
    lane.consumer.known = lane.producer.known = true;
  }
  return report;
}

// All that a scrape does but the socket: the copy, the families, the text.
void BM_Scrape(benchmark::State& state) {
  const DaemonReport report = Report(state.range(0));
  const MetricsOptions options = {.per_partition = state.range(1) != 0, .configuration = "0123456789abcdef"};
  std::string text;
  for (auto _ : state) {
    const DaemonReport copy = report;
    text = http::MetricsText(Metrics(copy, options)).body;
    benchmark::DoNotOptimize(text);
  }
  state.counters["lines"] = static_cast<double>(std::count(text.begin(), text.end(), '\n'));
  state.counters["MB"] = static_cast<double>(text.size()) / 1e6;
}
BENCHMARK(BM_Scrape)
    ->ArgNames({"partitions", "each"})
    ->ArgsProduct({{100, 1000}, {1, 0}})
    ->Unit(benchmark::kMillisecond);

// What a lane does for it four times a second, without asking the filters: a copy of all figures.
void BM_Publish(benchmark::State& state) {
  const DaemonReport report = Report(state.range(0));
  for (auto _ : state) {
    std::vector<LaneReport> copy = report.lanes;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(BM_Publish)->ArgName("partitions")->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lethe
