// The lane's part in the group: what is assigned, revoked and lost.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/lane.h"

namespace lethe::kafka {
namespace {

constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(100);
constexpr absl::Duration kPublishEvery = absl::Milliseconds(250);

// What the broker says to a member that is no longer one, or not of this generation.
bool IsGroupMovedOn(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Lane::OnRebalance(rd_kafka_t* /*consumer*/, rd_kafka_resp_err_t code,
                       rd_kafka_topic_partition_list_t* partitions, void* opaque) {
  auto* lane = static_cast<Lane*>(opaque);
  if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    lane->Assign(partitions);
  } else {
    lane->Revoke(partitions, rd_kafka_assignment_lost(lane->consumer_.get()) != 0);
  }
}

void Lane::Assign(const rd_kafka_topic_partition_list_t* partitions) {
  rd_kafka_t* consumer = consumer_.get();
  // As of this assignment, not of a later one: a lane that stalls over a rebalance must not be able to
  // commit, with the new generation, what it judged in the old one.
  group_metadata_.reset(rd_kafka_consumer_group_metadata(consumer));
  if (open_) Commit();  // cooperative: what was kept goes on under the new generation
  joined_ = true;
  absl::Status prepared = PrepareAssigned(partitions);
  const PartitionListPtr assigned(rd_kafka_topic_partition_list_new(partitions->cnt));
  for (int i = 0; prepared.ok() && i < partitions->cnt; ++i) {
    const OwnedPartition* owned = Find(partitions->elems[i].partition);
    if (owned == nullptr || owned->phase == Phase::kFailed) continue;
    rd_kafka_topic_partition_list_add(assigned.get(), options_.input.c_str(), owned->id)->offset =
        owned->next;
  }
  if (std::string(rd_kafka_rebalance_protocol(consumer)) == "COOPERATIVE") {
    const ErrorPtr error(rd_kafka_incremental_assign(consumer, assigned.get()));
    if (error != nullptr)
      spdlog::error("lane {}: assigning: {}", number_, rd_kafka_error_string(error.get()));
  } else {
    const rd_kafka_resp_err_t code = rd_kafka_assign(consumer, assigned.get());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      spdlog::error("lane {}: assigning: {}", number_, rd_kafka_err2str(code));
    }
  }
  if (!prepared.ok()) {
    spdlog::warn("lane {}: {}", number_, std::string(prepared.message()));
    if (!absl::IsAborted(prepared) && !absl::IsCancelled(prepared)) fatal_ = prepared;
  }
  Publish();
}

absl::Status Lane::PrepareAssigned(const rd_kafka_topic_partition_list_t* partitions) {
  const GroupState group(consumer_.get(), options_.input);
  int32_t count = topics_.partitions;
  for (int i = 0; i < partitions->cnt; ++i) count = std::max(count, partitions->elems[i].partition + 1);
  std::vector<CommittedOffset> committed;
  absl::Status asked = Await([&] {
    auto answer = group.Committed(count);
    if (answer.ok()) committed = *std::move(answer);
    return answer.status();
  });
  if (!asked.ok()) return asked;

  std::vector<OwnedPartition*> fresh;
  for (int i = 0; i < partitions->cnt; ++i) {
    const int32_t partition = partitions->elems[i].partition;
    GroupState::Log log;
    asked = Await([&] {
      auto answer = group.LogOf(partition);
      if (answer.ok()) log = *answer;
      return answer.status();
    });
    if (!asked.ok()) return asked;
    const CommittedOffset& there = committed[static_cast<size_t>(partition)];
    auto owned = assigner_.Prepare(partition, there, log, Assigner::WasAdded(partition, committed));
    if (!owned.ok()) return owned.status();
    if (Assigner::NeedsFirstCommit(**owned, there)) fresh.push_back(owned->get());
    owned_[partition] = *std::move(owned);
  }
  return fresh.empty() ? absl::OkStatus() : CommitStart(fresh);
}

absl::Status Lane::CommitStart(const std::vector<OwnedPartition*>& fresh) {
  const PartitionListPtr offsets = Offsets(fresh);
  while (!stop_.requested()) {
    if (absl::Status begun = output_.Begin(); !begun.ok()) return begun;
    switch (output_.Commit(offsets.get(), group_metadata_.get(), consumer_.get())) {
      case Outcome::kCommitted:
        return absl::OkStatus();
      case Outcome::kStopped:
        return absl::CancelledError("stopped before the starting offsets were committed");
      case Outcome::kAborted:
      case Outcome::kUnknown:
        break;
    }
    if (IsGroupMovedOn(output_.last_error_code()) || rd_kafka_assignment_lost(consumer_.get()) != 0) break;
    spdlog::warn("lane {}: committing where partitions start: {}", number_, output_.last_error());
    if (stop_.WaitFor(kAskAgainAfter)) break;
  }
  for (const OwnedPartition* owned : fresh) owned_.erase(owned->id);
  return absl::AbortedError("the group has moved on before the starting offsets were committed");
}

void Lane::Revoke(const rd_kafka_topic_partition_list_t* partitions, bool lost) {
  rd_kafka_t* consumer = consumer_.get();
  if (open_) {
    if (lost) {
      GiveUp(output_.Abort());
    } else {
      Commit();
    }
  }
  for (int i = 0; i < partitions->cnt; ++i) {
    const auto found = owned_.find(partitions->elems[i].partition);
    if (found == owned_.end()) continue;
    if (found->second->phase != Phase::kFailed) kept_.Put(std::move(found->second));
    owned_.erase(found);
  }
  // What was polled of them and not judged yet is the next owner's.
  std::erase_if(batch_, [this](const MessagePtr& message) {
    return message->rkt != nullptr && Find(message->partition) == nullptr;
  });
  if (std::string(rd_kafka_rebalance_protocol(consumer)) == "COOPERATIVE") {
    const ErrorPtr error(rd_kafka_incremental_unassign(consumer, partitions));
    if (error != nullptr)
      spdlog::warn("lane {}: unassigning: {}", number_, rd_kafka_error_string(error.get()));
  } else {
    joined_ = false;  // without partitions until the next assignment, which is not to be at their end
    rd_kafka_assign(consumer, nullptr);
  }
  Publish();
}

void Lane::Recheck(OwnedPartition& owned) {
  spdlog::warn(
      "{}: the log differs from the one that the filter was made of (truncated, or made anew): the "
      "filter is rebuilt",
      Name(owned));
  const GroupState group(consumer_.get(), options_.input);
  std::unique_ptr<OwnedPartition> rebuilt;
  const absl::Status asked = Await([&] {
    auto committed = group.Committed(owned.id + 1);
    if (!committed.ok()) return committed.status();
    auto log = group.LogOf(owned.id);
    if (!log.ok()) return log.status();
    auto prepared = assigner_.Prepare(owned.id, committed->back(), *log, /*added=*/false);
    if (prepared.ok()) rebuilt = *std::move(prepared);
    return prepared.status();
  });
  if (!asked.ok()) {
    if (!absl::IsCancelled(asked)) fatal_ = asked;
    owned.phase = Phase::kFailed;
    owned.problem = std::string(asked.message());
    return;
  }
  rebuilt->counts = owned.counts;
  owned = std::move(*rebuilt);
  if (owned.phase != Phase::kFailed) Seek(owned);
}

absl::Status Lane::Await(const std::function<absl::Status()>& ask) {
  bool said = false;
  for (;;) {
    absl::Status status = ask();
    if (!absl::IsUnavailable(status)) {
      if (said) SetWaiting("");
      return status;
    }
    SetWaiting(std::string(status.message()));
    if (!said) spdlog::warn("lane {}: waiting: {}", number_, std::string(status.message()));
    said = true;
    if (stop_.WaitFor(kAskAgainAfter)) return absl::CancelledError(status.message());
  }
}

void Lane::Seek(OwnedPartition& owned) {
  owned.sought_in_batch = batch_number_;
  const TopicPtr topic(rd_kafka_topic_new(consumer_.get(), options_.input.c_str(), nullptr));
  // Without waiting: messages fetched before are outdated from the call on, and dropped by the client.
  const rd_kafka_resp_err_t code = rd_kafka_seek(topic.get(), owned.id, owned.next, 0);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    spdlog::warn("{}: seeking offset {}: {}", Name(owned), owned.next, rd_kafka_err2str(code));
  }
}

OwnedPartition* Lane::Find(int32_t partition) {
  const auto found = owned_.find(partition);
  return found == owned_.end() ? nullptr : found->second.get();
}

std::string Lane::Name(const OwnedPartition& owned) const {
  return absl::StrCat(options_.input, "-", owned.id);
}

PartitionListPtr Lane::Offsets(const std::vector<OwnedPartition*>& partitions) const {
  PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const OwnedPartition* owned : partitions) {
    rd_kafka_topic_partition_t* element =
        rd_kafka_topic_partition_list_add(list.get(), options_.input.c_str(), owned->id);
    element->offset = owned->next;
    const std::string metadata = owned->Metadata(id_fingerprint_, options_.stage.horizon).ToString();
    element->metadata = rd_kafka_mem_malloc(consumer_.get(), metadata.size());
    std::copy(metadata.begin(), metadata.end(), static_cast<char*>(element->metadata));
    element->metadata_size = metadata.size();
  }
  return list;
}

std::vector<OwnedPartition*> Lane::InTransaction() {
  std::vector<OwnedPartition*> partitions;
  for (auto& [id, owned] : owned_) {
    if (owned->in_transaction()) partitions.push_back(owned.get());
  }
  return partitions;
}

void Lane::SetWaiting(const std::string& why) {
  const std::lock_guard<std::mutex> lock(report_mutex_);
  report_.waiting = why;
}

bool Lane::AtEnd() const {
  if (!joined_ || open_) return false;
  for (const auto& [id, owned] : owned_) {
    if (owned->phase == Phase::kFailed) continue;  // the daemon says so when it ends
    if (owned->phase != Phase::kActive) return false;
    const auto index = static_cast<size_t>(id);
    if (index >= topics_.end_offsets.size()) continue;
    // The last offsets may be control records, which no one sees but as the end of the partition.
    if (std::max(owned->committed, owned->end_of_log) < topics_.end_offsets[index]) return false;
  }
  return true;
}

void Lane::Publish() {
  next_publish_ = absl::Now() + kPublishEvery;
  LaneReport report;
  report.lane = number_;
  report.joined = joined_;
  report.at_end = published_at_end_ = AtEnd();
  report.commits = commits_;
  report.aborts = aborts_;
  report.fences = output_.fences();
  for (const auto& [id, owned] : owned_) {
    PartitionReport partition;
    partition.partition = id;
    partition.phase = owned->phase;
    partition.problem = owned->problem;
    partition.counts = owned->counts;
    partition.committed = owned->committed;
    partition.position = std::max(owned->next, owned->end_of_log);
    int64_t low = 0;
    rd_kafka_get_watermark_offsets(consumer_.get(), options_.input.c_str(), id, &low,
                                   &partition.high_watermark);
    partition.restore_from = owned->restore_from;
    partition.restore_to = owned->restore_to;
    if (owned->points) partition.restart = owned->points->oldest().offset;
    partition.short_history = owned->short_history(options_.stage.horizon);
    const std::pair now(owned->next, owned->committed);
    if (owned->filter != nullptr && std::exchange(owned->status_at, now) != now) {
      owned->status = owned->filter->Status();
    }
    partition.filter = owned->status;
    report.partitions.push_back(std::move(partition));
  }
  const std::lock_guard<std::mutex> lock(report_mutex_);
  report.waiting = std::move(report_.waiting);
  report_ = std::move(report);
}

LaneReport Lane::Report() const {
  const std::lock_guard<std::mutex> lock(report_mutex_);
  return report_;
}

}  // namespace lethe::kafka
