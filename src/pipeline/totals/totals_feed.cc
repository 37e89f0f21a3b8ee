#include "src/pipeline/totals/totals_feed.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lethe/counters.h"

namespace lethe {
namespace {

constexpr absl::Duration kPollFor = absl::Milliseconds(100);
constexpr absl::Duration kLookAtStoreEvery = absl::Seconds(1);
constexpr absl::Duration kTryAgainAfter = absl::Milliseconds(500);
constexpr absl::Duration kHandover = absl::Milliseconds(100);
// The size of a batch, during which a store serves no one else: about a millisecond.
constexpr size_t kMostKeys = 512;
constexpr size_t kMostBatchBytes = 1 << 20;
// The size of all batches of one request.
constexpr size_t kMostPendingBytes = 4 << 20;
constexpr size_t kBytesPerTotal = 64;

}  // namespace

TotalsFeed::TotalsFeed(const DaemonOptions& options, const CounterOptions& counter,
                       std::unique_ptr<CounterStore> store, std::unique_ptr<TotalsLog> log,
                       std::function<std::vector<int32_t>()> owned, const StopFlag& stop, const Clock& clock)
    : options_(options),
      counter_(counter),
      store_(std::move(store)),
      log_(std::move(log)),
      owned_(std::move(owned)),
      stop_(stop),
      clock_(clock),
      current_at_(clock.Steady()),
      current_report_(current_at_) {
  report_.counter = counter_.name;
  report_.store = store_->name();
  report_.problem = "not connected yet";
}

TotalsFeed::~TotalsFeed() { Stop(); }

void TotalsFeed::Start() {
  thread_ = clock_.Start([this] { Run(); });
}

void TotalsFeed::Stop() {
  end_.Request();
  store_->Interrupt();
  if (thread_ == nullptr) return;
  thread_->Join();
  thread_.reset();
}

void TotalsFeed::Run() {
  while (!end_.requested()) {
    OwnsOthers();
    UpdateEnds();
    Publish();
    const absl::Status ended = Session();
    if (!ended.ok()) clock_.WaitFor(end_, absl::IsAborted(ended) ? kHandover : kTryAgainAfter);
  }
}

absl::Status TotalsFeed::Session() {
  batches_.clear();
  open_.clear();
  pending_bytes_ = 0;
  if (absl::Status found = FindPositions(); !found.ok()) return found;
  // Each session opens the log again, so that no record comes from an earlier position.
  const absl::Cleanup read_no_more = [&] { log_->Close(); };
  if (absl::Status opened = log_->Open(stored_); !opened.ok()) return opened;
  absl::Time next_look = clock_.Steady();
  while (!end_.requested()) {
    const std::optional<InputRecord> record = log_->Poll(batches_.empty() ? kPollFor : absl::ZeroDuration());
    const absl::Time now = clock_.Steady();
    if (record) Take(*record);
    absl::Status status;
    if (!batches_.empty() && (!record || pending_bytes_ >= kMostPendingBytes)) {
      status = Flush();
    }
    if (status.ok() && now >= next_look) {
      if (OwnsOthers()) return absl::OkStatus();
      if (batches_.empty()) status = ComparePositions();
      UpdateEnds();
      Publish();
      next_look = now + kLookAtStoreEvery;
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void TotalsFeed::KeepOwned() {
  std::vector<int32_t> partitions = owned_();
  std::sort(partitions.begin(), partitions.end());
  const MutexLock lock(mutex_);
  kept_ = std::move(partitions);
}

bool TotalsFeed::OwnsOthers() {
  std::vector<int32_t> partitions = owned_();
  // After the stop the lanes release their partitions.
  const bool gives_back = stop_.requested();
  std::sort(partitions.begin(), partitions.end());
  {
    const MutexLock lock(mutex_);
    if (kept_) {
      partitions = *kept_;
    } else if (gives_back) {
      return false;
    }
  }
  if (partitions == partitions_) return false;
  partitions_ = std::move(partitions);
  return true;
}

absl::StatusOr<std::map<int32_t, int64_t>> TotalsFeed::AskStore() {
  const absl::StatusOr<std::vector<int64_t>> answer = store_->Positions(partitions_);
  if (!answer.ok()) return Met(answer.status());
  std::map<int32_t, int64_t> positions;
  for (size_t i = 0; i < partitions_.size(); ++i) positions[partitions_[i]] = (*answer)[i];
  return positions;
}

absl::Status TotalsFeed::FindPositions() {
  const auto positions = AskStore();
  if (!positions.ok()) return positions.status();
  for (const auto& [partition, position] : *positions) {
    const auto before = stored_.find(partition);
    if (before == stored_.end() || position >= before->second) continue;
    spdlog::warn(
        "counter {}: store {} was set back from offset {} of {}-{} to {}, or totals were deleted in "
        "it; lethe writes them again",
        counter_.name, store_->name(), before->second, counter_.output, partition, position);
  }
  read_ = stored_ = *positions;
  Publish();
  return CheckFit();
}

absl::Status TotalsFeed::ComparePositions() {
  const auto positions = AskStore();
  if (!positions.ok()) return positions.status();
  if (*positions != stored_) return absl::AbortedError("the store has another position");
  return CheckFit();
}

StoreBatch& TotalsFeed::OpenBatch(int32_t partition) {
  const auto [open, is_new] = open_.try_emplace(partition, Open{batches_.size(), 0, {}});
  if (is_new) {
    const int64_t from = read_[partition];
    batches_.push_back({partition, from, from, {}});
  }
  return batches_[open->second.batch];
}

void TotalsFeed::Take(const InputRecord& record) {
  const bool is_end = record.event != nullptr && record.event->kind == SourceEvent::Kind::kEnd;
  if (record.event != nullptr && !is_end) {
    // The client retries; the lag shows a standstill.
    const std::string& why = record.event->why;
    if (why.empty() || std::exchange(said_reading_, why) == why) return;
    spdlog::warn("counter {}: store {}: {}", counter_.name, store_->name(), why);
    return;
  }
  said_reading_.clear();
  const auto read = read_.find(record.partition);
  const int64_t next = is_end ? record.offset : record.offset + 1;
  if (read == read_.end() || next <= read->second) return;
  StoreBatch& batch = OpenBatch(record.partition);
  batch.to = read->second = next;
  if (is_end) return;  // transaction markers follow the last record
  const absl::StatusOr<CounterTotal> total = CounterTotal::Parse(record.key.value_or(""), record.value);
  if (!total.ok()) {
    if (!std::exchange(said_foreign_, true)) {
      spdlog::error(
          "{}-{} offset {}: not a total: {}. lethe does not store it. Let nothing but lethe write to {}",
          counter_.output, record.partition, record.offset, std::string(total.status().message()),
          counter_.output);
    }
    return;
  }
  if (total->counter != counter_.name || total->topic != options_.origin()) return;
  Open& open = open_.at(record.partition);
  const auto [at, is_new] = open.at.try_emplace(total->key, batch.totals.size());
  if (is_new) batch.totals.push_back({total->key, std::nullopt});
  StoredTotal& stored = batch.totals[at->second];
  stored.total = record.value ? std::optional<int64_t>(total->total) : std::nullopt;
  if (!is_new) return;
  const size_t bytes = total->key.size() + kBytesPerTotal;
  pending_bytes_ += bytes;
  open.bytes += bytes;
  if (batch.totals.size() >= kMostKeys || open.bytes >= kMostBatchBytes) open_.erase(record.partition);
}

absl::Status TotalsFeed::Flush() {
  const absl::StatusOr<std::vector<int64_t>> positions = store_->Apply(batches_);
  if (absl::Status met = Met(positions.status()); !met.ok()) return met;
  absl::Status status;
  int64_t totals = 0;
  for (size_t i = 0; i < batches_.size(); ++i) {
    const StoreBatch& batch = batches_[i];
    if ((*positions)[i] == batch.to) {
      stored_[batch.partition] = batch.to;
      totals += static_cast<int64_t>(batch.totals.size());
    } else {
      status = absl::AbortedError("the store has another position");
    }
  }
  batches_.clear();
  open_.clear();
  pending_bytes_ = 0;
  {
    const MutexLock lock(mutex_);
    report_.totals += totals;
  }
  Publish();
  return status;
}

void TotalsFeed::UpdateEnds() {
  const absl::Time now = clock_.Steady();
  const auto ends = log_->Ends(partitions_);
  if (!ends.ok()) return;
  for (const auto& [partition, end] : *ends) ends_[partition] = end;
  asked_at_ = now;
}

absl::Status TotalsFeed::CheckFit() {
  const bool may_be_ahead = std::any_of(stored_.begin(), stored_.end(), [&](const auto& stored) {
    return stored.second > ends_[stored.first];
  });
  if (!may_be_ahead) return Met(absl::OkStatus());
  // The topic grows while others store: only an end that lethe asked for after the position counts.
  const auto ends = log_->Ends(partitions_);
  if (!ends.ok()) return absl::AbortedError("no broker tells the ends");
  for (const auto& [partition, position] : stored_) {
    const auto end = ends->find(partition);
    if (end == ends->end()) return absl::AbortedError("no broker tells the ends");
    if (position <= end->second) continue;
    return Met(absl::FailedPreconditionError(absl::StrCat(
        "it has the totals up to offset ", position, " of ", counter_.output, "-", partition,
        ", which ends at ", end->second,
        ": the topic was recreated or cut, or the store has the totals of another cluster. Run `",
        store_->ResetCommand(), "`; lethe then writes all totals again")));
  }
  return Met(absl::OkStatus());
}

void TotalsFeed::Publish() {
  int64_t lag = 0;
  for (const int32_t partition : partitions_) {
    const auto position = stored_.find(partition);
    lag += std::max<int64_t>(ends_[partition] - (position == stored_.end() ? 0 : position->second), 0);
  }
  if (lag == 0) current_at_ = std::max(current_at_, asked_at_);
  const MutexLock lock(mutex_);
  report_.lag = lag;
  current_report_ = current_at_;
  positions_ = stored_;
}

absl::Status TotalsFeed::Met(const absl::Status& status) {
  if (absl::IsCancelled(status)) return status;  // at the end
  {
    const MutexLock lock(mutex_);
    report_.connected = status.ok();
    report_.problem = std::string(status.message());
    if (!status.ok()) ++report_.failures;
  }
  // Once for each change of state: an error that stays may change its wording.
  if (status.code() == said_) return status;
  if (status.ok()) {
    spdlog::info("counter {}: store {} takes totals", counter_.name, store_->name());
  } else {
    spdlog::warn("counter {}: store {}: {}. The totals are safe in {}, and are stored when it takes them",
                 counter_.name, store_->name(), std::string(status.message()), counter_.output);
  }
  said_ = status.code();
  return status;
}

void TotalsFeed::Finish(absl::Duration patience, const std::function<bool()>& go_on) {
  const absl::Time deadline = clock_.Steady() + patience;
  const auto wait = [&] { return clock_.Steady() < deadline && go_on(); };
  std::map<int32_t, int64_t> stored;
  const auto look = [&] {
    const MutexLock lock(mutex_);
    stored = positions_;
    for (const int32_t partition : kept_.value_or(std::vector<int32_t>())) stored.try_emplace(partition, 0);
  };
  look();
  // The last commit may be in the group's offsets and not yet in the totals, so the high watermark counts.
  std::map<int32_t, int64_t> ends;
  for (auto at = stored.begin(); at != stored.end() && wait();) {
    const auto end = log_->HighWatermark(at->first);
    if (!end.ok()) {
      clock_.WaitFor(end_, absl::Milliseconds(10));
      continue;
    }
    ends[at->first] = *end;
    ++at;
  }
  const auto is_behind = [&] {
    look();
    return ends.size() < stored.size() || std::any_of(ends.begin(), ends.end(), [&](const auto& end) {
             return stored[end.first] < end.second;
           });
  };
  bool behind = is_behind();
  while (behind && wait()) {
    clock_.WaitFor(end_, absl::Milliseconds(10));
    behind = is_behind();
  }
  Stop();
  if (!behind) return;
  spdlog::warn("counter {}: store {} lacks the last totals; the next owner of the partitions stores them",
               counter_.name, store_->name());
}

StoreReport TotalsFeed::Report() const {
  const MutexLock lock(mutex_);
  StoreReport report = report_;
  report.behind = report.lag == 0 ? absl::ZeroDuration() : clock_.Steady() - current_report_;
  return report;
}

}  // namespace lethe
