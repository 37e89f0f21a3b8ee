#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lethe/stage.h"
#include "src/assertion.h"
#include "src/engines/new_filter.h"
#include "src/filter/stream_clock.h"
#include "src/stage/batch.h"
#include "src/stage/no_memory.h"
#include "src/stage/partition_impl.h"

namespace lethe {
namespace {

// Observe() moves the filters' time at most so often.
constexpr int64_t kAdvancesPerHorizon = 1024;

}  // namespace

Partition::Impl::Impl(std::string name_of, const PartitionKey& own_key, const StageOptions& options,
                      std::vector<std::unique_ptr<Shard>> parts)
    : name(std::move(name_of)),
      key(own_key),
      key_check(static_cast<uint32_t>(key.check) | 1),
      engine(options.engine),
      horizon(options.horizon),
      horizon_ms(WholeMilliseconds(options.horizon)),
      renew(options.renew),
      target_fpp(options.target_fpp),
      shards(std::move(parts)),
      clock(StreamTime::For(options.horizon)),
      ahead(horizon_ms),
      ahead_at_begin(horizon_ms),
      link(std::make_shared<Link>()) {
  link->impl = this;
}

Partition::Impl::~Impl() {
  const MutexLock lock(link->mutex);
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
  return __builtin_expect(differing == 0, 1) ? absl::OkStatus() : ForeignHash(events);
}

absl::Status Partition::Impl::ForeignHash(absl::Span<const Event> events) const {
  size_t first = 0;
  while (events[first].id.key_check == key_check) ++first;
  return absl::InvalidArgumentError(
      absl::StrCat("partition ", name, ": event ", first + 1, " of ", events.size(),
                   events[first].id.key_check == 0 ? " has no hash of Partition::Hash()"
                                                   : " has a hash of another partition, whose key differs",
                   "; hash its id with the partition that judges it"));
}

void Partition::Impl::Take(absl::Span<const Event> events, Taker& taker) {
  for (size_t first = 0; first < events.size(); first += Batch::kCapacity) {
    TakeChunk(events.subspan(first, Batch::kCapacity), first, taker);
  }
}

void Partition::Impl::TakeChunk(absl::Span<const Event> events, size_t first, Taker& taker) {
  Batch batch(events, shards.size());
  int64_t began_ms;
  {
    const MutexLock lock(clock_mutex);
    started = true;
    const bool begins = clock.now_ms() == kNoStreamTime;
    bool is_ahead = ahead.Watches(clock.now_ms());
    batch.Stamp([&](const Event& event) {
      clock_mutex.AssertHeld();
      const int64_t time_ms = ToMs(event.time);
      const int64_t now_ms = clock.Observe(time_ms);
      is_ahead |= ahead.IsAhead(time_ms, now_ms);
      return now_ms;
    });
    if (__builtin_expect(is_ahead, 0)) return TakeOneByOne(events, first, begins, batch, taker);
    ReadLast(events);
    began_ms = start_ms;
  }
  taker.Many(first, batch, began_ms);
}

void Partition::Impl::TakeOneByOne(absl::Span<const Event> events, size_t first, bool begins, Batch& batch,
                                   Taker& taker) {
  RawArray<int64_t, Batch::kCapacity> times;
  batch.ForEachTime([&times](size_t i, int64_t now_ms) { times[i] = now_ms; });
  for (size_t i = 0; i < events.size(); ++i) {
    const IdHash id = events[i].id;
    const int64_t time_ms = ToMs(events[i].time);
    const int64_t now_ms = times[i];
    if (begins && now_ms != kNoStreamTime) {
      start_ms = now_ms;
      ahead.Begin(now_ms);
      taker.Start(now_ms);
      begins = false;
    }
    ahead.Read(time_ms);
    while (const std::optional<TimedId> due = ahead.Release(now_ms)) taker.Again(*due);
    const AheadIds::Entry* known = ahead.Find(id);
    const int64_t passes_ms = ahead.PassesAt(now_ms);
    const bool is_ahead = ahead.IsAhead(passes_ms, now_ms);
    OwnTime own{.time_ms = now_ms};
    if (known != nullptr || is_ahead) {
      const int64_t judged_ms = ahead.JudgedAt(time_ms, now_ms);
      own.time_ms = ahead.AskedAt(judged_ms, now_ms);
      if (known != nullptr) {
        const int64_t own_ms = time_ms == kNoStreamTime ? judged_ms : std::min(time_ms, judged_ms);
        const bool is_copy = own_ms <= known->passed_ms || own_ms - known->passed_ms <= horizon_ms;
        if (is_copy || !known->filter_had_it) own.is_copy = is_copy;
      }
    }
    const bool passes = taker.One(first + i, TimedId{id, now_ms}, own, start_ms);
    // It is over, also if it is not ahead this time.
    if (known != nullptr && passes) ahead.Forget(std::exchange(known, nullptr));
    if ((passes || taker.remembers_copies) && is_ahead) {
      const bool is_untimed = time_ms == kNoStreamTime;
      const auto left =
          ahead.Put({.id = id, .passed_ms = passes_ms, .is_untimed = is_untimed, .filter_had_it = !passes},
                    known, now_ms);
      if (left) taker.Again(TimedId{*left, now_ms});
    }
  }
}

// No more are looked at.
void Partition::Impl::ReadLast(absl::Span<const Event> events) {
  size_t first = events.size();
  for (int64_t timed = 0; first > 0 && timed < AheadIds::kRecent; --first) {
    timed += events[first - 1].time == absl::InfinitePast() ? 0 : 1;
  }
  for (const Event& event : events.subspan(first)) ahead.Read(ToMs(event.time));
}

absl::Status Partition::Impl::Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts) {
  if (absl::Status status = CheckHashes(events); !status.ok()) return status;
  const absl::StatusOr<Outside> entered = EnterOutside("judging outside of it");
  if (!entered.ok()) return entered.status();
  class Judging final : public Taker {
   public:
    Judging(Impl& impl, absl::Span<const Event> events, absl::Span<Verdict> verdicts)
        : Taker(impl.renew), impl_(impl), events_(events), verdicts_(verdicts) {}

    void Start(int64_t began_ms) override { impl_.StartOutside(began_ms); }
    void Many(size_t first, Batch& batch, int64_t) override {
      batch.JudgeEachShard(verdicts_.subspan(first, batch.size()),
                           [&](size_t shard, const ShardEvents& group, absl::Span<Verdict> answers) {
                             impl_.shards[shard]->Judge(group, answers);
                           });
    }
    bool One(size_t i, const TimedId& timed, const OwnTime& own, int64_t) override {
      verdicts_[i] = impl_.ShardOf(timed.id).JudgeOne(timed, own, events_[i].payload);
      return verdicts_[i] == Verdict::kUnique;
    }
    void Again(const TimedId& timed) override { impl_.ShardOf(timed.id).Renew(timed); }

   private:
    Impl& impl_;
    absl::Span<const Event> events_;
    absl::Span<Verdict> verdicts_;
  };
  events = events.first(std::min(events.size(), verdicts.size()));
  Judging judging(*this, events, verdicts);
  Take(events, judging);
  return absl::OkStatus();
}

absl::Status Partition::Impl::JudgeInTransaction(absl::Span<const Event> events,
                                                 absl::Span<Verdict> verdicts) {
  if (absl::Status status = CheckHashes(events); !status.ok()) return status;
  class Judging final : public Taker {
   public:
    Judging(Impl& impl, absl::Span<const Event> events, absl::Span<Verdict> verdicts)
        : Taker(impl.renew), impl_(impl), events_(events), verdicts_(verdicts) {}

    void Start(int64_t) override {}
    void Many(size_t first, Batch& batch, int64_t began_ms) override {
      batch.JudgeEachShard(verdicts_.subspan(first, batch.size()),
                           [&](size_t shard, const ShardEvents& group, absl::Span<Verdict> answers) {
                             if (!impl_.shards[shard]->JudgePending(group, began_ms, answers))
                               impl_.lacks_pending = true;
                           });
    }
    bool One(size_t i, const TimedId& timed, const OwnTime& own, int64_t began_ms) override {
      Shard& shard = impl_.ShardOf(timed.id);
      if (!shard.JudgeOnePending(timed, own, began_ms, events_[i].payload, &verdicts_[i])) {
        impl_.lacks_pending = true;
      }
      return verdicts_[i] == Verdict::kUnique;
    }
    void Again(const TimedId& timed) override {
      if (!impl_.ShardOf(timed.id).RenewPending(timed)) impl_.lacks_pending = true;
    }

   private:
    Impl& impl_;
    absl::Span<const Event> events_;
    absl::Span<Verdict> verdicts_;
  };
  events = events.first(std::min(events.size(), verdicts.size()));
  Judging judging(*this, events, verdicts);
  Take(events, judging);
  return absl::OkStatus();
}

absl::Status Partition::Impl::Replay(absl::Span<const Event> events) {
  if (absl::Status status = CheckHashes(events); !status.ok()) return status;
  const absl::StatusOr<Outside> entered = EnterOutside("a replay");
  if (!entered.ok()) return entered.status();
  class Replaying final : public Taker {
   public:
    Replaying(Impl& impl, absl::Span<const Event> events) : Taker(true), impl_(impl), events_(events) {}

    void Start(int64_t began_ms) override { impl_.StartOutside(began_ms); }
    void Many(size_t, Batch& batch, int64_t) override {
      batch.ForEachShard([&](size_t shard, const ShardEvents& group) { impl_.shards[shard]->Replay(group); });
    }
    bool One(size_t i, const TimedId& timed, const OwnTime& own, int64_t) override {
      return impl_.ShardOf(timed.id).ReplayOne(timed, own, events_[i].payload) == Verdict::kUnique;
    }
    void Again(const TimedId& timed) override { impl_.ShardOf(timed.id).Renew(timed); }

   private:
    Impl& impl_;
    absl::Span<const Event> events_;
  };
  Replaying replaying(*this, events);
  Take(events, replaying);
  return absl::OkStatus();
}

void Partition::Impl::Forget(IdHash id) {
  ShardOf(id).Forget(id);
  const MutexLock lock(clock_mutex);
  if (const AheadIds::Entry* const known = ahead.Find(id)) ahead.Forget(known);
}

void Partition::Impl::StartOutside(int64_t began_ms) {
  clock_mutex.AssertHeld();  // by Take()
  start_ms = kNoStreamTime;
  AdvanceShards(began_ms);
}

Shard& Partition::Impl::ShardOf(IdHash id) const { return *shards[Batch::ShardOf(id, shards.size())]; }

void Partition::Impl::ObserveInTransaction(absl::Time time) {
  const MutexLock lock(clock_mutex);
  started = true;
  const bool begins = clock.now_ms() == kNoStreamTime;
  const int64_t now_ms = clock.Observe(ToMs(time));
  if (begins) start_ms = now_ms;
  if (begins) ahead.Begin(now_ms);
  ahead.Read(ToMs(time));
}

absl::Status Partition::Impl::Observe(absl::Time time) {
  const absl::StatusOr<Outside> entered = EnterOutside("observing outside of it");
  if (!entered.ok()) return entered.status();
  int64_t now_ms;
  {
    const MutexLock lock(clock_mutex);
    started = true;
    const bool begins = clock.now_ms() == kNoStreamTime;
    now_ms = clock.Observe(ToMs(time));
    if (begins) ahead.Begin(now_ms);
    ahead.Read(ToMs(time));
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
    const MutexLock lock(clock_mutex);
    started = true;
    const bool begins = clock.now_ms() == kNoStreamTime;
    now_ms = clock.AdvanceTo(ToMs(time));
    if (begins) ahead.Begin(now_ms);
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
    const MutexLock lock(clock_mutex);
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
  const MutexLock lock(clock_mutex);
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
  for (const auto& shard : shards) LETHE_DEBUG_ASSERT(shard->pending_bytes() == 0);
  const MutexLock lock(clock_mutex);
  clock_at_begin = clock;
  ahead_at_begin = ahead;
  started_at_begin = started;
  return absl::OkStatus();
}

void Partition::Impl::Commit() noexcept {
  int64_t now_ms, began_ms;
  {
    const MutexLock lock(clock_mutex);
    now_ms = clock.now_ms();
    began_ms = std::exchange(start_ms, kNoStreamTime);
  }
  for (const auto& shard : shards) shard->Commit(began_ms, now_ms);
  transaction_open = false;
}

void Partition::Impl::Abort() noexcept {
  for (const auto& shard : shards) shard->Abort();
  {
    const MutexLock lock(clock_mutex);
    clock = clock_at_begin;
    ahead = ahead_at_begin;
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
  const MutexLock lock(clock_mutex);
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
