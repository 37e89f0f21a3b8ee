// Where logs begin and end, and the records between: for consumers that join no group and commit nothing.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_LOG_READER_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_LOG_READER_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/preflight/brokers.h"

namespace lethe::kafka {

// The configuration of a consumer that joins no group and commits nothing. librdkafka requires a group all
// the same. `isolation` is an isolation.level.
ClientConfig ReaderConfig(const DaemonOptions& options, const std::string& isolation,
                          const std::vector<Property>& defaults = {});

// The offsets that the partition has, up to the last stable offset or the high watermark, by the client's
// isolation level. The timeout is that of the whole question. NotFound: this client does not know the
// partition.
absl::StatusOr<OffsetRange> BoundsOf(rd_kafka_t* client, const std::string& topic, int32_t partition,
                                     int timeout_ms);

// The same of many partitions by topic, in two requests to each broker. A partition in trouble fails all.
using BoundsByTopic = std::map<std::string, std::map<int32_t, OffsetRange>>;
absl::StatusOr<BoundsByTopic> AskBounds(rd_kafka_t* client, const PartitionsByTopic& partitions,
                                        int timeout_ms);

// For clients of ReadLog(): the end of a log is seen when a fetch comes back with nothing.
inline const Property kSeesEndsSoon = {"fetch.wait.max.ms", "10"};

struct LogReading {
  std::map<int32_t, OffsetRange> ranges = {};  // by partition
  absl::Duration patience;                     // without a message
  bool follow = false;                         // goes on behind the ranges
  // Gets each record; false: no more of its partition.
  std::function<bool(const rd_kafka_message_t&)> see = {};
  // Asked several times a second, with how many offsets of the ranges are done; false ends the reading.
  std::function<bool(int64_t done)> go_on = [](int64_t) { return true; };
};
// Unavailable: nothing came for as long as `patience`. Cancelled: `go_on` said so.
absl::Status ReadLog(rd_kafka_t* consumer, const std::string& topic, LogReading reading);

// The first offset of each partition at or after the time; InfiniteFuture: the end of its log, as of
// AskBounds. Without those that got no answer, or have none. NotFound: a topic was deleted.
absl::StatusOr<EndsByTopic> AskOffsets(rd_kafka_t* client, const PartitionsByTopic& partitions, absl::Time at,
                                       absl::Duration timeout);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_LOG_READER_H_
