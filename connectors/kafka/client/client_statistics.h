// librdkafka's statistics of one client.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_STATISTICS_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_STATISTICS_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/report/report.h"
#include "src/sync/mutex.h"

namespace lethe::kafka {

// The figures that lethe reports (see librdkafka's STATISTICS.md). `known` is false if the text is not JSON.
ClientReport ParseClientStatistics(absl::string_view json);

// The latest statistics, and the sum of throttle times. The lane's thread only stores the text, a megabyte
// with 1,000 partitions; Report() parses it.
//
// Thread-safe.
class ClientStatistics {
 public:
  // A default that the user may change.
  static Property Interval() { return {"statistics.interval.ms", "10000"}; }

  // For librdkafka's stats_cb: takes over the text; 1 tells librdkafka so.
  int Take(char* json);

  // For librdkafka's throttle_cb: what a broker's answer stated.
  void AddThrottled(int milliseconds) { throttled_ms_ += milliseconds; }
  absl::Duration throttled() const { return absl::Milliseconds(throttled_ms_.load()); }

  ClientReport Report() const;

 private:
  ClientReport Latest() const;

  std::atomic<int64_t> throttled_ms_{0};
  mutable Mutex mutex_;
  mutable std::unique_ptr<char, Destroyer<free>> unread_ ABSL_GUARDED_BY(mutex_);
  mutable ClientReport report_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_STATISTICS_H_
