#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "tests/bench/clocks.h"
#include "tests/bench/tables.h"
#include "tests/bench/traffic.h"

namespace lethe::bench {
namespace {

constexpr int kRepetitions = 5;

StageOptions Options(int shards) {
  return {.horizon = absl::Milliseconds(kHorizonMs),
          .target_fpp = 1e-6,
          .memory_limit_bytes = int64_t{4} << 30,
          .shards = shards};
}

absl::StatusOr<std::unique_ptr<Partition>> Filled(DedupStage* stage, double ids) {
  absl::StatusOr<std::unique_ptr<Partition>> partition = stage->Open("p");
  if (!partition.ok()) return partition.status();
  Traffic traffic(ids);
  std::vector<TimedId> chunk(8192);
  std::vector<bool> is_copy(chunk.size());
  std::vector<Event> events(chunk.size());
  std::vector<Verdict> verdicts(chunk.size());
  const uint32_t key_check = (*partition)->Hash("").key_check;
  for (double done = 0; done < ids; done += static_cast<double>(chunk.size())) {
    traffic.Next(&chunk, &is_copy);
    for (size_t i = 0; i < chunk.size(); ++i) {
      events[i] = {.id = {chunk[i].id, key_check}, .time = absl::FromUnixMillis(chunk[i].stream_time_ms)};
    }
    (*partition)->Judge(events, absl::MakeSpan(verdicts)).IgnoreError();
  }
  return partition;
}

// The fastest of some.
template <typename Work>
absl::StatusOr<double> Seconds(Work work) {
  double best = 1e9;
  for (int i = 0; i < kRepetitions; ++i) {
    const int64_t start = WallNanos();
    if (absl::Status status = work(); !status.ok()) return status;
    best = std::min(best, static_cast<double>(WallNanos() - start) * 1e-9);
  }
  return best;
}

absl::Status Measure(double ids, int shards, const std::string& path, Table* table) {
  const auto stage = DedupStage::Create(Options(shards));
  if (!stage.ok()) return stage.status();
  const auto partition = Filled(stage->get(), ids);
  if (!partition.ok()) return partition.status();
  const auto save = Seconds([&] { return (*partition)->Save(path, {}, {}); });
  if (!save.ok()) return save.status();
  const auto load = Seconds([&] { return (*stage)->Restore("q", path, {}).status(); });
  if (!load.ok()) return load.status();
  const auto known = static_cast<double>((*partition)->Status().filter.ids);
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  const auto rate = [&](double seconds) { return absl::StrFormat("%.0f million", known / seconds * 1e-6); };
  table->rows.push_back({IdsText(ids), absl::StrCat(shards), absl::StrFormat("%.0f", bytes / (1 << 20)),
                         rate(*save), rate(*load), absl::StrFormat("%.2f", bytes / *save * 1e-9),
                         absl::StrFormat("%.2f", bytes / *load * 1e-9)});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Table> MeasureSnapshots(const Extent& extent) {
  Table table{.text =
                  "The fastest of five. The file is in the page cache when it is loaded; a save waits for "
                  "the disk.",
              .columns = {"ids", "shards", "file, MiB", "saved, ids/s", "loaded, ids/s", "saved, GB/s",
                          "loaded, GB/s"}};
  const std::string path =
      std::filesystem::temp_directory_path() / absl::StrCat("lethe-snapshot-bench-", getpid());
  absl::Status status;
  for (const double ids : {1e6, 1e7}) {
    if (ids > extent.largest_window) break;
    for (const int shards : {1, 4}) {
      if (!extent.progress->Begin(absl::StrCat("snapshots, ", IdsText(ids), " ids"), ids * 4e-7)) continue;
      if (status = Measure(ids, shards, path, &table); !status.ok()) break;
    }
  }
  std::error_code error;
  std::filesystem::remove(path, error);
  if (!status.ok()) return status;
  return table;
}

}  // namespace lethe::bench
