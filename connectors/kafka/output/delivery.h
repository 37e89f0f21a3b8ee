// What librdkafka reports of records that were sent, in the words of SentRecords.
#ifndef LETHE_CONNECTORS_KAFKA_OUTPUT_DELIVERY_H_
#define LETHE_CONNECTORS_KAFKA_OUTPUT_DELIVERY_H_

#include <librdkafka/rdkafka.h>

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "src/pipeline/output/sent_records.h"

namespace lethe::kafka {

// What the client gives back with a message: the number of the record in the transaction, and its flow.
void* TagOf(size_t number, int32_t flow);

// The client did not take a record of this topic.
WriteFailure FailureOf(rd_kafka_resp_err_t code, absl::string_view topic);
// The delivery report of a record that failed.
void ReportFailure(const rd_kafka_message_t& message, SentRecords& sent);
// A record was answered or purged; in the client's threads.
void ReportAnswer(const rd_kafka_message_t& message, SentRecords& sent);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OUTPUT_DELIVERY_H_
