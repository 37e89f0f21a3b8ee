// What librdkafka says of itself, kept until somebody asks.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_STATISTICS_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_STATISTICS_H_

#include <librdkafka/rdkafka.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#include "absl/strings/string_view.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/report/report.h"

namespace lethe::kafka {

// The few of librdkafka's figures (STATISTICS.md there) that help. `known` is false if the text is none.
ClientReport ParseClientStatistics(absl::string_view json);

// The latest statistics of one client. The client's thread, which is the lane's, only leaves the text here;
// whoever asks reads it: with 1,000 partitions that is a megabyte.
//
// Thread-safe.
class ClientStatistics {
 public:
  // In seconds between two; a default that the user may change (statistics.interval.ms).
  static Property Interval() { return {"statistics.interval.ms", "5000"}; }

  // As librdkafka's callback has it: the text is ours from now on, which is what it is to be told with 1.
  int Take(char* json);

  ClientReport Report() const;

 private:
  mutable std::mutex mutex_;
  mutable std::unique_ptr<char, Destroyer<free>> unread_;  // guarded by mutex_
  mutable ClientReport report_;                            // guarded by mutex_
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_STATISTICS_H_
