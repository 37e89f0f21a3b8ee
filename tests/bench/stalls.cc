#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/clocks.h"
#include "tests/bench/layouts.h"
#include "tests/bench/tables.h"
#include "tests/bench/traffic.h"

namespace lethe::bench {
namespace {

constexpr double kTarget = 1e-6;
constexpr size_t kChunk = 8192;

// Calls judge(ids, verdict) for one id at a time, for so many horizons of traffic at its present rate.
template <typename Judge>
Latencies TimeCalls(Traffic* traffic, double ids, Judge judge) {
  std::vector<TimedId> chunk(kChunk);
  std::vector<bool> is_copy(kChunk);
  std::vector<Verdict> verdicts(kChunk);
  Latencies latencies;
  for (double done = 0; done < ids; done += kChunk) {
    traffic->Next(&chunk, &is_copy);
    int64_t before = WallNanos();
    for (size_t i = 0; i < kChunk; ++i) {
      judge(absl::MakeConstSpan(&chunk[i], 1), absl::MakeSpan(&verdicts[i], 1));
      const int64_t after = WallNanos();
      latencies.Add(after - before);
      before = after;
    }
  }
  return latencies;
}

std::vector<std::string> Row(double window, const std::string& phase, const Latencies& latencies,
                             const std::string& what) {
  return {IdsText(window),
          phase,
          what,
          FigureText(latencies.Percentile(0.5)),
          FigureText(latencies.Percentile(0.999)),
          FigureText(latencies.Percentile(0.99999) * 1e-3),
          FigureText(latencies.Most() * 1e-3)};
}

absl::Status MeasureWindow(double window, Table* table) {
  ShowProgress(absl::StrCat("stalls, ", IdsText(window), " ids"));
  // Twice as much as is needed, so that the limit is not met.
  absl::StatusOr<Layout> layout = MakeSliced(window, kTarget, 100);
  if (!layout.ok()) return layout.status();
  Filter& filter = *layout->filter;
  Traffic traffic(window);
  const auto judge = [&](absl::Span<const TimedId> id, absl::Span<Verdict> verdict) {
    filter.TestAndInsert(id, verdict);
  };
  const auto none = [](absl::Span<const TimedId>, absl::Span<Verdict>) {};
  const auto phase = [&](const std::string& name, double ids) {
    const FilterStatus before = filter.Status();
    const Latencies latencies = TimeCalls(&traffic, ids, judge);
    const FilterStatus after = filter.Status();
    const auto lines = [](const FilterStatus& status) {
      return static_cast<double>(status.bits_per_generation);
    };
    const bool grew = lines(after) >= lines(before);
    const double factor = grew ? lines(after) / lines(before) : lines(before) / lines(after);
    table->rows.push_back(
        Row(window, name, latencies,
            absl::StrFormat("%d refreshes, lines %s %.0f", after.refreshes - before.refreshes,
                            grew ? "times" : "by", factor)));
  };
  table->rows.push_back(Row(window, "no call", TimeCalls(&traffic, window / 4, none), "the clock alone"));
  phase("grows from nothing", window);
  phase("steady", window);
  traffic.SetRate(0.02);
  phase("shrinks at a 50th of the rate", window * 0.02 * 4);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Table> MeasureStalls(const Extent& extent) {
  Table table{.heading = "Stalls: single calls of the sliced filter, target 1e-06",
              .text = "",
              .columns = {"ids", "phase", "what happened", "median, ns", "99.9 %, ns", "99.999 %, us",
                          "slowest, us"}};
  for (const double window : {1e6, 1e7, 1e8}) {
    if (window > extent.largest_window) break;
    if (absl::Status status = MeasureWindow(window, &table); !status.ok()) return status;
  }
  return table;
}

}  // namespace lethe::bench
