// The parts of the public API that write and read snapshots.
#include "lethe/snapshot.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lethe/stage.h"
#include "src/snapshot/snapshot_file.h"
#include "src/stage/no_memory.h"
#include "src/stage/partition_impl.h"
#include "src/stage/snapshot_format.h"
#include "src/text/format.h"

namespace lethe {
namespace {

// Events that are judged meanwhile may change a filter's shape, and then a snapshot is begun again. That is
// rare: a filter grows by doubling, and begins an epoch or generation some times in a horizon.
constexpr int kTries = 16;

template <typename Saved, typename Wanted>
absl::Status Other(const SnapshotReader& reader, absl::string_view what, const Saved& saved,
                   const Wanted& wanted) {
  return reader.Annotate(
      absl::FailedPreconditionError(absl::StrCat("its ", what, " is ", saved, ", and not ", wanted,
                                                 ": it does not fit here; rebuild the filter from its log")));
}

absl::Status CheckOrigin(const SnapshotReader& reader, const SnapshotOrigin& saved,
                         const SnapshotOrigin& wanted) {
  if (saved.topic != wanted.topic) return Other(reader, "topic", saved.topic, wanted.topic);
  if (saved.partition != wanted.partition)
    return Other(reader, "partition", saved.partition, wanted.partition);
  if (saved.id_fingerprint == wanted.id_fingerprint) return absl::OkStatus();
  return Other(reader, "id configuration's fingerprint", saved.id_fingerprint, wanted.id_fingerprint);
}

absl::Status CheckOptions(const SnapshotReader& reader, const SnapshotHeader& saved,
                          const StageOptions& wanted) {
  const absl::string_view engine = EngineName(wanted.engine);
  if (saved.engine != engine) return Other(reader, "engine", saved.engine, engine);
  // A snapshot has whole nanoseconds.
  if (saved.horizon != absl::Nanoseconds(absl::ToInt64Nanoseconds(wanted.horizon))) {
    return Other(reader, "horizon", DurationText(saved.horizon), DurationText(wanted.horizon));
  }
  if (saved.target_fpp != wanted.target_fpp) {
    return Other(reader, "target", saved.target_fpp, wanted.target_fpp);
  }
  if (saved.renew != wanted.renew) return Other(reader, "renew", saved.renew, wanted.renew);
  if (saved.shards != wanted.shards) return Other(reader, "number of shards", saved.shards, wanted.shards);
  return absl::OkStatus();
}

Engine EngineOf(absl::string_view name) {
  for (const Engine engine : {Engine::kExact, Engine::kPublished}) {
    if (name == EngineName(engine)) return engine;
  }
  return Engine::kCompact;
}

// Options under which any valid file can be restored.
StageOptions OptionsOf(const SnapshotHeader& header, int64_t file_bytes) {
  constexpr int64_t kMoreBytes = int64_t{64} << 20;
  return {.horizon = header.horizon,
          .target_fpp = header.target_fpp,
          .renew = header.renew,
          .memory_limit_bytes = 32 * file_bytes + header.shards * kMoreBytes,
          .shards = header.shards,
          .engine = EngineOf(header.engine),
          .audit_share = 1};
}

}  // namespace

SnapshotHeader Partition::Impl::Header(const SnapshotOrigin& origin, const SnapshotPoint& point) const {
  SnapshotHeader header = {.name = name,
                           .origin = origin,
                           .point = point,
                           .engine = std::string(EngineName(engine)),
                           .shards = static_cast<int>(shards.size()),
                           .horizon = horizon,
                           .target_fpp = target_fpp,
                           .salt = key.salt,
                           .key_check = key.check,
                           .renew = renew};
  const MutexLock lock(clock_mutex);
  header.started = started;
  header.clock = clock;
  header.ahead = ahead;
  return header;
}

absl::Status Partition::Save(const std::string& path, const SnapshotOrigin& origin,
                             const SnapshotPoint& point) const {
  // Nobody would note the end of transactions that began meanwhile.
  const absl::StatusOr<Impl::Outside> entered = impl_->EnterOutside("a snapshot");
  if (!entered.ok()) return entered.status();
  absl::Status saved;
  for (int i = 0; i < kTries; ++i) {
    const absl::StatusOr<std::unique_ptr<LiveSnapshot>> live = BeginSnapshot(origin, point);
    if (!live.ok()) return live.status();
    saved = (*live)->Write(path);
    if (!absl::IsAborted(saved)) break;
  }
  return saved;
}

absl::StatusOr<RestoredPartition> DedupStage::Restore(absl::string_view name, const std::string& path,
                                                      const SnapshotOrigin& origin,
                                                      const std::function<bool()>& go_on) {
  return OrNoMemory([&] { return Read(name, path, origin, go_on); });
}

absl::StatusOr<RestoredPartition> DedupStage::Read(absl::string_view name, const std::string& path,
                                                   const SnapshotOrigin& origin,
                                                   const std::function<bool()>& go_on, bool to_inspect) {
  absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(path, go_on);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<SnapshotHeader> header = SnapshotHeader::Read(&*reader);
  if (!header.ok()) return header.status();
  if (absl::Status status = CheckOrigin(*reader, header->origin, origin); !status.ok()) return status;
  if (absl::Status status = CheckOptions(*reader, *header, options_); !status.ok()) return status;
  const PartitionKey key = PartitionKeyOf(options_.snapshot_secret, header->salt);
  if (!to_inspect && key.check != header->key_check) {
    return reader->Annotate(absl::FailedPreconditionError(
        "was written under another secret (snapshots.secret), without which it does not tell the key of the "
        "ids' hash: give that one, or let the filter be rebuilt from its log"));
  }
  absl::StatusOr<std::unique_ptr<Partition>> partition = Open(name, key);
  if (!partition.ok()) return partition.status();
  Partition::Impl& impl = *(*partition)->impl_;
  {
    const MutexLock lock(impl.clock_mutex);
    impl.clock = header->clock;
    impl.ahead = header->ahead;
    impl.started = header->started;
  }
  for (int i = 0; i < header->shards; ++i) {
    absl::Status status = impl.shards[static_cast<size_t>(i)]->Restore(i, &*reader);
    if (!status.ok()) return status;
  }
  if (absl::Status status = ReadSnapshotEnd(&*reader); !status.ok()) return status;
  return RestoredPartition{*std::move(partition), header->point};
}

absl::StatusOr<SnapshotReport> InspectSnapshot(const std::string& path) {
  return OrNoMemory([&]() -> absl::StatusOr<SnapshotReport> {
    absl::StatusOr<SnapshotReader> reader = SnapshotReader::Open(path);
    if (!reader.ok()) return reader.status();
    const absl::StatusOr<SnapshotHeader> header = SnapshotHeader::Read(&*reader);
    if (!header.ok()) return header.status();
    const absl::StatusOr<std::unique_ptr<DedupStage>> stage =
        DedupStage::Create(OptionsOf(*header, reader->file_bytes()));
    if (absl::IsResourceExhausted(stage.status())) return reader->Annotate(stage.status());
    if (!stage.ok()) return reader->Damaged(stage.status().message());
    const absl::StatusOr<RestoredPartition> restored =
        (*stage)->Read(header->name, path, header->origin, nullptr, /*to_inspect=*/true);
    if (!restored.ok()) return restored.status();
    SnapshotReport report = {.format_version = header->version,
                             .file_bytes = reader->file_bytes(),
                             .origin = header->origin,
                             .point = header->point,
                             .engine = header->engine,
                             .horizon = header->horizon,
                             .target_fpp = header->target_fpp,
                             .partition = restored->partition->Status()};
    ShardStatus of_shard;
    for (const auto& shard : restored->partition->impl_->shards) {
      shard->GetStatus(EngineFilter::kSampledLines, /*with_generations=*/true, &of_shard);
      report.shards.push_back(of_shard.filter);
    }
    return report;
  });
}

}  // namespace lethe
