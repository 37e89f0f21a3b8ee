// The daemon's figures as JSON: what the page, `lethe top` and other programs read at /status.
//
// dashboards/README.md describes every key.
#ifndef LETHE_SRC_CLI_STATUS_JSON_H_
#define LETHE_SRC_CLI_STATUS_JSON_H_

#include <cstdint>
#include <optional>
#include <string>

#include "connectors/kafka/report.h"

namespace lethe {

// One object. The filter's generations and its latest steps are there for `detailed` only, a partition of the
// input: with 1,000 partitions they would be megabytes. Strings that are no UTF-8 are repaired.
std::string StatusJson(const kafka::DaemonReport& report, std::optional<int32_t> detailed);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_STATUS_JSON_H_
