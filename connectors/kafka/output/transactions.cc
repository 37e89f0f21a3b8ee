#include "connectors/kafka/output/transactions.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/client/message_view.h"
#include "connectors/kafka/group/assignment.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(100);
// A transaction is also committed when the sums of its counters take this much: their keys may be as large as
// records are.
constexpr int64_t kMaxSumsBytes = int64_t{16} << 20;
// Fewer in a row are a rebalance, or a broker that is started again.
constexpr int kManyFailures = 3;

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

int64_t SumsBytes(const OwnedPartitions& owned) {
  int64_t bytes = 0;
  for (const auto& [id, partition] : owned) {
    for (const CounterSums& sums : partition->sums) bytes += sums.bytes();
  }
  return bytes;
}

}  // namespace

Transactions::Transactions(const DaemonOptions& options, const Topics& topics, const Tuning& tuning,
                           WorkerState& state, Source& source, OwnedPartitions& owned, Output& output,
                           HeldPartitions& held, SnapshotCycle& snapshots, Warnings& warnings)
    : options_(options),
      topics_(topics),
      tuning_(tuning),
      id_fingerprint_(IdFingerprint(options, topics.output_partitions)),
      state_(state),
      source_(source),
      owned_(owned),
      output_(output),
      held_(held),
      snapshots_(snapshots),
      warnings_(warnings),
      writer_(options, topics, output),
      refusal_search_(topics.output_rules) {}

absl::Status Transactions::Open() {
  return output_.Open({topics_.max_batch_bytes(), topics_.max_record_bytes()});
}

size_t Transactions::room_records() const {
  return backoff_.max_records() - std::min(carried_out_, backoff_.max_records() - 1);
}

absl::Duration Transactions::time_left() const {
  return open_ ? deadline_ - SteadyNow() : absl::InfiniteDuration();
}

bool Transactions::IsDue() const {
  return open_ && (carried_out_ >= backoff_.max_records() || output_.size().bytes >= backoff_.max_bytes() ||
                   SumsBytes(owned_) >= kMaxSumsBytes || SteadyNow() >= deadline_);
}

absl::Status Transactions::Begin(OwnedPartition& owned) {
  if (!open_) {
    if (absl::Status begun = output_.Begin(); !begun.ok()) {
      if (!absl::IsCancelled(begun)) state_.fatal = begun;
      return begun;
    }
    open_ = true;
    deadline_ = SteadyNow() + tuning_.commit_interval();
    figures_.TransactionBegun(absl::Now());
  }
  if (owned.in_transaction()) return absl::OkStatus();
  absl::Status status = owned.filter->SetTargetFpp(tuning_.current().target_fpp);
  if (status.ok()) status = owned.filter->SetPassSuspects(tuning_.current().policies.passes_suspects());
  if (status.ok()) {
    auto begun = owned.filter->Begin();
    if (begun.ok()) owned.transaction.emplace(std::move(*begun));
    status = begun.status();
  }
  if (!status.ok()) state_.fatal = status;
  return status;
}

absl::Status Transactions::Write(OwnedPartition& owned, const JudgedRun& run) {
  // Before they are carried out: if that fails on the way, this is what was tried.
  const rd_kafka_message_t& message = *run.records.back().message;
  const MessageView last(message);
  owned.next = message.offset + 1;
  owned.mark = {message.offset, last.Hash(), last.time()};
  owned.points->Note(owned.next, owned.timed_records, owned.filter->stream_time());
  carried_out_ += run.records.size();
  figures_.RunJudged(run.oldest_ms, run.records.size());
  for (const JudgedRecord& record : run.records) {
    if (absl::Status written = writer_.CarryOut(owned, record); !written.ok()) return written;
  }
  return absl::OkStatus();
}

void Transactions::PassOver(OwnedPartition& owned, int64_t end) {
  owned.open_counts.unreadable += end - owned.next;
  owned.open_counts.dropped += end - owned.next;
  owned.next = end;
  owned.points->Note(owned.next, owned.timed_records, owned.filter->stream_time());
  ++carried_out_;
}

void Transactions::Commit() {
  figures_.CommitBegins(absl::Now());
  const std::vector<OwnedPartition*> partitions = InTransaction(owned_);
  for (OwnedPartition* owned : partitions) {
    if (!writer_.ProduceSums(*owned).ok()) return Abort();
  }
  snapshots_.Name(partitions);
  const Outcome outcome =
      output_.Commit(Offsets(partitions).get(), source_.group_metadata(), source_.client());
  if (outcome != Outcome::kCommitted) return GiveUp(outcome);
  Finish(/*committed=*/true);
}

bool Transactions::AbortForNewConsumer() {
  if (!open_) return true;
  const Outcome aborted = output_.Abort();
  Finish(/*committed=*/false);
  if (aborted == Outcome::kStopped) LoseProducer();
  return aborted != Outcome::kStopped;
}

absl::Status Transactions::CommitStart(const std::vector<OwnedPartition*>& fresh) {
  const PartitionListPtr offsets = Offsets(fresh);
  while (!state_.stop.requested()) {
    if (absl::Status begun = output_.Begin(); !begun.ok()) return begun;
    const Outcome outcome = output_.Commit(offsets.get(), source_.group_metadata(), source_.client());
    if (outcome == Outcome::kCommitted) {
      for (OwnedPartition* owned : fresh) owned->in_group = owned->committed;
      return absl::OkStatus();
    }
    if (outcome == Outcome::kStopped) {
      LoseProducer();
      return state_.fatal.ok() ? absl::CancelledError("stopped before the starting offsets were committed")
                               : state_.fatal;
    }
    if (IsGroupMovedOn(output_.last_error_code()) || source_.IsLost()) break;
    if (const auto like_it = refused_starts_.Next()) {
      spdlog::warn("lane {}: committing where partitions start: {}{}", state_.lane, output_.last_error(),
                   *like_it);
    }
    if (state_.stop.WaitFor(kAskAgainAfter)) break;
  }
  for (const OwnedPartition* owned : fresh) owned_.erase(owned->id);
  return absl::AbortedError("the group has moved on before the starting offsets were committed");
}

void Transactions::GiveUp(Outcome outcome) {
  const Failure failure = output_.failure();
  const std::string why = output_.last_error();
  if (outcome != Outcome::kStopped) {
    // What was aborted is not committed, even if another instance has come to the same offset meanwhile.
    const Outcome resolved = Resolve();
    if (outcome == Outcome::kUnknown || resolved == Outcome::kStopped) outcome = resolved;
  }
  if (outcome == Outcome::kCommitted) {
    spdlog::info("lane {}: the transaction was committed after all ({})", state_.lane, why);
    return Finish(/*committed=*/true);
  }
  if (outcome == Outcome::kStopped) LoseProducer();
  held_.Forget();
  if (const auto like_it = aborted_.Next()) {
    spdlog::warn("lane {}: transaction of {} records aborted, to be judged again: {}{}", state_.lane,
                 carried_out_, why, *like_it);
  }
  absl::Duration pause;
  if (failure == Failure::kRefused) {
    NarrowDown(why);
  } else {
    aborted_because_ = why;
    pause = backoff_.Failed(Size());
  }
  const std::vector<OwnedPartition*> rolled_back = InTransaction(owned_);
  if (outcome == Outcome::kStopped) {
    for (OwnedPartition* owned : rolled_back) owned->LeaveNamed();
  }
  Finish(/*committed=*/false);
  // No others: the offset that an idle one is at may be gone from its log.
  for (OwnedPartition* owned : rolled_back) {
    if (owned->phase != Phase::kFailed) source_.Seek(*owned);
  }
  if (pause > absl::ZeroDuration()) state_.stop.WaitFor(pause);
}

Outcome Transactions::Resolve() {
  std::vector<CommittedOffset> committed;
  const GroupState group(source_.client(), options_.input);
  const absl::Status asked = state_.Await([&] {
    auto answer =
        group.Committed(std::max(topics_.partitions, owned_.empty() ? 0 : owned_.rbegin()->first + 1));
    if (answer.ok()) committed = std::move(*answer);
    return answer.status();
  });
  if (!asked.ok()) return Outcome::kStopped;
  Outcome outcome = Outcome::kAborted;
  for (OwnedPartition* owned : InTransaction(owned_)) {
    const int64_t offset = committed[static_cast<size_t>(owned->id)].offset;
    if (offset == owned->next && owned->next != owned->in_group) outcome = Outcome::kCommitted;
    if (offset != owned->next && offset != owned->in_group) {
      owned->LeaveNamed();
      owned->RolledBack();
      held_.Release(*owned);
      owned->Fail(absl::StrCat(source_.Name(*owned), ": the group is at offset ", offset, ", not at ",
                               owned->in_group, ": another instance has it now; waiting for the group"));
      spdlog::warn("{}", owned->problem);
    }
  }
  return outcome;
}

void Transactions::Finish(bool committed) {
  const std::vector<OwnedPartition*> partitions = InTransaction(owned_);
  if (committed) warnings_.OfMissingIds(partitions);
  for (OwnedPartition* owned : partitions) {
    if (!committed) {
      owned->RolledBack();
      continue;
    }
    totals_ += owned->open_counts;
    owned->Committed();
    warnings_.OfUnlisted(*owned);
    if (owned->phase == Phase::kFailed) {
      spdlog::error("{}", owned->problem);
      source_.SetPaused(*owned, true);
    }
  }
  ++(committed ? commits_ : aborts_);
  if (committed) {
    figures_.Committed(absl::Now());
    warnings_.OfKeys(owned_);
    backoff_.Committed(Size());
  } else {
    figures_.RolledBack();
  }
  open_ = false;
  deadline_ = absl::InfiniteFuture();
  carried_out_ = 0;
  if (committed) snapshots_.Take(owned_);
}

void Transactions::LoseProducer() {
  if (state_.ends()) return;
  state_.fatal = absl::UnavailableError(
      absl::StrCat("lane ", state_.lane, ": the producer cannot go on: ", output_.last_error()));
}

void Transactions::NarrowDown(const std::string& why) {
  const std::vector<Output::Refusal>& refusals = output_.refusals();
  std::vector<RefusedRecord> records;
  for (const Output::Refusal& refusal : refusals) records.push_back(refusal.record);
  const bool is_any_invalid = std::any_of(records.begin(), records.end(),
                                          [](const RefusedRecord& record) { return record.is_invalid; });
  if (is_any_invalid && !refusal_search_.trusted(SteadyNow())) {
    // As they are now; if the broker does not say, as they were.
    const auto output = DescribeTopic(source_.client(), options_.output);
    if (output.ok()) refusal_search_.SetRules(output->record_rules());
  }
  bool is_known = false;
  for (const size_t i : refusal_search_.ToBlame(records, output_.batch_bytes(), output_.refusals_are_named(),
                                                absl::Now(), SteadyNow())) {
    const RecordPlace& place = refusals[i].place;
    OwnedPartition* owned = place.offset < 0 ? nullptr : Find(owned_, place.partition);
    if (owned == nullptr) continue;
    if (place.copied) {
      owned->uncopied.insert(place.offset);
    } else {
      owned->undeliverable[place.offset] = {refusals[i].why, place.diverted};
    }
    is_known = true;
  }
  if (is_known) return;
  if (carried_out_ > 1) return backoff_.Refused(Size());
  for (OwnedPartition* owned : InTransaction(owned_)) {
    // Refused for the second time is what there was left to write: the diverted record.
    const auto [known, is_new] = owned->undeliverable.try_emplace(owned->mark.offset, Undeliverable{why});
    known->second.divert_refused = !is_new;
  }
}

TransactionSize Transactions::Size() const {
  TransactionSize size = output_.size();
  size.records = carried_out_;
  return size;
}

PartitionListPtr Transactions::Offsets(const std::vector<OwnedPartition*>& partitions) const {
  PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const OwnedPartition* owned : partitions) {
    rd_kafka_topic_partition_t* element =
        rd_kafka_topic_partition_list_add(list.get(), options_.input.c_str(), owned->id);
    element->offset = owned->next;
    const std::string metadata = owned->Metadata(id_fingerprint_, options_).ToString();
    element->metadata = rd_kafka_mem_malloc(source_.client(), metadata.size());
    std::copy(metadata.begin(), metadata.end(), static_cast<char*>(element->metadata));
    element->metadata_size = metadata.size();
  }
  return list;
}

std::string Transactions::WhyNothingIsCommitted() const {
  if (backoff_.failures() < kManyFailures || !IsUnfinished()) return "";
  return absl::StrCat(backoff_.failures(), " transactions in a row were given up: ", aborted_because_);
}

bool Transactions::IsUnfinished() const {
  return std::any_of(owned_.begin(), owned_.end(), [](const auto& each) { return each.second->given_up; });
}

void Transactions::AddTo(LaneReport& report) const {
  report.commits = commits_;
  report.aborts = aborts_;
  report.totals = totals_;
  report.fences = output_.fences();
  report.histograms = figures_.histograms();
}

}  // namespace lethe::kafka
