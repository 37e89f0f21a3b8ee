// The report of `lethe verify`, for people, for programs and for Prometheus.
#ifndef LETHE_SRC_CLI_VERIFY_VERIFY_TEXT_H_
#define LETHE_SRC_CLI_VERIFY_VERIFY_TEXT_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "src/cli/terminal/terminal.h"
#include "src/cli/verify/verify_topic.h"

namespace lethe {

// 0: the promise holds; 1: it does not; 2: it could not be judged; 3: undecided.
int ExitCodeOf(const VerifiedTopic& topic);
// Of several: the worst, 1 before 2 before 3.
int ExitCodeOf(const std::vector<VerifiedTopic>& topics);

void WriteVerified(const VerifiedTopic& topic, const TextStyle& style, std::ostream& out);

// One object on one line; connectors/README.md has its members.
void WriteVerifiedJson(const std::vector<VerifiedTopic>& topics, std::ostream& out);

// In the text format of Prometheus; dashboards/README.md has the metrics.
std::string VerifiedMetrics(const std::vector<VerifiedTopic>& topics, absl::Time now);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_VERIFY_VERIFY_TEXT_H_
