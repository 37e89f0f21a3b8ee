// What goes wrong with the snapshots of a schedule's processes.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/faults/run.h"
#include "tests/support/daemon.h"

namespace lethe::test {
namespace {

// For the first snapshot that counts; one is taken each second.
constexpr absl::Duration kFirstSnapshot = absl::Seconds(5);
// Until something is not written, or other snapshots are there than those that were kept. Who has no
// partition writes none.
constexpr absl::Duration kBite = absl::Seconds(3);
constexpr absl::Duration kSnapshotLook = absl::Milliseconds(100);
// What a process may still say when its disk is full.
constexpr size_t kLogBytes = 16 << 10;

// What a broken disk does: it cannot sync, or has no room for one file more. In memory, where snapshots are
// before they go to a topic, there may be no room either.
FailingCall BrokenDisk(SnapshotPlace place, uint64_t seed) {
  if (place == SnapshotPlace::kTopic) return {SYS_memfd_create, ENOMEM};
  return seed % 2 == 0 ? FailingCall{SYS_fsync, EIO} : FailingCall{SYS_openat, ENOSPC, O_EXCL, 2};
}

}  // namespace

absl::Status Run::PrepareSnapshots() {
  if (schedule_.snapshots == SnapshotPlace::kNowhere) return absl::OkStatus();
  const bool topic = schedule_.snapshots == SnapshotPlace::kTopic;
  for (int i = 0; i < kMaxInstances; ++i) {
    const std::string place = SnapshotsOf(i);
    instances_[static_cast<size_t>(i)].shelf =
        topic ? ShelfInTopic(site_.client(), snapshots_) : ShelfInFolder(place.substr(place.find(':') + 1));
  }
  if (!topic) return absl::OkStatus();
  // Deleting, too, so that records of it can be deleted.
  return site_.client().CreateTopic(snapshots_, partitions_,
                                    {{"cleanup.policy", "compact,delete"}, {"retention.ms", "-1"}});
}

std::string Run::SnapshotsOf(int i) const {
  if (schedule_.snapshots == SnapshotPlace::kTopic) return "topic:" + snapshots_;
  const bool shared = schedule_.snapshots == SnapshotPlace::kFolderOfAll;
  return absl::StrCat("folder:", folder_, "/snapshots", shared ? "" : absl::StrCat("-", i));
}

int Run::AwaitSnapshots(int from) {
  const absl::Time patience = SteadyNow() + kFirstSnapshot;
  while (SteadyNow() < patience) {
    for (int n = 0; n < kMaxInstances; ++n) {
      const int i = (from + n) % kMaxInstances;
      const Instance& instance = instances_[static_cast<size_t>(i)];
      if (instance.process == nullptr || instance.ending || instance.frozen) continue;
      if (MetricSum(HttpGet(instance.http_port, "/metrics").body, "lethe_snapshot_offset", {}) > 0) return i;
    }
    absl::SleepFor(kSnapshotLook);
  }
  Say("no commit has named a snapshot yet");
  return from;
}

absl::Status Run::BeginOfSnapshots(const Fault& fault, Hit& hit) {
  if (hit.instance < 0) return absl::OkStatus();
  if (schedule_.snapshots == SnapshotPlace::kTopic) {
    if (absl::Status settled = site_.Settle(); !settled.ok()) return settled;
  }
  hit.instance = AwaitSnapshots(hit.instance);
  Instance& instance = instances_[static_cast<size_t>(hit.instance)];
  hit.process = instance.process.get();
  Say(absl::StrCat(FaultName(fault.kind), " ", hit.instance));
  switch (fault.kind) {
    case FaultKind::kDamageSnapshots:
    case FaultKind::kForeignSnapshots:
      if (absl::Status killed = Kill(instance); !killed.ok()) return killed;
      return HarmSnapshots(fault, hit);
    case FaultKind::kOldSnapshots: {
      auto kept = instance.shelf->Load();
      if (!kept.ok()) return kept.status();
      hit.snapshots = *std::move(kept);
      return absl::OkStatus();
    }
    case FaultKind::kFullDisk: {
      // Not so full that nothing could be said any more.
      const rlimit full = {instance.process->Stderr().size() + kLogBytes, RLIM_INFINITY};
      if (prlimit(instance.process->pid(), RLIMIT_FSIZE, &full, nullptr) == 0) return absl::OkStatus();
      return absl::ErrnoToStatus(errno, "prlimit");
    }
    case FaultKind::kBrokenDisk:
      if (absl::Status killed = Kill(instance); !killed.ok()) return killed;
      instance.broken_disk = BrokenDisk(schedule_.snapshots, fault.seed);
      if (absl::Status started = StartInstance(hit.instance); !started.ok()) return started;
      hit.process = instance.process.get();
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

void Run::AwaitBite(const Fault& fault, const Hit& hit) {
  const Instance& instance = instances_[static_cast<size_t>(hit.instance)];
  if (instance.process == nullptr || instance.process.get() != hit.process || instance.frozen) return;
  const auto bites = [&] {
    absl::SleepFor(kSnapshotLook);
    if (fault.kind != FaultKind::kOldSnapshots) {
      return absl::StrContains(instance.process->Stderr().substr(instance.said_before), kUnwritten);
    }
    const auto now = instance.shelf->Load();
    return !now.ok() || std::any_of(now->begin(), now->end(), [&](const StoredSnapshot& snapshot) {
      return std::none_of(hit.snapshots.begin(), hit.snapshots.end(), [&](const StoredSnapshot& kept) {
        return kept.series == snapshot.series && kept.id == snapshot.id;
      });
    });
  };
  if (!WaitUntil(bites, kBite)) Say("no effect");
}

absl::Status Run::FinishOfSnapshots(const Fault& fault, const Hit& hit) {
  if (hit.instance < 0) return absl::OkStatus();
  Instance& instance = instances_[static_cast<size_t>(hit.instance)];
  instance.broken_disk.reset();
  const bool harm_comes_first =
      fault.kind == FaultKind::kDamageSnapshots || fault.kind == FaultKind::kForeignSnapshots;
  if (!harm_comes_first) AwaitBite(fault, hit);
  if (!harm_comes_first && instance.process != nullptr && !instance.ending) {
    Say(absl::StrCat("kill lethe ", hit.instance));
    if (absl::Status killed = Kill(instance); !killed.ok()) return killed;
  }
  if (fault.kind == FaultKind::kOldSnapshots) {
    if (absl::Status harmed = HarmSnapshots(fault, hit); !harmed.ok()) return harmed;
  }
  return StartIfWanted(hit.instance);
}

absl::Status Run::HarmSnapshots(const Fault& fault, const Hit& hit) {
  if (schedule_.snapshots == SnapshotPlace::kTopic) {
    if (absl::Status settled = site_.Settle(); !settled.ok()) return settled;
  }
  SnapshotShelf& shelf = *instances_[static_cast<size_t>(hit.instance)].shelf;
  auto snapshots = shelf.Load();
  if (!snapshots.ok()) return snapshots.status();
  SnapshotHarm harm(fault.seed);
  for (const StoredSnapshot& snapshot : *snapshots) {
    Say(absl::StrCat("  ", snapshot.id, ", ", snapshot.bytes.size(), " bytes, of ", snapshot.series));
  }
  if (fault.kind == FaultKind::kDamageSnapshots) harm.Damage(*snapshots);
  if (fault.kind == FaultKind::kOldSnapshots) harm.PutBack(hit.snapshots, *snapshots);
  if (fault.kind == FaultKind::kForeignSnapshots) {
    if (absl::Status made = harm.MakeForeign(*snapshots); !made.ok()) return made;
  }
  return shelf.Store(*snapshots);
}

}  // namespace lethe::test
