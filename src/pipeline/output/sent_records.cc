#include "src/pipeline/output/sent_records.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

using Kind = WriteFailure::Kind;

constexpr int64_t kLookForRoomEvery = SentRecords::kAheadBytes / 16;
// The size of a record on the wire without its key and value.
constexpr int64_t kRecordOverhead = 10;

int64_t SizeOf(absl::Span<const HeaderView> headers) {
  int64_t bytes = 0;
  for (const HeaderView& header : headers) {
    bytes += static_cast<int64_t>(header.name.size() + header.value.value_or("").size());
  }
  return bytes;
}

absl::string_view RemedyOf(Kind kind) {
  if (kind == Kind::kMayNotWrite) return ": grant this user Write on it";
  if (kind != Kind::kNoPartition) return "";
  return ": it is deleted, or has fewer partitions than its input; create it again, or add partitions to it";
}

}  // namespace

void SentRecords::Begin() {
  sent_.clear();
  flow_sizes_.clear();
  flow_size_ = nullptr;
  room_seen_at_ = 0;
  unanswered_at_end_ = 0;
  may_be_written_ = false;
}

void SentRecords::ForgetAnswers() {
  for (FlowCount& count : counts_) count.sent = count.answered = 0;
}

size_t SentRecords::Add(const OutputRecord& record) {
  const int32_t flow = record.target.flow;
  const auto bytes = static_cast<int64_t>(record.key.value_or("").size() + record.value.value_or("").size());
  const int64_t on_wire = kRecordOverhead + bytes + SizeOf(record.headers);
  // The records of a run are of one flow.
  if (flow_size_ == nullptr || sent_.back().flow != flow) flow_size_ = &flow_sizes_[flow];
  flow_size_->bytes += on_wire;
  ++flow_size_->records;
  sent_.push_back(
      {record.of, this->bytes() + on_wire, bytes, record.timestamp_ms, record.key.has_value(), flow});
  return sent_.size() - 1;
}

void SentRecords::OnFailure(size_t number, const WriteFailure& failure) {
  may_be_written_ = may_be_written_ || failure.may_be_written;
  const Sent* sent = number < sent_.size() ? &sent_[number] : nullptr;
  switch (failure.kind) {
    case Kind::kTooLarge:
    case Kind::kInvalid:
    case Kind::kInvalidSomehow:
      // A refusal counts; records that are purged because of it do not.
      if (sent != nullptr) Refuse(*sent, failure);
      return;
    case Kind::kGoodAmongInvalid:
      report_.refusals_are_named = true;
      return;
    case Kind::kMayNotWrite:
    case Kind::kNoPartition:
    case Kind::kOfTopic:
      if (sent != nullptr) Blame(*sent, failure);
      break;
    case Kind::kOther:
      break;
  }
  if (report_.failure != Failure::kNone) return;
  report_.failure = Failure::kTransient;
  report_.last_error = std::string(failure.why);
}

void SentRecords::Refuse(const Sent& sent, const WriteFailure& failure) {
  std::string why(failure.why);
  if (failure.kind == Kind::kInvalidSomehow) {
    absl::StrAppend(&why, ": perhaps ",
                    sent.has_key ? "its timestamp is out of bounds"
                                 : "because it has no key, and the topic is compacted");
  }
  report_.failure = Failure::kRefused;
  report_.last_error = why;
  const bool is_invalid = failure.kind != Kind::kTooLarge;
  report_.refusals.push_back(
      {sent.place, {sent.bytes, sent.timestamp_ms, sent.has_key, is_invalid, sent.place.diverted}, why});
}

void SentRecords::Blame(const Sent& sent, const WriteFailure& failure) {
  report_.to_blame[sent.flow] =
      absl::StrCat("topic ", failure.topic, ": ", failure.why, RemedyOf(failure.kind));
}

bool SentRecords::IsRoomDue() {
  if (bytes() - room_seen_at_ < kLookForRoomEvery) return false;
  room_seen_at_ = bytes();
  return true;
}

int64_t SentRecords::BytesOfLast(size_t records) const {
  if (records == 0 || sent_.empty()) return 0;
  return records >= sent_.size() ? bytes() : bytes() - sent_[sent_.size() - records - 1].end_bytes;
}

void SentRecords::NoteWait(absl::Duration step) {
  for (auto& [flow, size] : flow_sizes_) {
    if (CountOf(flow).unanswered() > 0) size.waited += step;
  }
}

void SentRecords::NoteEnd(size_t unanswered) {
  unanswered_at_end_ = BytesOfLast(unanswered);
  for (auto& [flow, size] : flow_sizes_) {
    size.unanswered_at_end = std::min(size.records, CountOf(flow).unanswered());
  }
}

bool SentRecords::NeedsNewProducer(bool is_unanswered) const {
  // After a refusal some records are always unanswered, and renewing would slow down each abort until the
  // refused record is found. None of them waits to be sent again, unless a request was lost: then the
  // producer is renewed anyway (LateRequests).
  return may_be_written_ || (is_unanswered && report_.failure != Failure::kRefused);
}

std::map<int32_t, TransactionSize> SentRecords::SizeByFlow() const {
  std::map<int32_t, TransactionSize> sizes;
  for (const auto& [flow, size] : flow_sizes_) {
    const double answered = 1 - static_cast<double>(size.unanswered_at_end) /
                                    static_cast<double>(std::max<int64_t>(size.records, 1));
    sizes[flow] = {.bytes = size.bytes,
                   .acknowledged = static_cast<int64_t>(static_cast<double>(size.bytes) * answered),
                   .waited = size.waited};
  }
  return sizes;
}

}  // namespace lethe
