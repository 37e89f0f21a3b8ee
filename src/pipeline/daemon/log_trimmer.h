// Deletes what no restart needs of the topics between the two stages of `scope: topic`.
#ifndef LETHE_SRC_PIPELINE_DAEMON_LOG_TRIMMER_H_
#define LETHE_SRC_PIPELINE_DAEMON_LOG_TRIMMER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/pipeline/preflight/brokers.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/task/flow.h"

namespace lethe {

// These topics have no retention by time. Not thread-safe.
class LogTrimmer {
 public:
  // `lanes` judge `flows`, of which some may be routed: of the others nothing is deleted. Logs the first
  // failure; the next call tries again.
  void Trim(Brokers& brokers, const Flows& flows, const std::vector<LaneReport>& lanes);

 private:
  void Complain(const std::string& topic, const absl::Status& why);

  std::map<std::pair<std::string, int32_t>, int64_t> trimmed_;  // everything below is deleted
  bool complained_ = false;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_DAEMON_LOG_TRIMMER_H_
