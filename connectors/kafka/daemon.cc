#include "connectors/kafka/daemon.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lethe::kafka {
namespace {

constexpr absl::Duration kLookAtLanesEvery = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Create(DaemonOptions options) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options)));
  auto stage = DedupStage::Create(daemon->options_.stage);
  if (!stage.ok()) return stage.status();
  daemon->stage_ = *std::move(stage);
  return daemon;
}

Daemon::~Daemon() {
  if (instance_lock_ >= 0) close(instance_lock_);
}

absl::Status Daemon::LockInstance() {
  // A name in the abstract space of sockets is free again as soon as its process has ended, however it ended.
  const std::string name =
      absl::StrCat("lethe/", options_.brokers, "/", options_.group, "/", options_.instance);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // Longer names are told apart by what fits, and by their hash.
  const std::string fitted = name.size() < sizeof(address.sun_path) - 1
                                 ? name
                                 : absl::StrCat("lethe/", absl::Hex(HashId(name, 0).a, absl::kZeroPad16),
                                                absl::Hex(HashId(name, 0).b, absl::kZeroPad16));
  std::memcpy(address.sun_path + 1, fitted.data(), fitted.size());
  instance_lock_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (instance_lock_ < 0) return absl::InternalError(absl::StrCat("socket: ", std::strerror(errno)));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + fitted.size());
  if (bind(instance_lock_, reinterpret_cast<const sockaddr*>(&address), length) == 0) return absl::OkStatus();
  if (errno != EADDRINUSE) return absl::InternalError(absl::StrCat("bind: ", std::strerror(errno)));
  return absl::AlreadyExistsError(
      absl::StrCat("another process of group ", options_.group, " runs as instance ", options_.instance,
                   " on this host: two of one name would fence each other; give each its own --instance"));
}

absl::Status Daemon::Run() {
  if (absl::Status locked = LockInstance(); !locked.ok()) return locked;
  if (const absl::string_view broken = BrokenPromise(options_.stage.engine); !broken.empty()) {
    spdlog::warn(absl::StrCat("engine ", EngineName(options_.stage.engine), ": ", broken,
                              "; what is exactly once is the writing, not the judging"));
  }
  auto topics = InspectTopics(options_, stop_);
  if (!topics.ok()) {
    return absl::IsCancelled(topics.status()) ? absl::OkStatus() : topics.status();
  }
  topics_ = *std::move(topics);
  for (const std::string& warning : topics_.warnings) spdlog::warn("{}", warning);
  spdlog::info("{} ({} partitions) -> {}, group {}, id {}, horizon {}, false-positive target {}",
               options_.input, topics_.partitions, options_.output, options_.group,
               options_.record.id.ToString(), absl::FormatDuration(options_.stage.horizon),
               options_.stage.target_fpp);
  auto store = OpenSnapshotStore(options_);
  if (!store.ok()) return store.status();
  if (*store != nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    snapshots_ = std::make_unique<Snapshots>(*std::move(store), options_.snapshots.every);
  }
  return RunLanes();
}

absl::Status Daemon::RunLanes() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int i = 0; i < options_.lanes; ++i) {
      lanes_.push_back(std::make_unique<Lane>(options_, i, topics_, *stage_, kept_, snapshots_.get(), stop_));
      lanes_.back()->SetCommitInterval(commit_interval_);
    }
  }
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    threads.emplace_back([this, &lane] {
      const absl::Status status = lane->Run();
      const std::lock_guard<std::mutex> lock(mutex_);
      if (first_error_.ok()) first_error_ = status;
      if (!status.ok()) stop_.Request();
    });
  }
  std::vector<std::string> problems;
  while (!stop_.WaitFor(kLookAtLanesEvery)) {
    if (options_.exit_at_end && AllAtEnd(problems)) stop_.Request();
  }
  for (std::thread& thread : threads) thread.join();
  if (snapshots_ != nullptr) snapshots_->Stop();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (first_error_.ok() && !problems.empty())
    return absl::FailedPreconditionError(absl::StrJoin(problems, "; "));
  return first_error_;
}

bool Daemon::AllAtEnd(std::vector<std::string>& problems) const {
  problems.clear();
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    const LaneReport report = lane->Report();
    if (!report.at_end) return false;
    for (const PartitionReport& partition : report.partitions) {
      if (!partition.problem.empty()) problems.push_back(partition.problem);
    }
  }
  return true;
}

absl::Duration Daemon::SilentFor() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Duration longest = absl::ZeroDuration();
  for (const std::unique_ptr<Lane>& lane : lanes_) longest = std::max(longest, lane->SilentFor());
  return longest;
}

void Daemon::SetCommitInterval(absl::Duration interval) {
  const std::lock_guard<std::mutex> lock(mutex_);
  commit_interval_ = interval;
  for (const std::unique_ptr<Lane>& lane : lanes_) lane->SetCommitInterval(interval);
}

DaemonReport Daemon::Report() const {
  DaemonReport report;
  report.input = options_.input;
  report.output = options_.output;
  report.group = options_.group;
  report.instance = options_.instance;
  report.engine = EngineName(options_.stage.engine);
  report.horizon = options_.stage.horizon;
  report.fpp_target = options_.stage.target_fpp;
  report.memory_used_bytes = stage_->memory().used_bytes();
  report.memory_limit_bytes = stage_->memory().limit_bytes();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (snapshots_ != nullptr) report.snapshots = snapshots_->counts();
  if (lanes_.empty())
    report.not_ready.push_back(absl::StrCat("waiting for the brokers at ", options_.brokers));
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    report.lanes.push_back(lane->Report());
    const LaneReport& last = report.lanes.back();
    if (!last.joined)
      report.not_ready.push_back(
          absl::StrCat("lane ", last.lane, " waits for the group to assign partitions"));
    if (!last.waiting.empty())
      report.not_ready.push_back(absl::StrCat("lane ", last.lane, ": ", last.waiting));
    for (const PartitionReport& partition : last.partitions) {
      if (partition.phase == Phase::kFailed || partition.phase == Phase::kHeld) {
        report.not_ready.push_back(partition.problem);
      } else if (partition.phase != Phase::kActive) {
        std::string text =
            absl::StrCat(options_.input, "-", partition.partition, " is restoring: ", partition.restore_left,
                         " offsets to go, up to ", partition.restore_to);
        if (partition.restore_time_left < absl::InfiniteDuration()) {
          absl::StrAppend(&text, ", in some ",
                          absl::FormatDuration(absl::Ceil(partition.restore_time_left, absl::Seconds(1))));
        }
        report.not_ready.push_back(std::move(text));
      }
    }
  }
  return report;
}

}  // namespace lethe::kafka
