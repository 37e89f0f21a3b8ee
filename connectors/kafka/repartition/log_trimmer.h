// What of the repartition topic is no longer needed.
#ifndef LETHE_CONNECTORS_KAFKA_REPARTITION_LOG_TRIMMER_H_
#define LETHE_CONNECTORS_KAFKA_REPARTITION_LOG_TRIMMER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/report.h"

namespace lethe::kafka {

// Deletes from the repartition topic what no rebuild of a filter needs any more: it has no retention by time.
// Not thread-safe.
class LogTrimmer {
 public:
  static absl::StatusOr<LogTrimmer> Create(const DaemonOptions& judging);

  // Waits two seconds for the broker at most; what fails is told once, and tried again at the next call.
  void Trim(const std::vector<LaneReport>& lanes);

 private:
  LogTrimmer(std::string topic, ClientPtr client) : topic_(std::move(topic)), client_(std::move(client)) {}

  std::string topic_;
  ClientPtr client_;
  std::map<int32_t, int64_t> trimmed_;  // by partition: everything below is deleted
  bool complained_ = false;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_REPARTITION_LOG_TRIMMER_H_
