#include "connectors/kafka/output/delivery.h"

namespace lethe::kafka {
namespace {

constexpr int kFlowShift = 32;
static_assert(sizeof(uintptr_t) == sizeof(uint64_t));

// RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD, since librdkafka 2.4: the record is good, and was in the batch
// of one that is not.
constexpr int kBatchHasInvalidRecord = -138;

WriteFailure::Kind KindOf(rd_kafka_resp_err_t code) {
  if (static_cast<int>(code) == kBatchHasInvalidRecord) return WriteFailure::Kind::kGoodAmongInvalid;
  switch (code) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
      return WriteFailure::Kind::kTooLarge;
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
      return WriteFailure::Kind::kInvalid;
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
      return WriteFailure::Kind::kInvalidSomehow;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return WriteFailure::Kind::kMayNotWrite;
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return WriteFailure::Kind::kNoPartition;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
      return WriteFailure::Kind::kOfTopic;
    default:
      return WriteFailure::Kind::kOther;
  }
}

}  // namespace

void* TagOf(size_t number, int32_t flow) {
  return reinterpret_cast<void*>((static_cast<uintptr_t>(flow) << kFlowShift) | number);
}

WriteFailure FailureOf(rd_kafka_resp_err_t code, absl::string_view topic) {
  return {.kind = KindOf(code), .why = rd_kafka_err2str(code), .topic = topic};
}

void ReportFailure(const rd_kafka_message_t& message, SentRecords& sent) {
  WriteFailure failure = FailureOf(message.err, rd_kafka_topic_name(message.rkt));
  failure.may_be_written = rd_kafka_message_status(&message) == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED;
  sent.OnFailure(reinterpret_cast<uintptr_t>(message._private) & UINT32_MAX, failure);
}

void ReportAnswer(const rd_kafka_message_t& message, SentRecords& sent) {
  sent.OnAnswer(static_cast<int32_t>(reinterpret_cast<uintptr_t>(message._private) >> kFlowShift));
}

}  // namespace lethe::kafka
