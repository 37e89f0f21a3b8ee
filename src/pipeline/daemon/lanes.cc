#include "src/pipeline/daemon/lanes.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"

namespace lethe {
namespace {

constexpr absl::Duration kAskTimeout = absl::Seconds(1);

}  // namespace

Lanes::Lanes(DaemonOptions options, Connector& connector, const Clock& clock)
    : options_(std::move(options)),
      connector_(connector),
      clock_(clock),
      claim_(
          options_,
          [this]() -> absl::StatusOr<std::vector<NamedMember>> {
            // Lanes ask for themselves, in their threads.
            const auto brokers = connector_.MakeBrokers(options_, Isolation::kReadCommitted);
            if (!brokers.ok()) return brokers.status();
            return (*brokers)->AskMembers();
          },
          clock_),
      foreign_(
          options_.process, [this] { return brokers_->AskMembers(); }, clock) {}

void Lanes::Start(const StopFlag& stop, const std::function<void(const absl::Status&)>& ended) {
  claim_.Look();
  const Shared shared = {options_, flows_, kept_, claim_, ends_};
  const MutexLock lock(mutex_);
  for (int i = 0; i < options_.process.lanes; ++i) {
    Lane& lane = *lanes_.emplace_back(std::make_unique<Lane>(shared, i, stop, connector_, clock_));
    threads_.push_back(clock_.Start([&lane, ended] { ended(lane.Run()); }));
  }
}

void Lanes::Join() {
  for (const auto& thread : threads_) thread->Join();
}

absl::Status Lanes::Connect() {
  if (brokers_ != nullptr) return absl::OkStatus();
  auto brokers = connector_.MakeBrokers(options_, Isolation::kReadCommitted);
  if (!brokers.ok()) return brokers.status();
  brokers_ = *std::move(brokers);
  return absl::OkStatus();
}

bool Lanes::AskEnds() {
  const absl::Status asked = AskEndsOnce();
  if (asked.ok()) LookForForeignMembers();
  const MutexLock lock(mutex_);
  if (asked.ok()) {
    if (!unanswered_.ok()) spdlog::info("the brokers at {} answer again", options_.process.brokers);
    unanswered_ = absl::OkStatus();
    unanswered_since_ = absl::InfiniteFuture();
  } else if (unanswered_since_ == absl::InfiniteFuture()) {
    unanswered_since_ = clock_.Steady();  // once may be an election
  } else {
    if (unanswered_.ok()) {
      spdlog::warn("the brokers at {} do not tell where logs end, and lethe waits for them: {}",
                   options_.process.brokers, std::string(asked.message()));
    }
    unanswered_ = asked;
  }
  return asked.ok();
}

absl::Status Lanes::AskEndsOnce() {
  if (absl::Status connected = Connect(); !connected.ok()) return connected;
  brokers_->LastError().IgnoreError();  // what the lanes meet, too, and say
  PartitionsByTopic owned;
  for (const LaneReport& lane : Reports()) {
    for (const PartitionReport& each : lane.partitions) owned[each.topic].push_back(each.partition);
  }
  const auto put = [&](const EndsByTopic& asked) {
    for (const auto& [topic, its_ends] : asked) ends_.Put(flows_.Find(topic)->number, its_ends);
  };
  auto asked = brokers_->AskEnds(owned, kAskTimeout);
  if (asked.ok()) put(*asked);
  if (!absl::IsNotFound(asked.status())) return asked.status();
  // One is deleted, and the lanes say so.
  for (const auto& each : owned) {
    asked = brokers_->AskEnds({each}, kAskTimeout);
    if (asked.ok()) put(*asked);
    if (!asked.ok() && !absl::IsNotFound(asked.status())) return asked.status();
  }
  return absl::OkStatus();
}

void Lanes::LookForForeignMembers() {
  size_t owned = 0;
  for (int32_t flow = 0; flow < flows_.size(); ++flow) owned += Partitions(flow).size();
  foreign_.Look(owned);
  const MutexLock lock(mutex_);
  foreign_members_ = foreign_.names();
}

std::vector<std::string> Lanes::ForeignMembers() const {
  const MutexLock lock(mutex_);
  return foreign_members_;
}

std::vector<LaneReport> Lanes::Reports() const {
  std::vector<LaneReport> reports;
  const MutexLock lock(mutex_);
  for (const auto& lane : lanes_) reports.push_back(lane->Report());
  return reports;
}

std::vector<int32_t> Lanes::Partitions(int32_t flow) const {
  std::vector<int32_t> partitions;
  const MutexLock lock(mutex_);
  for (const auto& lane : lanes_) {
    for (const TopicPartition& each : lane->ReportedPartitions()) {
      if (each.flow == flow) partitions.push_back(each.partition);
    }
  }
  return partitions;
}

void Lanes::AddReasons(const std::vector<LaneReport>& reports, std::vector<std::string>& reasons,
                       std::vector<TopicProblem>& problems) const {
  LaneGroup group = {options_.half.routing.has_value(), flows_.size(), options_.process.brokers};
  {
    const MutexLock lock(mutex_);
    group.unanswered = unanswered_;
    group.unanswered_for = clock_.Steady() - unanswered_since_;
  }
  lethe::AddReasons(group, reports, reasons, problems);
}

bool Lanes::AreAnswered() const {
  const MutexLock lock(mutex_);
  return unanswered_.ok();
}

absl::Duration Lanes::SilentFor() const {
  const MutexLock lock(mutex_);
  absl::Duration longest = absl::ZeroDuration();
  for (const auto& lane : lanes_) longest = std::max(longest, lane->SilentFor());
  return longest;
}

bool Lanes::OnlyLeave() const {
  const MutexLock lock(mutex_);
  return !lanes_.empty() && absl::c_all_of(lanes_, [](const auto& lane) { return lane->OnlyLeaves(); });
}

bool Lanes::LeaveUnfinished() const {
  const MutexLock lock(mutex_);
  return absl::c_any_of(lanes_, [](const auto& lane) { return lane->LeavesUnfinished(); });
}

}  // namespace lethe
