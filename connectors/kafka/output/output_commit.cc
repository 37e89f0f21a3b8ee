// How a transaction of Output ends: commit, abort, and a new producer where the old one is of no use.
#include <spdlog/spdlog.h>

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/output/output.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe::kafka {
namespace {

// How long a record may be refused without being noticed.
constexpr int kFlushTimeoutMs = 20;
// How long the last records of a transaction may take until that is worth a warning.
constexpr absl::Duration kFlushPatience = absl::Seconds(10);
// After stop: how long the open transaction may still take.
constexpr absl::Duration kStopGrace = absl::Seconds(3);
// After stop: how long its records may still take; then it is aborted, which also takes a moment.
constexpr absl::Duration kStopFlushPatience = absl::Milliseconds(1500);

// The broker's answers to a former member, or to one of an earlier generation.
bool IsGroupMovedOn(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION || code == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
         code == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS || code == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID;
}

// The transaction coordinator has forgotten the producer, which had no transaction for
// transactional.id.expiration.ms. After some requests that are refused for that, librdkafka (2.0.2) keeps the
// producer's id, and each later transaction fails likewise.
bool IsForgotten(const rd_kafka_error_t* error) {
  return rd_kafka_error_code(error) == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING;
}

}  // namespace

bool Output::StopGraceIsOver(absl::Time& give_up) const {
  if (state_.stop.requested() && give_up == absl::InfiniteFuture()) give_up = SteadyNow() + kStopGrace;
  return SteadyNow() >= give_up;
}

ErrorPtr Output::Retry(const std::string& doing, const std::function<rd_kafka_error_t*(int)>& call) {
  absl::Time give_up = absl::InfiniteFuture();
  bool said = false;
  for (;;) {
    state_.heartbeat.Beat();
    StopGraceIsOver(give_up);  // begins with the stop, also while the call waits
    ErrorPtr error(call(kCallTimeoutMs));
    if (error == nullptr || !rd_kafka_error_is_retriable(error.get()) || StopGraceIsOver(give_up)) {
      if (said) state_.SetWaiting("");
      return error;
    }
    const std::string why = absl::StrCat(doing, ": ", Describe(error.get()));
    state_.SetWaiting(why);
    if (!said) spdlog::warn("lane {}: waiting: {}", state_.lane, why);
    said = true;
    absl::SleepFor(kAskAgainAfter);
  }
}

void Output::FlushQuickly() {
  for (int ms = 1; ms < kFlushTimeoutMs && report_.failure == Failure::kNone; ms *= 2) {
    if (rd_kafka_flush(producer_.get(), ms) == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  }
}

Outcome Output::CommitTransaction(const std::vector<PartitionListPtr>& offsets) {
  // A commit would also wait for records that are stuck behind a refused one.
  const absl::Time begin = SteadyNow();
  absl::Time looked = begin;
  FlushQuickly();
  while (rd_kafka_flush(producer_.get(), kFlushTimeoutMs) != RD_KAFKA_RESP_ERR_NO_ERROR &&
         report_.failure == Failure::kNone &&
         SteadyNow() - begin < (state_.stop.requested() ? kStopFlushPatience : kFlushPatience)) {
    state_.heartbeat.Beat();
    const absl::Time now = SteadyNow();
    sent_.NoteWait(now - std::exchange(looked, now));
  }
  if (report_.failure == Failure::kNone && state_.stop.requested() && Unanswered() > 0) {
    // A commit would wait for the rest: a quota or a slow broker would keep lethe from leaving the group.
    report_.failure = Failure::kTransient;
    report_.last_error = "stopped while the broker was slow to take the records";
  }
  if (report_.failure != Failure::kNone) return Abort();
  ErrorPtr error;
  const rd_kafka_topic_partition_list_t* last = nullptr;
  for (auto list = offsets.begin(); list != offsets.end() && error == nullptr; ++list) {
    last = list->get();
    error = Retry("adding the offsets to the transaction", [&](int timeout_ms) {
      return rd_kafka_send_offsets_to_transaction(producer_.get(), list->get(), consumer_.group_metadata(),
                                                  timeout_ms);
    });
  }
  if (error == nullptr) {
    error = Retry("committing a transaction", [this](int timeout_ms) {
      // A commit that timed out goes on inside the client: calling again waits for the same commit. It is
      // never answered with an abort, since the broker may have committed.
      return rd_kafka_commit_transaction(producer_.get(), timeout_ms);
    });
    if (error == nullptr) return Outcome::kCommitted;
  }
  if (rd_kafka_error_is_retriable(error.get())) return Outcome::kStopped;
  wants_new_producer_ = wants_new_producer_ || IsForgotten(error.get());
  report_.has_group_moved_on = IsGroupMovedOn(rd_kafka_error_code(error.get()));
  if (report_.failure != Failure::kRefused) report_.last_error = Describe(error.get());
  if (rd_kafka_error_code(error.get()) == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED && last != nullptr) {
    BlameDenied(*last);
  } else if (rd_kafka_error_code(error.get()) == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) {
    absl::StrAppend(&report_.last_error, ": grant this user Read on group ", options_.process.group);
  }
  if (report_.failure == Failure::kNone) report_.failure = Failure::kTransient;
  if (rd_kafka_error_is_fatal(error.get())) return ProducerLost(Describe(error.get()));
  return Abort();
}

void Output::BlameDenied(const rd_kafka_topic_partition_list_t& offsets) {
  // The client names the partitions in its text alone.
  const std::string text = absl::StrCat(" ", report_.last_error);
  for (int i = 0; i < offsets.cnt; ++i) {
    const char* const topic = offsets.elems[i].topic;
    if (!absl::StrContains(text, absl::StrCat(" ", topic, "["))) continue;
    report_.to_blame[flows_.Find(topic)->number] = absl::StrCat(
        "input topic ", topic, ": Topic authorization failed: grant this user Read on topic ", topic);
  }
}

Outcome Output::CommitDelivered(const std::vector<PartitionListPtr>& offsets) {
  absl::Time give_up = absl::InfiniteFuture();
  FlushQuickly();
  while (rd_kafka_flush(producer_.get(), kCallTimeoutMs) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (StopGraceIsOver(give_up)) return Outcome::kStopped;
    state_.heartbeat.Beat();
    state_.SetWaiting("delivering records: the broker does not answer");
  }
  state_.SetWaiting("");
  char reason[256];
  if (rd_kafka_fatal_error(producer_.get(), reason, sizeof reason) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return ProducerLost(reason);
  }
  if (report_.failure != Failure::kNone) {
    Aborted(/*renew=*/false);
    return Outcome::kAborted;
  }
  for (auto list = offsets.begin(); list != offsets.end();) {
    const rd_kafka_resp_err_t code = CommitOffsets(consumer_.client(), **list, kCallTimeoutMs);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      ++list;
      continue;
    }
    report_.last_error = rd_kafka_err2str(code);
    report_.has_group_moved_on = IsGroupMovedOn(code);
    if (!IsTransient(code) || code == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS) return Outcome::kUnknown;
    if (StopGraceIsOver(give_up)) return Outcome::kStopped;
    state_.heartbeat.Beat();
    state_.SetWaiting(absl::StrCat("committing offsets: ", report_.last_error));
    absl::SleepFor(kAskAgainAfter);
  }
  return Outcome::kCommitted;
}

Outcome Output::Abort() {
  if (producer_ == nullptr) return Outcome::kStopped;
  const size_t unanswered = Unanswered();
  sent_.NoteEnd(unanswered);
  if (!transactional_) {
    rd_kafka_purge(producer_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(producer_.get(), kCallTimeoutMs);
    Aborted(/*renew=*/unanswered > 0);
    return Outcome::kAborted;
  }
  if (report_.failure == Failure::kTransient) {
    // Purged records do not show why the transaction failed. Until it is aborted, the client answers another
    // begin with the cause.
    const ErrorPtr why(rd_kafka_begin_transaction(producer_.get()));
    if (why != nullptr && rd_kafka_error_txn_requires_abort(why.get()) != 0) {
      report_.last_error = Describe(why.get());
      wants_new_producer_ = wants_new_producer_ || IsForgotten(why.get());
      if (rd_kafka_error_code(why.get()) == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED &&
          report_.to_blame.empty()) {
        std::set<std::string> written;  // of the flows that this producer has written to
        for (const auto& [flow, topics] : topics_) {
          for (std::string& topic : WrittenTopics(flows_.at(flow).options)) written.insert(std::move(topic));
        }
        absl::StrAppend(&report_.last_error, ": grant this user Write on ", absl::StrJoin(written, ", "));
      }
    }
  }
  const ErrorPtr error = Retry("aborting a transaction", [this](int timeout_ms) {
    return rd_kafka_abort_transaction(producer_.get(), timeout_ms);
  });
  if (error == nullptr) {
    while (rd_kafka_poll(producer_.get(), 0) > 0) continue;  // the last delivery reports
    Aborted(/*renew=*/sent_.NeedsNewProducer(unanswered > 0));
    return Outcome::kAborted;
  }
  if (rd_kafka_error_is_retriable(error.get())) return Outcome::kStopped;
  return ProducerLost(Describe(error.get()));
}

void Output::Aborted(bool renew) {
  wants_new_producer_ = wants_new_producer_ || renew;
  if (codec_.Change(options_, report_)) {
    wants_new_producer_ = true;
    spdlog::info("lane {}: a record is too large for its topic with {}: compressing with {} from now on",
                 state_.lane, std::string(CodecChoice::kQuick), std::string(codec_.codec()));
  }
}

Outcome Output::ProducerLost(const std::string& why) {
  ++fences_;
  char reason[256];
  const bool is_fenced = IsFence(rd_kafka_fatal_error(producer_.get(), reason, sizeof reason));
  if (const absl::Status may = is_fenced ? may_recreate_() : absl::OkStatus(); !may.ok()) {
    DropProducer();
    report_.last_error = std::string(may.message());
    return Outcome::kStopped;
  }
  spdlog::warn("lane {}: the producer is lost: {}; recreating it", state_.lane, why);
  return RecreateProducer() ? Outcome::kUnknown : Outcome::kStopped;
}

}  // namespace lethe::kafka
