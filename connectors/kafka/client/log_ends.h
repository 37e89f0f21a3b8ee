// Where the input's partitions end, asked of the brokers beside the lanes.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_LOG_ENDS_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_LOG_ENDS_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lethe::kafka {

// The consumer knows the end of a partition from its last fetch, and nothing where fetches fail or are not
// answered. So another client asks: what is to be found is a consumer that does not work.
//
// Thread-safe.
class LogEnds {
 public:
  // Asks for the last stable offsets, behind which nobody may read: a transaction may be open there. Keeps
  // what it knew of a partition without an answer.
  absl::Status Ask(rd_kafka_t* client, const std::string& topic, const std::vector<int32_t>& partitions,
                   absl::Duration timeout);

  // As last asked; 0 if it was not.
  int64_t Of(int32_t partition) const;

 private:
  mutable std::mutex mutex_;
  std::map<int32_t, int64_t> ends_;  // guarded by mutex_
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_LOG_ENDS_H_
