// The daemon's figures as JSON: what the page and other programs read at /status.
//
// dashboards/README.md describes every key.
#ifndef LETHE_SRC_CLI_SERVICE_STATUS_JSON_H_
#define LETHE_SRC_CLI_SERVICE_STATUS_JSON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "src/cli/service/status_history.h"
#include "src/pipeline/report/report.h"

namespace lethe {

// Details that are reported for one partition only: for 1,000 partitions they would be megabytes.
struct StatusDetail {
  std::string topic;
  int32_t partition = 0;
  std::optional<std::vector<StatusSample>> history = std::nullopt;  // with its ages at `now`
  absl::Time now = absl::InfinitePast();
};

// One object. The filter's generations, its latest steps and its history are there for `detail` only. Strings
// with invalid UTF-8 are repaired.
// `topic`: only its partitions are there; empty: none are.
std::string StatusJson(const DaemonReport& report, const std::optional<StatusDetail>& detail,
                       const std::optional<std::string>& topic = std::nullopt);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_SERVICE_STATUS_JSON_H_
