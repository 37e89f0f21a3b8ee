#include "connectors/kafka/output/sent_records.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lethe::kafka {
namespace {

// The size of a record on the wire without its key and value.
constexpr int64_t kRecordOverhead = 10;

// For the topic, or its segments.
bool IsTooLarge(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || code == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE;
}

// The broker refuses the record itself, and would refuse it again.
bool IsRefusal(rd_kafka_resp_err_t code) {
  return IsTooLarge(code) || code == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP ||
         code == RD_KAFKA_RESP_ERR_INVALID_RECORD || code == RD_KAFKA_RESP_ERR_INVALID_MSG;
}

std::string WhyRefused(rd_kafka_resp_err_t code, bool has_key) {
  if (code != RD_KAFKA_RESP_ERR_INVALID_RECORD) return rd_kafka_err2str(code);
  return absl::StrCat(
      rd_kafka_err2str(code), ": perhaps ",
      has_key ? "its timestamp is out of bounds" : "because it has no key, and the topic is compacted");
}

// Records of this topic fail, whatever they are.
bool IsOfTopic(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
         code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
         code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION || code == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
}

// RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD, since librdkafka 2.4: the record is good, and was in the batch
// of one that is not.
constexpr int kBatchHasInvalidRecord = -138;

int64_t SizeOf(absl::Span<const HeaderView> headers) {
  int64_t bytes = 0;
  for (const HeaderView& header : headers) {
    bytes += static_cast<int64_t>(header.name.size() + header.value.value_or("").size());
  }
  return bytes;
}

// What the client gives back with a message: the number of the record in the transaction, and its flow.
constexpr int kFlowShift = 32;
static_assert(sizeof(uintptr_t) == sizeof(uint64_t));
void* TagOf(size_t number, int32_t flow) {
  return reinterpret_cast<void*>((static_cast<uintptr_t>(flow) << kFlowShift) | number);
}
size_t NumberIn(const rd_kafka_message_t& message) {
  return reinterpret_cast<uintptr_t>(message._private) & UINT32_MAX;
}
int32_t FlowIn(const rd_kafka_message_t& message) {
  return static_cast<int32_t>(reinterpret_cast<uintptr_t>(message._private) >> kFlowShift);
}

}  // namespace

void SentRecords::Begin() {
  sent_.clear();
  flow_sizes_.clear();
  flow_size_ = nullptr;
  may_be_written_ = false;
}

void SentRecords::ForgetAnswers() {
  for (FlowCount& count : counts_) count.sent = count.answered = 0;
}

void* SentRecords::Add(const OutputRecord& record) {
  const int32_t flow = record.target.flow;
  const auto bytes = static_cast<int64_t>(record.key.value_or("").size() + record.value.value_or("").size());
  const int64_t on_wire = kRecordOverhead + bytes + SizeOf(record.headers);
  // The records of a run are of one flow.
  if (flow_size_ == nullptr || sent_.back().flow != flow) flow_size_ = &flow_sizes_[flow];
  flow_size_->bytes += on_wire;
  ++flow_size_->records;
  sent_.push_back(
      {record.of, this->bytes() + on_wire, bytes, record.timestamp_ms, record.key.has_value(), flow});
  return TagOf(sent_.size() - 1, flow);
}

void SentRecords::OnFailure(const rd_kafka_message_t& message) {
  const rd_kafka_resp_err_t code = message.err;
  if (rd_kafka_message_status(&message) == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED) may_be_written_ = true;
  const size_t number = NumberIn(message);
  const Sent* sent = number < sent_.size() ? &sent_[number] : nullptr;
  // A refusal counts; records that are purged because of it do not.
  if (IsRefusal(code)) {
    if (sent != nullptr) Refuse(*sent, code, WhyRefused(code, sent->has_key));
  } else if (static_cast<int>(code) == kBatchHasInvalidRecord) {
    report_.refusals_are_named = true;
  } else {
    if (sent != nullptr) Blame(*sent, code, rd_kafka_topic_name(message.rkt));
    Fail(code);
  }
}

void SentRecords::OnAnswer(const rd_kafka_message_t& message) {
  CountOf(FlowIn(message)).answered.fetch_add(1, std::memory_order_relaxed);
}

void SentRecords::FailLast(rd_kafka_resp_err_t code, const std::string& topic) {
  Blame(sent_.back(), code, topic);
  Fail(code);
}

void SentRecords::Refuse(const Sent& sent, rd_kafka_resp_err_t code, const std::string& why) {
  report_.failure = Failure::kRefused;
  report_.last_error = why;
  const bool diverted = sent.place.diverted;
  report_.refusals.push_back(
      {sent.place, {sent.bytes, sent.timestamp_ms, sent.has_key, !IsTooLarge(code), diverted}, why});
}

void SentRecords::Fail(rd_kafka_resp_err_t code) {
  if (report_.failure != Failure::kNone) return;
  report_.failure = Failure::kTransient;
  report_.last_error = rd_kafka_err2str(code);
}

void SentRecords::Blame(const Sent& sent, rd_kafka_resp_err_t code, const std::string& topic) {
  if (!IsOfTopic(code)) return;
  std::string& why = report_.to_blame[sent.flow];
  why = absl::StrCat("topic ", topic, ": ", rd_kafka_err2str(code));
  if (code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
    absl::StrAppend(&why, ": grant this user Write on it");
  } else if (code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION) {
    absl::StrAppend(&why,
                    ": it is deleted, or has fewer partitions than its input; create it again, or add "
                    "partitions to it");
  }
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

void SentRecords::NoteEnd() {
  for (auto& [flow, size] : flow_sizes_) {
    size.unanswered_at_end = std::min(size.records, CountOf(flow).unanswered());
  }
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

}  // namespace lethe::kafka
