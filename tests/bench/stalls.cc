#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lethe/memory_budget.h"
#include "lethe/stage.h"
#include "src/memory/line_memory.h"
#include "tests/bench/clocks.h"
#include "tests/bench/tables.h"
#include "tests/bench/traffic.h"

namespace lethe::bench {
namespace {

constexpr double kTarget = 1e-6;
constexpr size_t kChunk = 8192;
// Of a window. Some fifteen are an interval.
constexpr double kBatch = 1.0 / 256;

// About as much as the filter takes.
constexpr double kBytesPerId = 5.5;

// What happened in a batch, the rarest of it.
enum Event : size_t { kNothing, kRefresh, kFold, kUnfold, kEvents };
constexpr std::array<const char*, kEvents> kEventNames = {"nothing", "a refresh", "a fold", "an unfold"};

// As often as the daemon asks.
constexpr auto kStatusEvery = std::chrono::milliseconds(250);

// Adds the times of calls for one id each. Returns their sum.
template <typename Judge>
int64_t TimeCalls(Traffic* traffic, double ids, uint32_t key_check, Judge judge, Latencies* latencies) {
  std::vector<TimedId> chunk(kChunk);
  std::vector<bool> is_copy(kChunk);
  std::vector<lethe::Event> events(kChunk);
  std::vector<Verdict> verdicts(kChunk);
  int64_t nanos = 0;
  for (double done = 0; done < ids; done += kChunk) {
    traffic->Next(&chunk, &is_copy);
    for (size_t i = 0; i < kChunk; ++i) {
      events[i] = {.id = {chunk[i].id, key_check},
                   .time = absl::FromUnixMillis(chunk[i].stream_time_ms),
                   .payload = "x"};
    }
    const int64_t start = WallNanos();
    int64_t before = start;
    for (size_t i = 0; i < kChunk; ++i) {
      judge(absl::MakeConstSpan(&events[i], 1), absl::MakeSpan(&verdicts[i], 1));
      const int64_t after = WallNanos();
      latencies->Add(after - before);
      before = after;
    }
    nanos += before - start;
  }
  return nanos;
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
  columns.insert(columns.end(),
                 {"more", "99.999 %, us", "slowest, us", "memory alone: 99.999 %, us", "slowest, us"});
  return columns;
}

std::vector<std::string> Row(double window, const std::string& phase, const std::string& what,
                             int64_t batches, const Latencies& latencies, const Latencies& alone) {
  std::vector<std::string> row = {IdsText(window),
                                  phase,
                                  what,
                                  absl::StrCat(batches),
                                  absl::StrFormat("%.2g", latencies.total()),
                                  FigureText(latencies.Percentile(0.5))};
  double above_last = 1;
  for (const int64_t nanos : kBucketNanos) {
    const double above = latencies.ShareAbove(nanos);
    row.push_back(FigureText((above_last - above) * 1e6));
    above_last = above;
  }
  row.push_back(FigureText(above_last * 1e6));
  for (const Latencies* of : {&latencies, &alone}) {
    row.push_back(FigureText(of->Percentile(0.99999) * 1e-3));
    row.push_back(FigureText(of->Most() * 1e-3));
  }
  return row;
}

// As many huge pages as a filter has, all of them present, and nothing else: what a call waits for that
// writes to two of its lines is the machine's.
class MemoryAlone {
 public:
  static absl::StatusOr<MemoryAlone> Create(int64_t bytes) {
    auto budget = std::make_unique<MemoryBudget>(bytes + LineMemory::kChunkBytes);
    absl::StatusOr<LineMemory> memory = LineMemory::Create(budget.get(), bytes, bytes);
    if (!memory.ok()) return memory.status();
    std::memset(memory->data(), 1, static_cast<size_t>(bytes));
    return MemoryAlone(std::move(budget), *std::move(memory));
  }

  // It takes so long at least: the longer calls take, the more of them are interrupted.
  void Touch(const IdHash& id, int64_t nanos) {
    const int64_t end = WallNanos() + nanos;
    auto* words = static_cast<uint64_t*>(memory_.data());
    const auto count = static_cast<uint64_t>(memory_.bytes()) / sizeof(uint64_t);
    words[id.a % count] ^= id.b;
    words[id.b % count] ^= id.a;
    while (WallNanos() < end) {
    }
  }

 private:
  MemoryAlone(std::unique_ptr<MemoryBudget> budget, LineMemory memory)
      : budget_(std::move(budget)), memory_(std::move(memory)) {}

  std::unique_ptr<MemoryBudget> budget_;
  LineMemory memory_;
};

// Asks a partition for its status again and again, as long as it lives.
class Poller {
 public:
  explicit Poller(const Partition* partition)
      : thread_([this, partition] {
          std::unique_lock lock(mutex_);
          while (!ended_.wait_for(lock, kStatusEvery, [this] { return has_ended_; })) partition->Status();
        }) {}
  ~Poller() {
    {
      const std::lock_guard lock(mutex_);
      has_ended_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

class Stalls {
 public:
  Stalls(double window, Partition* partition, MemoryAlone* memory, Table* table)
      : window_(window),
        partition_(partition),
        memory_(memory),
        table_(table),
        traffic_(window),
        idle_(1, 1) {}

  // So many windows of ids, at that share of the rate.
  void Phase(const std::string& name, double windows, double rate) {
    traffic_.SetRate(rate);
    std::array<Latencies, kEvents> by_event;
    std::array<Latencies, kEvents> alone_by_event;
    std::array<int64_t, kEvents> batches{};
    const Poller poller(partition_);
    FilterStatus before = partition_->Status().filter;
    const double batch = std::max(kBatch * window_ * rate, static_cast<double>(kChunk));
    for (double done = 0; done < windows * window_; done += batch) {
      Latencies latencies;
      const int64_t nanos = TimeCalls(
          &traffic_, batch, partition_->Hash("").key_check,
          [this](absl::Span<const lethe::Event> call, absl::Span<Verdict> verdict) {
            partition_->Judge(call, verdict).IgnoreError();
          },
          &latencies);
      const FilterStatus after = partition_->Status().filter;
      const Event event = WhatHappened(before, after);
      by_event[event].Add(latencies);
      ++batches[event];
      before = after;
      const auto each = static_cast<int64_t>(static_cast<double>(nanos) / latencies.total());
      TimeCalls(
          &idle_, batch, 0,
          [this, each](absl::Span<const lethe::Event> call, absl::Span<Verdict>) {
            memory_->Touch(call[0].id, each);
          },
          &alone_by_event[event]);
    }
    for (const size_t event : {kRefresh, kUnfold, kFold, kNothing}) {
      if (batches[event] == 0) continue;
      const Latencies& latencies = by_event[event];
      const Latencies& alone = alone_by_event[event];
      const bool is_fault = event != kNothing && latencies.total() >= kFewestCalls &&
                            WaitsTooLong(latencies) && !WaitsTooLong(alone);
      std::string what = kEventNames[event];
      if (is_fault) {
        what += " (FAULT: the 99.999th percentile is over 50 us from the median)";
        table_->faults.push_back(absl::StrCat("stalls, ", IdsText(window_), " ids, ", name, ": ", what));
      }
      table_->rows.push_back(Row(window_, name, what, batches[event], latencies, alone));
    }
  }

 private:
  static Event WhatHappened(const FilterStatus& before, const FilterStatus& after) {
    if (after.shape.lines > before.shape.lines) return kUnfold;
    if (after.shape.lines < before.shape.lines) return kFold;
    return after.refreshes > before.refreshes ? kRefresh : kNothing;
  }

  const double window_;
  Partition* const partition_;
  MemoryAlone* const memory_;
  Table* const table_;
  Traffic traffic_;
  Traffic idle_;  // made alike, and given to nobody
};

absl::Status MeasureWindow(double window, Table* table) {
  // Far more than is needed, so that the limit is not met.
  const auto stage =
      DedupStage::Create({.horizon = absl::Milliseconds(kHorizonMs),
                          .target_fpp = kTarget,
                          .memory_limit_bytes = static_cast<int64_t>(100 * window) + (int64_t{1} << 30)});
  if (!stage.ok()) return stage.status();
  const auto partition = (*stage)->Open("stalls");
  if (!partition.ok()) return partition.status();
  absl::StatusOr<MemoryAlone> memory = MemoryAlone::Create(static_cast<int64_t>(kBytesPerId * window));
  if (!memory.ok()) return memory.status();
  Stalls stalls(window, partition->get(), &*memory, table);
  stalls.Phase("grows from nothing", 1, 1);
  stalls.Phase("steady", window > 5e7 ? 0.5 : 1, 1);
  stalls.Phase("shrinks at a 50th of the rate", 0.02 * 4, 0.02);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Table> MeasureStalls(const Extent& extent) {
  Table table{
      .text =
          "Calls of the stage, for an event each, with the default audit and while its status is asked for "
          "four "
          "times a second, by how long they took (told apart to a 32nd), per million, by what happened in a "
          "batch of them "
          "(a 256th of a window). Memory alone, two of its lines written in as many calls that take as "
          "long on average, turn by turn with those batches, is what the machine adds: "
          "interrupts, other programs, and a host that looks after its pages.",
      .columns = Columns()};
  for (const double window : {1e6, 1e7, 1e8}) {
    if (window > extent.largest_window) break;
    if (!extent.progress->Begin(absl::StrCat("stalls, ", IdsText(window), " ids"), window * 6e-7)) continue;
    if (absl::Status status = MeasureWindow(window, &table); !status.ok()) return status;
  }
  return table;
}

}  // namespace lethe::bench
