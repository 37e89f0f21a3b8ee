// What cannot be fetched although it is there: a batch that is too large once it is decompressed, or broken.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/lane.h"

namespace lethe::kafka {
namespace {

// What was damaged on its way is there when it is fetched again.
constexpr int kTimes = 3;

}  // namespace

bool Lane::IsUnreadable(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR__BAD_COMPRESSION || code == RD_KAFKA_RESP_ERR__BAD_MSG ||
         code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
}

void Lane::MeetUnreadable(OwnedPartition& owned, int64_t base, const std::string& why) {
  if (owned.phase == Phase::kFailed || owned.phase == Phase::kHeld || !owned.stop_before_next.empty()) return;
  if (owned.unreadable) {
    owned.unreadable->Unreadable(base);
    return SearchReadable(owned);
  }
  const int64_t at = std::max(base, owned.next);
  owned.unreadable_times = owned.unreadable_at == at ? owned.unreadable_times + 1 : 1;
  owned.unreadable_at = at;
  if (owned.unreadable_times < kTimes) return;
  if (owned.phase == Phase::kChecking) return Recheck(owned);  // the record to compare with is not to be had
  // Below C it was dropped, or it could be read then.
  if (DisposeUnreadable(owned.phase != Phase::kActive, tuning_.policies) == Action::kFail) {
    const std::string problem = absl::StrCat(
        Name(owned), " offset ", at, ": the batch cannot be read: ", why,
        "; on_unreadable is fail: the partition is committed up to there, and stands still; set "
        "on_unreadable "
        "to drop to pass over it, then reload the configuration (SIGHUP) or start again; if it only "
        "decompresses to more than the client takes, raise receive.message.max.bytes under kafka");
    if (owned.in_transaction()) {
      owned.stop_before_next = problem;
      return;
    }
    owned.phase = Phase::kFailed;
    owned.stopped_by_policy = true;
    owned.problem = problem;
    spdlog::error("{}", problem);
    SetPaused(owned, true);
    return;
  }
  owned.unreadable.emplace(base, owned.next);
  owned.unreadable_why = why;
  SearchReadable(owned);
}

void Lane::SearchReadable(OwnedPartition& owned) {
  if (const auto end = owned.unreadable->end()) {
    owned.unreadable.reset();
    return PassOver(owned, *end);
  }
  int64_t low = 0;
  int64_t log_end = 0;
  rd_kafka_get_watermark_offsets(consumer_.get(), options_.input.c_str(), owned.id, &low, &log_end);
  SeekTo(owned, owned.unreadable->Probe(log_end));
}

void Lane::PassOver(OwnedPartition& owned, int64_t end) {
  const int64_t begin = owned.next;
  if (owned.phase == Phase::kActive) {
    if (!HasOutput(owned) || !EnsureOpen(owned).ok()) return;
    owned.next = end;
    owned.open_counts.unreadable += end - begin;
    owned.open_counts.dropped += end - begin;
    owned.points->Note(owned.next, owned.timed_records, owned.filter->stream_time());
    ++carried_out_;
  } else {
    owned.next = owned.filter_end = std::min(end, owned.committed);
    owned.counts.suppressed += owned.next - begin;
  }
  spdlog::error("{}: offsets {} to {} cannot be read, and are passed over: {}", Name(owned), begin, end - 1,
                owned.unreadable_why);
  if (owned.phase == Phase::kRestoring && owned.next >= owned.committed) Activate(owned);
  Seek(owned);
}

}  // namespace lethe::kafka
