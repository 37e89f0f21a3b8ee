#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lethe/stage.h"
#include "tests/bench/clocks.h"
#include "tests/bench/layouts.h"
#include "tests/bench/tables.h"
#include "tests/bench/traffic.h"

namespace lethe::bench {
namespace {

constexpr double kWindow = 1e6;
constexpr double kTarget = 1e-6;
constexpr size_t kBlock = 512;
constexpr size_t kChunk = 16 * kBlock;
constexpr int64_t kMemory = int64_t{1} << 30;

// A stage with one partition.
struct OnePartition {
  std::unique_ptr<DedupStage> stage;
  std::unique_ptr<Partition> partition;
};

absl::StatusOr<OnePartition> Open(int shards, double audit_share) {
  absl::StatusOr<std::unique_ptr<DedupStage>> stage =
      DedupStage::Create({.horizon = absl::Milliseconds(kHorizonMs),
                          .target_fpp = kTarget,
                          .memory_limit_bytes = kMemory,
                          .shards = shards,
                          .audit_share = audit_share});
  if (!stage.ok()) return stage.status();
  absl::StatusOr<std::unique_ptr<Partition>> partition = (*stage)->Open("bench");
  if (!partition.ok()) return partition.status();
  return OnePartition{*std::move(stage), *std::move(partition)};
}

// Events at a steady rate, made a chunk at a time.
class Events {
 public:
  Events(const Partition* partition, double window, uint64_t stream)
      : traffic_(window, stream),
        key_check_(partition == nullptr ? 0 : partition->Hash("").key_check),
        ids_(kChunk),
        is_copy_(kChunk) {
    events_.resize(kChunk);
  }
  absl::Span<const Event> Next() {
    traffic_.Next(&ids_, &is_copy_);
    for (size_t i = 0; i < kChunk; ++i) {
      events_[i] = {.id = {ids_[i].id, key_check_}, .time = absl::FromUnixMillis(ids_[i].stream_time_ms)};
    }
    return events_;
  }
  absl::Span<const TimedId> ids() const { return ids_; }

 private:
  Traffic traffic_;
  const uint32_t key_check_;
  std::vector<TimedId> ids_;
  std::vector<bool> is_copy_;
  std::vector<Event> events_;
};

// Nanoseconds of an id in the second of two windows of traffic; judge(events) takes a chunk.
template <typename Judge>
double NanosPerId(const Partition* partition, Judge judge) {
  Events events(partition, kWindow, 0);
  double seconds = 0;
  double ids = 0;
  for (double done = 0; done < 2 * kWindow; done += kChunk) {
    const absl::Span<const Event> chunk = events.Next();
    const double start = ThreadSeconds();
    judge(chunk, events.ids());
    if (done < kWindow) continue;
    seconds += ThreadSeconds() - start;
    ids += kChunk;
  }
  return seconds / ids * 1e9;
}

double StageNanos(Partition* partition, size_t per_call) {
  std::vector<Verdict> verdicts(kBlock);
  return NanosPerId(partition, [&](absl::Span<const Event> events, absl::Span<const TimedId>) {
    for (size_t i = 0; i < events.size(); i += per_call) {
      partition->Judge(events.subspan(i, per_call), absl::MakeSpan(verdicts)).IgnoreError();
    }
  });
}

// In transactions of 16 blocks, each of which is committed.
absl::StatusOr<double> TransactionNanos(Partition* partition) {
  std::vector<Verdict> verdicts(kBlock);
  absl::Status status;
  const double nanos = NanosPerId(partition, [&](absl::Span<const Event> events, absl::Span<const TimedId>) {
    absl::StatusOr<Transaction> transaction = partition->Begin();
    if (!transaction.ok()) {
      status = transaction.status();
      return;
    }
    for (size_t i = 0; i < events.size(); i += kBlock) {
      transaction->Judge(events.subspan(i, kBlock), absl::MakeSpan(verdicts)).IgnoreError();
    }
    transaction->Commit();
  });
  if (!status.ok()) return status;
  return nanos;
}

absl::StatusOr<double> FilterNanos(size_t per_call) {
  MemoryBudget memory(kMemory);
  absl::StatusOr<std::unique_ptr<Filter>> filter =
      NewFilter({.horizon = absl::Milliseconds(kHorizonMs), .target_fpp = kTarget, .memory = &memory});
  if (!filter.ok()) return filter.status();
  std::vector<Verdict> verdicts(per_call);
  return NanosPerId(nullptr, [&](absl::Span<const Event>, absl::Span<const TimedId> ids) {
    for (size_t i = 0; i < ids.size(); i += per_call) {
      (*filter)->TestAndInsert(ids.subspan(i, per_call), absl::MakeSpan(verdicts));
    }
  });
}

// Ids that all threads together judge in a second of time, each its own, in calls of so many.
double IdsPerSecond(Partition* partition, int threads, size_t per_call) {
  constexpr int kChunks = 512;
  // Made beforehand, so that only judging is timed.
  std::vector<std::vector<Event>> made(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t) {
    Events events(partition, kWindow / threads, static_cast<uint64_t>(t));
    for (int i = 0; i < kChunks / threads; ++i) {
      const absl::Span<const Event> chunk = events.Next();
      made[static_cast<size_t>(t)].insert(made[static_cast<size_t>(t)].end(), chunk.begin(), chunk.end());
    }
  }
  std::atomic<int> waiting = threads;
  std::vector<std::thread> workers;
  std::atomic<int64_t> start = INT64_MAX;
  for (const std::vector<Event>& events : made) {
    workers.emplace_back([&] {
      std::vector<Verdict> verdicts(kBlock);
      if (--waiting == 0) start = WallNanos();
      while (waiting != 0) std::this_thread::yield();
      const absl::Span<const Event> all = events;
      for (size_t i = 0; i < all.size(); i += per_call) {
        partition->Judge(all.subspan(i, per_call), absl::MakeSpan(verdicts)).IgnoreError();
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  const double ids = static_cast<double>(kChunks / threads * threads) * static_cast<double>(kChunk);
  return ids / static_cast<double>(WallNanos() - start) * 1e9;
}

}  // namespace

absl::StatusOr<Table> MeasureStage(const Extent& extent) {
  Table table{.columns = {"what", "ns, batched", "single"}};
  if (!extent.progress->Begin("stage", 4)) return table;
  const absl::StatusOr<double> filter_batched = FilterNanos(kBlock);
  if (!filter_batched.ok()) return filter_batched.status();
  const absl::StatusOr<double> filter_single = FilterNanos(1);
  if (!filter_single.ok()) return filter_single.status();
  const auto add = [&](const std::string& what, double batched, double single) {
    table.rows.push_back({what, FigureText(batched), single == 0 ? "" : FigureText(single)});
  };
  add("filter", *filter_batched, *filter_single);
  for (const double audit_share : {0.0, 1.0 / 256}) {
    absl::StatusOr<OnePartition> for_blocks = Open(1, audit_share);
    if (!for_blocks.ok()) return for_blocks.status();
    const double batched = StageNanos(for_blocks->partition.get(), kBlock);
    absl::StatusOr<OnePartition> for_single = Open(1, audit_share);
    if (!for_single.ok()) return for_single.status();
    add(audit_share == 0 ? "stage without audit" : "stage, auditing one id in 256", batched,
        StageNanos(for_single->partition.get(), 1));
  }
  absl::StatusOr<OnePartition> for_transactions = Open(1, 1.0 / 256);
  if (!for_transactions.ok()) return for_transactions.status();
  const absl::StatusOr<double> transactions = TransactionNanos(for_transactions->partition.get());
  if (!transactions.ok()) return transactions.status();
  add("stage, auditing, in transactions of 8192 ids", *transactions, 0);
  return table;
}

absl::StatusOr<Table> MeasureThreads(const Extent& extent) {
  if (!extent.progress->Begin("threads", 20)) return Table{};
  Table table{.columns = {"shards", "1 thread, blocks of 512", "2 threads", "1 thread, single", "2 threads"}};
  for (const int shards : {1, 4, 16}) {
    std::vector<std::string> row = {absl::StrCat(shards)};
    for (const size_t per_call : {kBlock, size_t{1}}) {
      for (const int threads : {1, 2}) {
        absl::StatusOr<OnePartition> open = Open(shards, 1.0 / 256);
        if (!open.ok()) return open.status();
        const double rate = IdsPerSecond(open->partition.get(), threads, per_call);
        row.push_back(absl::StrFormat("%.1f", rate * 1e-6));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace lethe::bench
