// librdkafka's statistics of one client.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_STATISTICS_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_STATISTICS_H_

#include <cstdlib>
#include <memory>
#include <mutex>

#include "absl/strings/string_view.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/report/report.h"

namespace lethe::kafka {

// The figures that lethe reports (see librdkafka's STATISTICS.md). `known` is false if the text is not JSON.
ClientReport ParseClientStatistics(absl::string_view json);

// The latest statistics. The lane's thread only stores the text, a megabyte with 1,000 partitions; Report()
// parses it.
//
// Thread-safe.
class ClientStatistics {
 public:
  // A default that the user may change.
  static Property Interval() { return {"statistics.interval.ms", "5000"}; }

  // For librdkafka's stats_cb: takes over the text; 1 tells librdkafka so.
  int Take(char* json);

  ClientReport Report() const;

 private:
  mutable std::mutex mutex_;
  mutable std::unique_ptr<char, Destroyer<free>> unread_;  // guarded by mutex_
  mutable ClientReport report_;                            // guarded by mutex_
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_STATISTICS_H_
