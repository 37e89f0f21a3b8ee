#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lethe/stage.h"
#include "src/engines/new_filter.h"
#include "src/stage/batch.h"
#include "src/stage/no_memory.h"
#include "src/stage/partition_impl.h"

namespace lethe {
namespace {

// Observe() moves the filters' time at most so often.
constexpr int64_t kAdvancesPerHorizon = 1024;

int64_t ToMs(absl::Time time) {
  return time == absl::InfinitePast() ? kNoStreamTime : absl::ToUnixMillis(time);
}

// Calls visit(first, size) for chunks of at most Batch::kCapacity that together are [0, events).
template <typename Visit>
void ForEachChunk(size_t events, Visit visit) {
  for (size_t first = 0; first < events; first += Batch::kCapacity) {
    visit(first, std::min(Batch::kCapacity, events - first));
  }
}

}  // namespace

Partition::Impl::Impl(std::string name_of, const PartitionKey& own_key, const StageOptions& options,
                      std::vector<std::unique_ptr<Shard>> parts)
    : name(std::move(name_of)),
      key(own_key),
      key_check(static_cast<uint32_t>(key.check) | 1),
      engine(options.engine),
      horizon(options.horizon),
      renew(options.renew),
      target_fpp(options.target_fpp),
      shards(std::move(parts)),
      clock(StreamTime::For(options.horizon)),
      link(std::make_shared<Link>()) {
  link->impl = this;
}

Partition::Impl::~Impl() {
  const std::lock_guard lock(link->mutex);
  link->impl = nullptr;
}

absl::StatusOr<Partition::Impl::Outside> Partition::Impl::EnterOutside(absl::string_view what) const {
  outside.fetch_add(1);
  Outside entered(this);
  if (!transaction_open) return entered;
  return absl::FailedPreconditionError(absl::StrCat(
      "partition ", name, ": ", what, " while a transaction is open; commit or abort the transaction first"));
}

absl::Status Partition::Impl::CheckHashes(absl::Span<const Event> events) const {
  uint32_t differing = 0;  // without a branch in the loop
  for (const Event& event : events) differing |= event.id.key_check ^ key_check;
  if (__builtin_expect(differing == 0, 1)) return absl::OkStatus();
  const auto is_foreign = [this](const Event& event) { return event.id.key_check != key_check; };
  const auto first = std::find_if(events.begin(), events.end(), is_foreign);
  return absl::InvalidArgumentError(
      absl::StrCat("partition ", name, ": event ", first - events.begin() + 1, " of ", events.size(),
                   first->id.key_check == 0 ? " has no hash of Partition::Hash()"
                                            : " has a hash of another partition, whose key differs",
                   "; hash its id with the partition that judges it"));
}

int64_t Partition::Impl::Stamp(Batch* batch) {
  const std::lock_guard lock(clock_mutex);
  started = true;
  if (clock.now_ms() != kNoStreamTime) {
    batch->Stamp([this](const Event& event) { return clock.Observe(ToMs(event.time)); });
  } else {
    batch->Stamp([this](const Event& event) {
      const int64_t now_ms = clock.Observe(ToMs(event.time));
      if (start_ms == kNoStreamTime) start_ms = now_ms;
      return now_ms;
    });
  }
  return start_ms;
}

void Partition::Impl::StampOutside(Batch* batch) {
  if (const int64_t began_ms = Stamp(batch); began_ms != kNoStreamTime) {
    AdvanceShards(began_ms);
    const std::lock_guard lock(clock_mutex);
    start_ms = kNoStreamTime;
  }
}

absl::Status Partition::Impl::Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts) {
  if (absl::Status status = CheckHashes(events); !status.ok()) return status;
  const absl::StatusOr<Outside> entered = EnterOutside("judging outside of it");
  if (!entered.ok()) return entered.status();
  ForEachChunk(std::min(events.size(), verdicts.size()), [&](size_t first, size_t size) {
    Batch batch(events.subspan(first, size), shards.size());
    StampOutside(&batch);
    batch.JudgeEachShard(verdicts.subspan(first, size),
                         [&](size_t shard, const ShardEvents& group, absl::Span<Verdict> answers) {
                           shards[shard]->Judge(group, answers);
                         });
  });
  return absl::OkStatus();
}

absl::Status Partition::Impl::JudgeInTransaction(absl::Span<const Event> events,
                                                 absl::Span<Verdict> verdicts) {
  if (absl::Status status = CheckHashes(events); !status.ok()) return status;
  ForEachChunk(std::min(events.size(), verdicts.size()), [&](size_t first, size_t size) {
    Batch batch(events.subspan(first, size), shards.size());
    const int64_t began_ms = Stamp(&batch);
    batch.JudgeEachShard(verdicts.subspan(first, size),
                         [&](size_t shard, const ShardEvents& group, absl::Span<Verdict> answers) {
                           if (!shards[shard]->JudgePending(group, began_ms, answers)) lacks_pending = true;
                         });
  });
  return absl::OkStatus();
}

absl::Status Partition::Impl::Replay(absl::Span<const Event> events) {
  if (absl::Status status = CheckHashes(events); !status.ok()) return status;
  const absl::StatusOr<Outside> entered = EnterOutside("a replay");
  if (!entered.ok()) return entered.status();
  ForEachChunk(events.size(), [&](size_t first, size_t size) {
    Batch batch(events.subspan(first, size), shards.size());
    StampOutside(&batch);
    batch.ForEachShard([&](size_t shard, const ShardEvents& group) { shards[shard]->Replay(group); });
  });
  return absl::OkStatus();
}

void Partition::Impl::ObserveInTransaction(absl::Time time) {
  const std::lock_guard lock(clock_mutex);
  started = true;
  const bool begins = clock.now_ms() == kNoStreamTime;
  const int64_t now_ms = clock.Observe(ToMs(time));
  if (begins) start_ms = now_ms;
}

absl::Status Partition::Impl::Observe(absl::Time time) {
  const absl::StatusOr<Outside> entered = EnterOutside("observing outside of it");
  if (!entered.ok()) return entered.status();
  int64_t now_ms;
  {
    const std::lock_guard lock(clock_mutex);
    started = true;
    now_ms = clock.Observe(ToMs(time));
    // To take each shard's lock for each record without an id would be slow.
    const int64_t step_ms = absl::ToInt64Milliseconds(horizon / kAdvancesPerHorizon);
    if (now_ms == kNoStreamTime || now_ms - std::max(advanced_ms, -StreamTime::kFarthestMs) < step_ms) {
      return absl::OkStatus();
    }
    advanced_ms = now_ms;
  }
  AdvanceShards(now_ms);
  return absl::OkStatus();
}

absl::Status Partition::Impl::AdvanceTo(absl::Time time) {
  const absl::StatusOr<Outside> entered = EnterOutside("moving its time");
  if (!entered.ok()) return entered.status();
  int64_t now_ms;
  {
    const std::lock_guard lock(clock_mutex);
    started = true;
    now_ms = clock.AdvanceTo(ToMs(time));
  }
  AdvanceShards(now_ms);
  return absl::OkStatus();
}

void Partition::Impl::AdvanceShards(int64_t now_ms) {
  if (now_ms == kNoStreamTime) return;
  for (const auto& shard : shards) shard->AdvanceTo(now_ms);
}

absl::Status Partition::Impl::StartAt(absl::Time time) {
  const absl::StatusOr<Outside> entered = EnterOutside("setting its time");
  if (!entered.ok()) return entered.status();
  int64_t time_ms = ToMs(time);
  {
    const std::lock_guard lock(clock_mutex);
    if (started) {
      return absl::FailedPreconditionError(
          absl::StrCat("partition ", name, ": StartAt after the first event; open a new partition for it"));
    }
    if (time_ms == kNoStreamTime) return absl::OkStatus();
    started = true;
    clock.StartAt(time_ms);
    time_ms = clock.now_ms();
  }
  AdvanceShards(time_ms);
  return absl::OkStatus();
}

void Partition::Impl::LimitStreamTime(absl::Time latest) {
  const int64_t latest_ms = latest == absl::InfiniteFuture() ? INT64_MAX : ToMs(latest);
  const std::lock_guard lock(clock_mutex);
  clock.LimitTo(latest_ms);
  clock_at_begin.LimitTo(latest_ms);
}

absl::Status Partition::Impl::Begin() {
  if (transaction_open.exchange(true)) {
    return absl::FailedPreconditionError(
        absl::StrCat("partition ", name, ": a transaction is open; commit or abort it before the next"));
  }
  for (int calls = outside; calls != 0; calls = outside) outside.wait(calls);
  lacks_pending = false;
  const std::lock_guard lock(clock_mutex);
  clock_at_begin = clock;
  started_at_begin = started;
  return absl::OkStatus();
}

void Partition::Impl::Commit() noexcept {
  int64_t now_ms, began_ms;
  {
    const std::lock_guard lock(clock_mutex);
    now_ms = clock.now_ms();
    began_ms = std::exchange(start_ms, kNoStreamTime);
  }
  for (const auto& shard : shards) shard->Commit(began_ms, now_ms);
  transaction_open = false;
}

void Partition::Impl::Abort() noexcept {
  for (const auto& shard : shards) shard->Abort();
  {
    const std::lock_guard lock(clock_mutex);
    clock = clock_at_begin;
    started = started_at_begin;
    start_ms = kNoStreamTime;
  }
  transaction_open = false;
}

PartitionStatus Partition::Impl::Status() const {
  const int64_t most_lines = EngineFilter::kSampledLines / static_cast<int64_t>(shards.size());
  MergedShards merged(shards.size());
  ShardStatus of_shard;  // whose lists keep their memory
  for (const auto& shard : shards) {
    shard->GetStatus(most_lines, /*with_generations=*/shards.size() == 1, &of_shard);
    merged.Add(of_shard);
  }
  const ShardStatus all = merged.Take();
  return {.name = name,
          .stream_time = StreamTimeNow(),
          .unique = all.unique,
          .duplicates = all.duplicates,
          .replayed = all.replayed,
          .pending = all.pending,
          .filter = all.filter,
          .audit = all.audit};
}

absl::Time Partition::Impl::StreamTimeNow() const {
  const std::lock_guard lock(clock_mutex);
  const int64_t now_ms = clock.now_ms();
  return now_ms == kNoStreamTime ? absl::InfinitePast() : absl::FromUnixMillis(now_ms);
}

Partition::Partition(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Partition::~Partition() = default;

HashedId Partition::Hash(absl::string_view id) const {
  return {HashId(id, impl_->key.key), impl_->key_check};
}

absl::StatusOr<Verdict> Partition::Judge(absl::string_view id, absl::Time time) {
  const Event event{.id = Hash(id), .time = time};
  Verdict verdict = Verdict::kUnique;
  if (absl::Status judged = Judge({&event, 1}, {&verdict, 1}); !judged.ok()) return judged;
  return verdict;
}

absl::Status Partition::Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts) {
  return OrNoMemory([&] { return impl_->Judge(events, verdicts); });
}

absl::StatusOr<Transaction> Partition::Begin() {
  absl::Status status = OrNoMemory([&] { return impl_->Begin(); });
  if (!status.ok()) return status;
  return Transaction(this);
}

absl::Status Partition::Replay(absl::Span<const Event> events) {
  return OrNoMemory([&] { return impl_->Replay(events); });
}
absl::Status Partition::Observe(absl::Time time) {
  return OrNoMemory([&] { return impl_->Observe(time); });
}
absl::Status Partition::AdvanceTo(absl::Time stream_time) {
  return OrNoMemory([&] { return impl_->AdvanceTo(stream_time); });
}
absl::Status Partition::StartAt(absl::Time stream_time) {
  return OrNoMemory([&] { return impl_->StartAt(stream_time); });
}
void Partition::LimitStreamTime(absl::Time latest) { impl_->LimitStreamTime(latest); }
absl::Time Partition::stream_time() const { return impl_->StreamTimeNow(); }
PartitionStatus Partition::Status() const { return impl_->Status(); }

}  // namespace lethe
