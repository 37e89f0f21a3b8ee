#include "connectors/kafka/lane.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/repartition/route.h"
#include "connectors/kafka/report/remarks.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

// Messages that are judged together: enough to hide the latency of memory, and to take each lock rarely.
constexpr size_t kBatch = 512;
// A transaction is also committed when the sums of its counters take this much: their keys may be as large as
// records are.
constexpr int64_t kMaxSumsBytes = int64_t{16} << 20;
// No batch takes much more: while it is judged there are copies of what it counts, and all of it is written
// before the lane looks at the time again.
constexpr size_t kBatchBytes = size_t{1} << 20;
// What larger batches needed is given back.
constexpr size_t kMostKeptText = size_t{4} << 20;
constexpr absl::Duration kIdleWait = absl::Milliseconds(100);
// Enough to tell what a topic is like.
constexpr int64_t kSeenUnkeyed = 1000;

int64_t SumsBytes(const std::map<int32_t, std::unique_ptr<OwnedPartition>>& owned) {
  int64_t bytes = 0;
  for (const auto& [id, partition] : owned) {
    for (const CounterSums& sums : partition->sums) bytes += sums.bytes();
  }
  return bytes;
}

}  // namespace

Lane::Lane(const DaemonOptions& options, int number, const Topics& topics, DedupStage& stage,
           KeptPartitions& kept, Snapshots* snapshots, const LogEnds& ends, const StopFlag& stop)
    : options_(options),
      number_(number),
      cooperative_(options.assignment == Assignment::kCooperative),
      topics_(topics),
      ends_(ends),
      stop_(stop),
      commit_interval_(absl::ToChronoNanoseconds(options.commit_interval)),
      id_fingerprint_(IdFingerprint(options, topics.output_partitions)),
      kept_(kept),
      snapshots_(snapshots),
      assigner_(options, topics.partitions, id_fingerprint_, stage, kept, snapshots,
                [this](int32_t partition) { return GoOnLoading(partition); }),
      reader_(options.RecordAndCounters()),
      output_(options, number, stop, heartbeat_, [this](const std::string& why) { SetWaiting(why); }),
      writer_(options, topics, output_),
      refusal_search_(topics.output_rules),
      tuning_{options.policies, options.stage.target_fpp},
      output_partitions_(topics.least_partitions),
      // A static member that restarts gets the assignment of before, though partitions were added meanwhile.
      given_partitions_(options.static_membership == StaticMembership::kNever ? topics.partitions : 0) {
  LaneReport report;
  report.lane = number;
  report_ = std::make_shared<const LaneReport>(std::move(report));
  published_at_ = SteadyNow();
  batch_.reserve(kBatch);
  if (options.scope == Scope::kPartition && topics.partitions > 1) key_watch_.emplace();
}

Lane::~Lane() = default;

absl::Status Lane::Run() {
  heartbeat_.Beat();
  Publish();
  running_ = true;
  const absl::Cleanup ended = [this] { running_ = false; };
  if (absl::Status opened = Open(); !opened.ok()) {
    return absl::IsCancelled(opened) ? absl::OkStatus() : opened;
  }
  while (!stop_.requested() && fatal_.ok()) Step();
  Close();
  Publish();
  return fatal_;
}

absl::Status Lane::Open() {
  // The producer first: no record may be read before every earlier owner of the transactional id is fenced.
  if (absl::Status opened = output_.Open({topics_.max_batch_bytes(), topics_.max_record_bytes()});
      !opened.ok())
    return opened;
  return OpenConsumer();
}

absl::Status Lane::OpenConsumer() {
  // What is fetched ahead, over all partitions, is enough to keep the lane busy, and little beside the memory
  // limit. librdkafka counts values alone, hence the records; and a fetch that compressed well is many times
  // larger in memory, hence its size. Twice or four times as much was no faster.
  ClientConfig config = BaseConfig(options_, FetchOn::Defaults({{"queued.min.messages", "25000"},
                                                                {"fetch.message.max.bytes", "262144"},
                                                                {"queued.max.messages.kbytes", "32768"},
                                                                ClientStatistics::Interval()}));
  config.Set("group.id", options_.group)
      .Set("isolation.level", "read_committed")
      .Set("enable.auto.commit", "false")
      .Set("enable.auto.offset.store", "false")
      .Set("auto.offset.reset", "error")
      .Set("enable.partition.eof", "true");
  config.Set("partition.assignment.strategy", cooperative_ ? "cooperative-sticky" : "range,roundrobin");
  // Each lane is a member, and two of one name would throw each other out.
  if (options_.static_membership != StaticMembership::kNever) {
    config.Set("group.instance.id", InstanceName());
  }
  rd_kafka_conf_set_opaque(config.raw(), this);
  rd_kafka_conf_set_rebalance_cb(config.raw(), OnRebalance);
  rd_kafka_conf_set_stats_cb(config.raw(), [](rd_kafka_t*, char* json, size_t, void* opaque) {
    return static_cast<Lane*>(opaque)->statistics_.Take(json);
  });
  auto consumer = config.MakeConsumer();
  if (!consumer.ok()) return consumer.status();
  consumer_ = *std::move(consumer);
  int64_t session_timeout_ms = 0;
  if (absl::SimpleAtoi(PropertyOf(consumer_.get(), "session.timeout.ms"), &session_timeout_ms)) {
    session_timeout_ = absl::Milliseconds(session_timeout_ms);
  }
  SetJoined(false);
  fetch_on_.emplace(consumer_.get());
  rd_kafka_poll_set_consumer(consumer_.get());
  return Subscribe();
}

absl::Status Lane::Subscribe() {
  const PartitionListPtr topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), options_.input.c_str(), RD_KAFKA_PARTITION_UA);
  return ErrorStatus(rd_kafka_subscribe(consumer_.get(), topics.get()),
                     absl::StrCat("subscribing to ", options_.input));
}

void Lane::Step() {
  heartbeat_.Beat();
  if (!open_) TakeTuning();
  const absl::Time now = SteadyNow();
  // Never longer than kIdleWait, so that a request to stop is seen also while a long interval's transaction
  // is open.
  Poll(open_ ? std::clamp(deadline_ - now, absl::ZeroDuration(), kIdleWait) : kIdleWait,
       std::min(kBatch, backoff_.max_records() - std::min(carried_out_, backoff_.max_records() - 1)));
  fetch_on_->Polled(now, !batch_.empty());
  const bool processed = Process().ok();
  if (!fatal_.ok()) return;  // Close() gives up what is open
  const bool failed = output_.Poll() != Failure::kNone;
  if (open_ && (failed || !processed)) {
    GiveUp(output_.Abort());  // a batch that was carried out in part must not be committed
  } else if (open_ &&
             (carried_out_ >= backoff_.max_records() || output_.size().bytes >= backoff_.max_bytes() ||
              SumsBytes(owned_) >= kMaxSumsBytes || SteadyNow() >= deadline_)) {
    Commit();
  }
  if (fatal_.ok() && std::exchange(wants_new_consumer_, false)) RemakeConsumer();
  if (!fatal_.ok()) return;  // there may be no client to ask anything
  if (std::exchange(wants_to_rejoin_, false)) Rejoin();
  LookAtGroupWait();
  LookAtHeld();
  LookForInput();
  LookForForgotten();
  if (SteadyNow() < next_publish_ && !(options_.exit_at_end && AtEnd() != published_at_end_)) return;
  // Of all lanes: what this one keeps, another's filter may need.
  assigner_.GiveUpForMemory(SteadyNow());
  Publish();
}

void Lane::Close() {
  if (open_ && fatal_.ok()) {
    // Not in the revocation that closing brings: in the middle of a rebalance that may take long.
    Commit();
  } else if (open_) {
    GiveUp(output_.Abort());
  }
  // Asked before it closes, after which nothing is owned any more.
  leaves_unfinished_ = HasGivenUp();
  all_is_out_ = fatal_.ok() && !leaves_unfinished_;
  if (consumer_ != nullptr) {
    LeaveGroup();
    rd_kafka_consumer_close(consumer_.get());
  }
  // What that has not revoked: a client that has failed for good revokes nothing.
  for (auto& [id, owned] : owned_) DropSnapshot(*owned);
}

void Lane::Poll(absl::Duration timeout, size_t limit) {
  batch_.clear();
  ++batch_number_;
  polling_ = true;
  const absl::Cleanup polled = [this] { polling_ = false; };
  int timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(timeout));
  size_t bytes = 0;
  const size_t most_bytes = std::min(kBatchBytes, static_cast<size_t>(backoff_.max_bytes()));
  while (batch_.size() < limit && bytes < most_bytes) {
    // Singly: librdkafka's batch consumption may skip or repeat messages after a seek.
    rd_kafka_message_t* message = rd_kafka_consumer_poll(consumer_.get(), timeout_ms);
    if (message == nullptr) return;
    batch_.emplace_back(message);
    bytes += message->len + message->key_len;
    timeout_ms = 0;
  }
}

absl::Status Lane::Process() {
  figures_.BatchRead(batch_.size());
  const absl::Cleanup clear = [this] {
    batch_.clear();
    if (texts_.capacity() > kMostKeptText) std::string().swap(texts_);
  };
  for (size_t begin = 0; begin < batch_.size() && fatal_.ok();) {
    if (batch_[begin]->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      HandleEvent(*batch_[begin++]);
      continue;
    }
    size_t end = begin + 1;
    while (end < batch_.size() && batch_[end]->err == RD_KAFKA_RESP_ERR_NO_ERROR &&
           batch_[end]->partition == batch_[begin]->partition) {
      ++end;
    }
    OwnedPartition* owned = Find(batch_[begin]->partition);
    if (owned != nullptr && owned->phase != Phase::kFailed && owned->sought_in_batch != batch_number_) {
      if (absl::Status done = Advance(*owned, absl::MakeConstSpan(&batch_[begin], end - begin)); !done.ok()) {
        ReadAgainFrom(begin);
        return done;
      }
    }
    begin = end;
  }
  return absl::OkStatus();
}

void Lane::ReadAgainFrom(size_t begin) {
  for (size_t i = begin; i < batch_.size(); ++i) {
    OwnedPartition* owned = batch_[i]->rkt == nullptr ? nullptr : Find(batch_[i]->partition);
    if (owned == nullptr || owned->phase == Phase::kFailed || owned->in_transaction()) continue;
    if (owned->sought_in_batch != batch_number_) Seek(*owned);
  }
}

void Lane::ReachEnd(OwnedPartition& owned, int64_t end) {
  if (owned.phase != Phase::kActive || !owned.stop_before_next.empty() || end <= owned.next) return;
  // Not committed, it would be gone with the next segment: to the broker the log starts behind it then.
  if (EnsureOpen(owned).ok()) owned.next = end;
}

void Lane::HandleEvent(const rd_kafka_message_t& event) {
  OwnedPartition* owned = event.rkt == nullptr ? nullptr : Find(event.partition);
  if (event.err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    // As stale as the batch's records.
    if (owned == nullptr || owned->sought_in_batch == batch_number_) return;
    if (owned->unreadable) {
      owned->unreadable->Readable();
      return SearchReadable(*owned);
    }
    owned->end_of_log = std::max(owned->end_of_log, event.offset);
    // The record that is looked for would have come before. What follows is read again: it is not at its end.
    if (owned->phase == Phase::kChecking) return Recheck(*owned);
    if (owned->phase == Phase::kRestoring && event.offset >= owned->committed) Activate(*owned);
    ReachEnd(*owned, event.offset);
    return;
  }
  if (owned != nullptr && IsUnreadable(event.err)) {
    if (owned->sought_in_batch == batch_number_) return;
    return MeetUnreadable(*owned, event.offset, rd_kafka_message_errstr(&event));
  }
  const std::string why = absl::StrCat(
      options_.input, event.rkt != nullptr && event.partition >= 0 ? absl::StrCat("-", event.partition) : "",
      ": ", rd_kafka_message_errstr(&event));
  if (event.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET && owned != nullptr) return LoseUnread(*owned, why);
  if (event.err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) {
    fatal_ = absl::PermissionDeniedError(absl::StrCat("group ", options_.group, ": ",
                                                      rd_kafka_message_errstr(&event),
                                                      ": grant this user Read on group ", options_.group));
    return;
  }
  if (event.err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
    fatal_ =
        absl::PermissionDeniedError(absl::StrCat(why, ": grant this user Read on topic ", options_.input));
    return;
  }
  if (event.err == RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL) return MeetOtherProtocol(why);
  if (event.err == RD_KAFKA_RESP_ERR__FATAL) {
    char reason[256];
    const rd_kafka_resp_err_t code = rd_kafka_fatal_error(consumer_.get(), reason, sizeof reason);
    if (code == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID) return MeetNamesake(why);
    fatal_ = ErrorStatus(event.err, why);
    return;
  }
  if (const auto like_it = errors_.Next()) spdlog::warn("lane {}: {}{}", number_, why, *like_it);
}

absl::Status Lane::Advance(OwnedPartition& owned, MessageRun run) {
  if (owned.unreadable) {
    owned.unreadable->Readable();
    SearchReadable(owned);
    return absl::OkStatus();
  }
  while (!run.empty()) {
    // The client may repeat messages after a seek.
    if (run.front()->offset < owned.next) {
      run.remove_prefix(1);
    } else if (owned.phase == Phase::kHeld) {
      return absl::OkStatus();  // polled before it was
    } else if (owned.phase == Phase::kChecking) {
      if (!Check(owned, *run.front())) return absl::OkStatus();
      run.remove_prefix(1);
    } else if (owned.phase == Phase::kRestoring) {
      const auto active = std::find_if(run.begin(), run.end(), [&](const MessagePtr& message) {
        return message->offset >= owned.committed;
      });
      Restore(owned, run.first(static_cast<size_t>(active - run.begin())));
      if (owned.phase == Phase::kFailed) return absl::OkStatus();
      run.remove_prefix(static_cast<size_t>(active - run.begin()));
      if (!run.empty() || owned.next >= owned.committed) Activate(owned);
      if (owned.phase == Phase::kFailed) return absl::OkStatus();
    } else {
      return Judge(owned, run);
    }
  }
  return absl::OkStatus();
}

bool Lane::Check(OwnedPartition& owned, const rd_kafka_message_t& message) {
  if (message.offset != owned.mark.offset || MessageView(message).Hash() != owned.mark.hash) {
    Recheck(owned);
    return false;
  }
  owned.mark.time = owned.committed_mark.time = MessageView(message).time();  // a snapshot does not tell it
  owned.next = owned.filter_end;
  owned.phase = Phase::kRestoring;
  if (owned.next >= owned.committed) Activate(owned);
  return true;
}

void Lane::Activate(OwnedPartition& owned) {
  if (owned.to_compare) return StopOnOtherLog(owned);
  owned.phase = Phase::kActive;
  owned.filter->LimitStreamTime(absl::InfiniteFuture());
  owned.KnowsSinceStreamTime();
  // There may be no record at all between the last one read and C: control records, compacted ones.
  owned.next = owned.filter_end = owned.committed;
  owned.committed_mark = owned.mark;
  owned.committed_timed_records = owned.timed_records;
  spdlog::info("{}: ready at offset {}, {} offsets were read again", Name(owned), owned.committed,
               owned.restore.to() - owned.restore.from());
  owned.restore.At(owned.restore.to(), SteadyNow());
}

void Lane::Restore(OwnedPartition& owned, MessageRun run) {
  if (run.empty()) return;
  if (owned.to_compare && run.back()->offset >= owned.to_compare->offset) {
    const auto found = std::find_if(run.begin(), run.end(), [&](const MessagePtr& message) {
      return message->offset == owned.to_compare->offset;
    });
    if (found == run.end() || MessageView(**found).Hash() != owned.to_compare->hash) {
      return StopOnOtherLog(owned);
    }
    owned.to_compare.reset();
  }
  events_.clear();
  const auto replay = [&] {
    if (absl::Status replayed = owned.filter->Replay(events_); !replayed.ok()) fatal_ = replayed;
    events_.clear();
  };
  // The wall clock has moved on since these records were judged, and would now believe what it did not then.
  // Stream time at C is what is left of that time.
  owned.filter->LimitStreamTime(owned.time_at_committed);
  const absl::Time latest = std::min(absl::Now(), owned.time_at_committed) + options_.max_future;
  for (const MessagePtr& message : run) {
    const MessageView view(*message);
    const RecordFields& fields = reader_.Read(view.record());
    const absl::Time time = view.time() > latest ? absl::InfinitePast() : view.time();
    if (time != absl::InfinitePast()) ++owned.timed_records;
    if (fields.id_state == RecordFields::State::kPresent && !options_.routes &&
        !owned.passed_over.contains(message->offset)) {
      events_.push_back({owned.filter->Hash(fields.id), time, view.payload()});
    } else {
      replay();
      if (absl::Status observed = owned.filter->Observe(time); !observed.ok()) fatal_ = observed;
    }
  }
  replay();
  owned.next = owned.filter_end = run.back()->offset + 1;
  const MessageView last(*run.back());
  owned.mark = owned.committed_mark = {run.back()->offset, last.Hash(), last.time()};
  owned.committed_timed_records = owned.timed_records;
  owned.counts.suppressed += static_cast<int64_t>(run.size());
  owned.points->Note(owned.next, owned.timed_records, owned.filter->stream_time());
  if (owned.restore.At(owned.next, SteadyNow())) {
    spdlog::info("{}: restoring: {}", Name(owned), owned.restore.ToString());
  }
}

absl::Status Lane::Judge(OwnedPartition& owned, MessageRun run) {
  if (!HasOutput(owned)) return absl::OkStatus();
  if (!owned.stop_before_next.empty()) return absl::OkStatus();
  if (absl::Status begun = EnsureOpen(owned); !begun.ok()) return begun;
  run = FillItems(owned, run);
  // What was passed may not be remembered, so nothing of it may go out. Whoever is started next has all that
  // is committed from the log.
  if (absl::Status known = owned.transaction->status(); !known.ok()) {
    fatal_ = absl::Status(known.code(), absl::StrCat(Name(owned), ": ", known.message()));
    return fatal_;
  }
  if (run.empty()) return absl::OkStatus();
  // Before they are carried out: if that fails on the way, this is what was tried.
  owned.next = run.back()->offset + 1;
  const MessageView last(*run.back());
  owned.mark = {run.back()->offset, last.Hash(), last.time()};
  owned.points->Note(owned.next, owned.timed_records, owned.filter->stream_time());
  carried_out_ += run.size();
  const absl::string_view texts = texts_;
  for (size_t i = 0; i < changes_.size(); ++i) {
    changes_[i].text = texts.substr(change_texts_[i].first, change_texts_[i].second);
  }
  for (Item& item : items_) {
    item.record.changes = absl::MakeConstSpan(changes_).subspan(item.changes_at, item.changes);
    item.record.reason = texts.substr(item.reason_at, item.reason_bytes);
    if (absl::Status produced = writer_.CarryOut(owned, item.record); !produced.ok()) return produced;
  }
  return absl::OkStatus();
}

Lane::MessageRun Lane::FillItems(OwnedPartition& owned, MessageRun run) {
  items_.clear();
  events_.clear();
  event_items_.clear();
  changes_.clear();
  change_texts_.clear();
  texts_.clear();
  const auto judge = [&] {
    verdicts_.resize(events_.size());
    owned.transaction->Judge(events_, absl::MakeSpan(verdicts_)).IgnoreError();  // status() tells it, too
    for (size_t i = 0; i < events_.size(); ++i) {
      JudgedRecord& record = items_[event_items_[i]].record;
      record.verdict = verdicts_[i];
      if (key_watch_ && KeyWatch::IsSampled(events_[i].id)) {
        key_watch_->See(owned.id, events_[i].id, record.verdict, MessageView(*record.message).record().key);
      }
    }
    events_.clear();
    event_items_.clear();
  };
  // With this policy the partition stops in front of such a record: the broker is asked about each.
  const bool asks = writer_.StopsAtUndeliverable();
  const bool foresees = !asks && refusal_search_.trusted(SteadyNow());
  const bool foresees_sizes = !asks && refusal_search_.sizes_trusted(SteadyNow());
  const absl::Time now = absl::Now();
  int64_t oldest_ms = INT64_MAX;
  const absl::Time latest = now + options_.max_future;
  for (const MessagePtr& message : run) {
    const MessageView view(*message);
    const RecordFields& fields = reader_.Read(view.record());
    if (auto why = writer_.WhyStop(owned, *message, fields)) {
      owned.stop_before_next = *std::move(why);
      run = run.first(items_.size());
      break;
    }
    const absl::Time time = Believe(owned, view, message->offset, latest);
    oldest_ms = std::min(oldest_ms, view.timestamp_ms());
    if (message->key == nullptr) ++owned.open_counts.unkeyed;
    if (fields.id_state == RecordFields::State::kPresent && !options_.routes &&
        owned.UndeliverableAt(message->offset) == nullptr) {
      events_.push_back({owned.filter->Hash(fields.id), time, view.payload()});
      event_items_.push_back(items_.size());
    } else {
      judge();  // stream time moves in the order of the log
      owned.transaction->Observe(time).IgnoreError();
      if (fields.id_state != RecordFields::State::kPresent && !options_.routes)
        Complain(owned, message->offset, fields);
    }
    items_.push_back(MakeItem(*message, fields));
    std::string refused =
        foresees ? refusal_search_.Foresee(view.timestamp_ms(), message->key != nullptr, now) : "";
    if (foresees_sizes && refused.empty()) refused = refusal_search_.ForeseeSize(view.payload());
    if (refused.empty()) continue;
    const std::optional<IdHash> judged = events_.empty() ? std::nullopt : std::optional(events_.back().id);
    judge();  // before it is known what follows: a copy of it is to pass
    const JudgedRecord& record = items_.back().record;
    if (!writer_.DispositionOf(record).is_written()) continue;
    if (judged && record.verdict != Verdict::kDuplicate) owned.transaction->Forget(*judged);
    owned.undeliverable.try_emplace(message->offset, Undeliverable{std::move(refused)});
  }
  judge();
  if (!run.empty()) figures_.RunJudged(oldest_ms, run.size());
  return run;
}

Lane::Item Lane::MakeItem(const rd_kafka_message_t& message, const RecordFields& fields) {
  const size_t at = texts_.size();
  const size_t changes_at = changes_.size();
  absl::StrAppend(&texts_, fields.reason);
  for (size_t counter = 0; counter < fields.counters.size(); ++counter) {
    const CounterUpdate& update = fields.counters[counter];
    if (update.state == CounterUpdate::State::kNotMeant) continue;
    const bool countable = update.state == CounterUpdate::State::kCounted;
    const absl::string_view text = countable ? update.key : update.reason;
    change_texts_.emplace_back(texts_.size(), text.size());
    absl::StrAppend(&texts_, text);
    changes_.push_back({counter, countable, "", update.delta});
  }
  return {{&message,
           fields.id_state,
           Verdict::kUnique,
           "",
           {},
           options_.routes ? Route(fields, message, topics_.output_partitions) : 0},
          at,
          fields.reason.size(),
          changes_at,
          changes_.size() - changes_at};
}

absl::Time Lane::Believe(OwnedPartition& owned, const MessageView& view, int64_t offset, absl::Time latest) {
  const absl::Time time = view.time();
  if (time <= latest) {
    if (time != absl::InfinitePast()) ++owned.timed_records;
    return time;
  }
  ++owned.open_counts.future;
  if (const auto like_it = disbelieved_.Next()) {
    spdlog::warn(
        "{} offset {}: its timestamp {} is more than {} ahead of this machine's clock: it is judged like a "
        "record without a timestamp; correct the producer's clock, or its unit (Kafka's is milliseconds){}",
        Name(owned), offset, absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone()),
        absl::FormatDuration(options_.max_future), *like_it);
  }
  return absl::InfinitePast();
}

void Lane::Complain(const OwnedPartition& owned, int64_t offset, const RecordFields& fields) {
  const auto like_it = complaints_.Next();
  if (!like_it) return;
  const Action action = writer_.DispositionOf({.id_state = fields.id_state}).action;
  spdlog::warn("{} offset {}: {} without a verdict: {}{}", Name(owned), offset,
               action == Action::kPass   ? "passed"
               : action == Action::kDrop ? "dropped"
                                         : "diverted",
               std::string(fields.reason), *like_it);
}

void Lane::Tune(const LaneTuning& tuning) {
  const std::lock_guard<std::mutex> lock(wanted_tuning_mutex_);
  wanted_tuning_ = tuning;
  is_tuned_anew_ = true;
}

void Lane::TakeTuning() {
  if (!is_tuned_anew_.exchange(false)) return;
  {
    const std::lock_guard<std::mutex> lock(wanted_tuning_mutex_);
    tuning_ = *wanted_tuning_;
  }
  writer_.SetPolicies(tuning_.policies);
  // Those that stand in front of a record by policy ask the new one.
  for (auto& [id, owned] : owned_) {
    if (!std::exchange(owned->stopped_by_policy, false)) continue;
    owned->phase = Phase::kActive;
    owned->problem.clear();
    owned->unreadable_times = 0;
    if (owned->paused) SetPaused(*owned, false);
    spdlog::info("{}: goes on at offset {}, by the policies as they are now", Name(*owned), owned->next);
    Seek(*owned);
  }
}

absl::Status Lane::EnsureOpen(OwnedPartition& owned) {
  if (!open_) {
    if (absl::Status begun = output_.Begin(); !begun.ok()) {
      if (!absl::IsCancelled(begun)) fatal_ = begun;
      return begun;
    }
    open_ = true;
    deadline_ = SteadyNow() + absl::FromChrono(commit_interval_.load());
    figures_.TransactionBegun(absl::Now());
  }
  if (owned.in_transaction()) return absl::OkStatus();
  absl::Status status = owned.filter->SetTargetFpp(tuning_.target_fpp);
  if (status.ok()) status = owned.filter->SetPassSuspects(tuning_.policies.passes_suspects());
  if (status.ok()) {
    auto begun = owned.filter->Begin();
    if (begun.ok()) owned.transaction.emplace(std::move(*begun));
    status = begun.status();
  }
  if (!status.ok()) fatal_ = status;
  return status;
}

void Lane::Commit() {
  figures_.CommitBegins(absl::Now());
  const std::vector<OwnedPartition*> partitions = InTransaction();
  for (OwnedPartition* owned : partitions) {
    if (!writer_.ProduceSums(*owned).ok()) return GiveUp(output_.Abort());
  }
  NameSnapshots(partitions);
  const Outcome outcome = output_.Commit(Offsets(partitions).get(), group_metadata_.get(), consumer_.get());
  if (outcome != Outcome::kCommitted) return GiveUp(outcome);
  FinishTransaction(/*committed=*/true);
}

void Lane::FinishTransaction(bool committed) {
  if (committed) WarnIfIdsAreMissing();
  for (OwnedPartition* owned : InTransaction()) {
    if (committed) {
      totals_ += owned->open_counts;
      owned->Committed();
      WarnOfUnlisted(*owned);
      if (owned->phase == Phase::kFailed) {
        spdlog::error("{}", owned->problem);
        SetPaused(*owned, true);
      }
    } else {
      owned->RolledBack();
    }
  }
  ++(committed ? commits_ : aborts_);
  if (committed) {
    figures_.Committed(absl::Now());
    WarnIfUnkeyed();
    WarnIfKeysDiffer();
    backoff_.Committed(Size());
  } else {
    figures_.RolledBack();
  }
  open_ = false;
  deadline_ = absl::InfiniteFuture();
  carried_out_ = 0;
  if (committed) TakeSnapshots();
}

TransactionSize Lane::Size() const {
  TransactionSize size = output_.size();
  size.records = carried_out_;
  return size;
}

void Lane::WarnIfIdsAreMissing() {
  if (options_.routes) return;  // the second stage judges them
  int64_t records = 0;
  int64_t without_id = 0;
  for (const OwnedPartition* owned : InTransaction()) {
    const RecordCounts& counts = owned->open_counts;
    records += counts.unique + counts.duplicate + counts.suspect + counts.missing_id + counts.malformed;
    without_id += counts.missing_id + counts.malformed;
  }
  const auto found = ids_.Add(records, without_id, SteadyNow());
  if (!found) return;
  spdlog::warn(
      "lane {}: {} of the last {} records have no usable id at {} and are not deduplicated (on_missing_id, "
      "on_malformed); correct id, or see what writes such records",
      number_, found->without_id, found->records, options_.record.id.ToString());
}

void Lane::WarnAtMemoryLimit(OwnedPartition& owned, const PartitionReport& report) {
  if (owned.warned_of_memory) return;
  const auto remark = MemoryRemark(options_.input, report, options_.stage.horizon);
  if (!remark) return;
  owned.warned_of_memory = true;
  if (const auto like_it = memory_warnings_.Next()) spdlog::warn("{}{}", *remark, *like_it);
}

void Lane::WarnOfUnlisted(OwnedPartition& owned) {
  const int64_t more = std::exchange(owned.passed_over_unlisted, 0);
  if (more == 0) return;
  unlisted_ += more;
  const auto like_it = unlisted_warnings_.Next();
  if (!like_it) return;
  spdlog::warn(
      "{}: the commit metadata has no room for all undeliverable records ({} so far): after a restart, "
      "retries "
      "of the oldest are taken for copies until the horizon has passed{}",
      Name(owned), unlisted_, *like_it);
}

void Lane::WarnIfUnkeyed() {
  if (warned_unkeyed_ || options_.scope == Scope::kTopic || topics_.partitions == 1) return;
  int64_t records = 0;
  int64_t unkeyed = 0;
  for (const auto& [id, owned] : owned_) {
    const RecordCounts& counts = owned->counts;
    records += counts.passed + counts.tagged + counts.diverted + counts.dropped;
    unkeyed += counts.unkeyed;
  }
  if (records < kSeenUnkeyed || 2 * unkeyed <= records) return;
  warned_unkeyed_ = true;
  spdlog::warn(
      "{}: {} of {} records have no key: their producer spreads them over the partitions, and copies in "
      "different partitions are not found; set scope to topic, or key the records",
      options_.input, unkeyed, records);
}

void Lane::WarnIfKeysDiffer() {
  const auto found = key_watch_ ? key_watch_->Take(SteadyNow()) : std::nullopt;
  if (!found) return;
  spdlog::warn(
      "{}: {} of {} copies that were compared with the first of their id have another key: they met in one "
      "partition by chance, and others are to be expected in different partitions, where they are not found; "
      "set scope to topic, or key the records by the id",
      options_.input, found->differing, found->compared);
}

}  // namespace lethe::kafka
