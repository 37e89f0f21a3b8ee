// A snapshot of a partition that continues to judge events.
#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "lethe/snapshot.h"
#include "src/snapshot/snapshot_file.h"
#include "src/stage/no_memory.h"
#include "src/stage/partition_impl.h"
#include "src/stage/snapshot_format.h"

namespace lethe {
namespace {

// Copied at a time with a shard's lock held, while events of the shard wait.
constexpr size_t kSliceBytes = size_t{256} << 10;

}  // namespace

// State and audits are copied at the beginning, the memory later, in slices. EngineFilter::ImageEpoch says
// why the parts fit together.
struct __attribute__((visibility("hidden"))) LiveSnapshot::Impl {
  absl::Status Write(SnapshotWriter* writer);
  absl::Status AskWhetherToGoOn() const;
  absl::Status WriteMemory(size_t shard, SnapshotWriter* writer);
  absl::Status Copy(size_t shard, absl::Span<const char> memory, char* to) const;

  SnapshotHeader header;
  std::shared_ptr<Partition::Impl::Link> link;
  std::vector<Shard::Image> shards;
  std::atomic<int64_t> end_offset = 0;
  std::function<bool()> go_on;
};

LiveSnapshot::LiveSnapshot(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LiveSnapshot::~LiveSnapshot() = default;

absl::StatusOr<std::unique_ptr<LiveSnapshot>> Partition::BeginSnapshot(const SnapshotOrigin& origin,
                                                                       const SnapshotPoint& point) const {
  return OrNoMemory([&] { return Describe(origin, point); });
}

absl::StatusOr<std::unique_ptr<LiveSnapshot>> Partition::Describe(const SnapshotOrigin& origin,
                                                                  const SnapshotPoint& point) const {
  const auto entered = impl_->EnterOutside("a snapshot");
  if (!entered.ok()) return entered.status();
  auto live = std::make_unique<LiveSnapshot::Impl>();
  live->header = impl_->Header(origin, point);
  live->link = impl_->link;
  live->end_offset = std::max(point.offset, point.end_offset);
  for (int i = 0; i < live->header.shards; ++i) {
    absl::StatusOr<Shard::Image> image = impl_->shards[static_cast<size_t>(i)]->BeginImage(i);
    if (!image.ok()) return image.status();
    live->shards.push_back(*std::move(image));
  }
  return std::unique_ptr<LiveSnapshot>(new LiveSnapshot(std::move(live)));
}

void LiveSnapshot::NoteEnd(int64_t end_offset) { impl_->end_offset = end_offset; }

absl::Status LiveSnapshot::Write(const std::string& path, const std::function<bool()>& go_on) {
  return OrNoMemory([&] {
    impl_->go_on = go_on;
    absl::StatusOr<SnapshotWriter> writer = SnapshotWriter::Create(path);
    return writer.ok() ? impl_->Write(&*writer) : writer.status();
  });
}

absl::Status LiveSnapshot::Write(int descriptor, const std::function<bool()>& go_on) {
  return OrNoMemory([&] {
    impl_->go_on = go_on;
    SnapshotWriter writer = SnapshotWriter::Onto(descriptor);
    return impl_->Write(&writer);
  });
}

absl::Status LiveSnapshot::Impl::Write(SnapshotWriter* writer) {
  if (absl::Status status = header.Write(writer); !status.ok()) return status;
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const std::string& piece : shards[i].pieces) {
      if (absl::Status status = writer->WritePiece(piece); !status.ok()) return status;
    }
    if (absl::Status status = WriteMemory(i, writer); !status.ok()) return status;
    if (absl::Status status = Audit::SaveIds(shards[i].audited, writer); !status.ok()) return status;
  }
  if (absl::Status status = WriteSnapshotEnd(writer); !status.ok()) return status;
  // Only now is the highest offset of the copied ids known.
  header.point.end_offset = end_offset;
  if (absl::Status status = header.Rewrite(writer); !status.ok()) return status;
  return writer->Finish();
}

absl::Status LiveSnapshot::Impl::AskWhetherToGoOn() const {
  return !go_on || go_on() ? absl::OkStatus() : absl::CancelledError("the snapshot was cancelled");
}

absl::Status LiveSnapshot::Impl::WriteMemory(size_t shard, SnapshotWriter* writer) {
  std::string piece;
  for (const absl::Span<const char> memory : shards[shard].filter.memory) {
    for (size_t done = 0; done < memory.size(); done += kPieceBytes) {
      const absl::Span<const char> part = memory.subspan(done, kPieceBytes);
      piece.resize(part.size());
      for (size_t at = 0; at < part.size(); at += kSliceBytes) {
        if (absl::Status status = Copy(shard, part.subspan(at, kSliceBytes), piece.data() + at); !status.ok())
          return status;
        // A mutex is not fair: let waiting threads go first.
        std::this_thread::yield();
      }
      if (absl::Status status = writer->WritePiece(piece); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status LiveSnapshot::Impl::Copy(size_t shard, absl::Span<const char> memory, char* to) const {
  if (absl::Status status = AskWhetherToGoOn(); !status.ok()) return status;
  const MutexLock lock(link->mutex);
  if (link->impl == nullptr) return absl::CancelledError("the partition is gone");
  return link->impl->shards[shard]->Copy(shards[shard], memory, to);
}

}  // namespace lethe
