// The way of a routed record (`scope: topic`): to which partition, and where it came from.
#ifndef LETHE_CONNECTORS_KAFKA_REPARTITION_ROUTE_H_
#define LETHE_CONNECTORS_KAFKA_REPARTITION_ROUTE_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <optional>

#include "connectors/kafka/client/client.h"
#include "src/record/record_reader.h"

namespace lethe::kafka {

// Where a record is routed to: by its id; without a usable one by its key, without a key by its partition,
// so that it comes to its policy in the second stage. A fixed function: another one would be a change that
// loses duplicates.
int32_t Route(const RecordFields& fields, const rd_kafka_message_t& message, int32_t partitions);

struct RoutedFrom {
  int32_t partition = 0;
  int64_t offset = 0;
};
void AddRoutedFrom(HeadersPtr& headers, const RoutedFrom& from);
// What AddRoutedFrom() has added; nullopt if the last two headers are not those.
std::optional<RoutedFrom> ReadRoutedFrom(const rd_kafka_headers_t* headers);
// A copy without them; null if nothing is left.
HeadersPtr WithoutRoutedFrom(const rd_kafka_headers_t* headers);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_REPARTITION_ROUTE_H_
