#include <algorithm>
#include <array>
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
// Of a window. Some fifteen are an interval.
constexpr double kBatch = 1.0 / 256;

// What happened in a batch, the rarest of it.
enum Event : size_t { kNothing, kRefresh, kFold, kUnfold, kEvents };
constexpr std::array<const char*, kEvents> kEventNames = {"nothing", "a refresh", "a fold", "an unfold"};

// Adds the times of calls for one id each.
template <typename Judge>
void TimeCalls(Traffic* traffic, double ids, Judge judge, Latencies* latencies) {
  std::vector<TimedId> chunk(kChunk);
  std::vector<bool> is_copy(kChunk);
  std::vector<Verdict> verdicts(kChunk);
  for (double done = 0; done < ids; done += kChunk) {
    traffic->Next(&chunk, &is_copy);
    int64_t before = WallNanos();
    for (size_t i = 0; i < kChunk; ++i) {
      judge(absl::MakeConstSpan(&chunk[i], 1), absl::MakeSpan(&verdicts[i], 1));
      const int64_t after = WallNanos();
      latencies->Add(after - before);
      before = after;
    }
  }
}

// The upper ends of the buckets of a row; one more is open.
constexpr std::array<int64_t, 11> kBucketNanos = {100,    200,    500,    1'000,   2'000,    5'000,
                                                  10'000, 20'000, 50'000, 100'000, 1'000'000};
// What single calls may wait: their 99.999th percentile over their median. A percentile is one where at least
// five calls are above it.
constexpr double kMostNanosOverMedian = 50'000;
constexpr double kFewestCalls = 500'000;

bool WaitsTooLong(const Latencies& latencies) {
  return latencies.Percentile(0.99999) - latencies.Percentile(0.5) > kMostNanosOverMedian;
}

std::vector<std::string> Columns() {
  std::vector<std::string> columns = {"ids", "phase", "in the batch", "batches", "calls", "median, ns"};
  const char* first = "per million: up to ";
  for (const int64_t nanos : kBucketNanos) {
    columns.push_back(absl::StrFormat("%s%g us", first, static_cast<double>(nanos) * 1e-3));
    first = "";
  }
  columns.insert(columns.end(), {"more", "99.999 %, us", "slowest, us"});
  return columns;
}

std::vector<std::string> Row(double window, const std::string& phase, const std::string& what,
                             int64_t batches, const Latencies& latencies) {
  std::vector<std::string> row = {IdsText(window),
                                  phase,
                                  what,
                                  batches == 0 ? "" : absl::StrCat(batches),
                                  absl::StrFormat("%.2g", latencies.total()),
                                  FigureText(latencies.Percentile(0.5))};
  double above_last = 1;
  for (const int64_t nanos : kBucketNanos) {
    const double above = latencies.ShareAbove(nanos);
    row.push_back(FigureText((above_last - above) * 1e6));
    above_last = above;
  }
  row.push_back(FigureText(above_last * 1e6));
  row.push_back(FigureText(latencies.Percentile(0.99999) * 1e-3));
  row.push_back(FigureText(latencies.Most() * 1e-3));
  return row;
}

class Stalls {
 public:
  Stalls(double window, Filter* filter, Table* table)
      : window_(window), filter_(filter), table_(table), traffic_(window), idle_(1, 1) {}

  // So many windows of ids, at that share of the rate.
  void Phase(const std::string& name, double windows, double rate) {
    traffic_.SetRate(rate);
    std::array<Latencies, kEvents> by_event;
    std::array<int64_t, kEvents> batches{};
    Latencies idle;
    FilterStatus before = filter_->Status();
    const double batch = std::max(kBatch * window_ * rate, static_cast<double>(kChunk));
    for (double done = 0; done < windows * window_; done += batch) {
      Latencies latencies;
      TimeCalls(
          &traffic_, batch,
          [this](absl::Span<const TimedId> id, absl::Span<Verdict> verdict) {
            filter_->TestAndInsert(id, verdict);
          },
          &latencies);
      // At the same time, so that it meets the same neighbours.
      TimeCalls(
          &idle_, batch / 4, [](absl::Span<const TimedId>, absl::Span<Verdict>) {}, &idle);
      const FilterStatus after = filter_->Status();
      const Event event = WhatHappened(before, after);
      by_event[event].Add(latencies);
      ++batches[event];
      before = after;
    }
    for (const size_t event : {kRefresh, kUnfold, kFold, kNothing}) {
      if (batches[event] == 0) continue;
      const Latencies& latencies = by_event[event];
      // What the clock alone meets in the same minutes is the machine's.
      const bool is_fault = event != kNothing && latencies.total() >= kFewestCalls &&
                            WaitsTooLong(latencies) && !WaitsTooLong(idle);
      std::string what = kEventNames[event];
      if (is_fault) {
        what += " (FAULT: the 99.999th percentile is over 50 us from the median)";
        table_->faults.push_back(absl::StrCat("stalls, ", IdsText(window_), " ids, ", name, ": ", what));
      }
      table_->rows.push_back(Row(window_, name, what, batches[event], latencies));
    }
    table_->rows.push_back(Row(window_, name, "no call, the clock alone", 0, idle));
  }

 private:
  // An unfold changes the size when it ends and a fold when it begins; both are in all batches that they
  // last.
  static Event WhatHappened(const FilterStatus& before, const FilterStatus& after) {
    const auto ran = [&](FilterPass pass) { return before.pass == pass || after.pass == pass; };
    if (ran(FilterPass::kUnfold) || after.lines > before.lines) return kUnfold;
    if (ran(FilterPass::kFold) || after.lines < before.lines) return kFold;
    return after.refreshes > before.refreshes ? kRefresh : kNothing;
  }

  const double window_;
  Filter* const filter_;
  Table* const table_;
  Traffic traffic_;
  Traffic idle_;  // made alike, and given to nobody
};

absl::Status MeasureWindow(double window, Table* table) {
  // Twice as much as is needed, so that the limit is not met.
  absl::StatusOr<Layout> layout = MakeSliced(window, kTarget, 100);
  if (!layout.ok()) return layout.status();
  Stalls stalls(window, layout->filter.get(), table);
  stalls.Phase("grows from nothing", 1, 1);
  stalls.Phase("steady", window > 5e7 ? 0.5 : 1, 1);
  stalls.Phase("shrinks at a 50th of the rate", 0.02 * 4, 0.02);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Table> MeasureStalls(const Extent& extent) {
  Table table{.text =
                  "Calls by how long they took (told apart to a 32nd), per million, by what happened in a "
                  "batch of them "
                  "(a 256th of a window). The clock alone, in the same minutes, is what the machine adds: "
                  "interrupts, "
                  "and other programs.",
              .columns = Columns()};
  for (const double window : {1e6, 1e7, 1e8}) {
    if (window > extent.largest_window) break;
    if (!extent.progress->Begin(absl::StrCat("stalls, ", IdsText(window), " ids"), window * 6e-7)) continue;
    if (absl::Status status = MeasureWindow(window, &table); !status.ok()) return status;
  }
  return table;
}

}  // namespace lethe::bench
