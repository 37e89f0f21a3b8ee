// Whether the daemon is ready, and why not.
#ifndef LETHE_SRC_PIPELINE_REPORT_READINESS_H_
#define LETHE_SRC_PIPELINE_REPORT_READINESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/pipeline/report/report.h"

namespace lethe {

// Why partitions are held or failed. Each reason of a topic once, with the first partition and the number of
// others.
struct TopicProblem {
  std::string topic;
  std::string text;
};
std::vector<TopicProblem> Problems(const std::vector<LaneReport>& lanes);

// The lanes of one kind: deduplicators, or routers.
struct LaneGroup {
  bool is_routing = false;
  int32_t topics = 0;  // that they read
  std::string brokers;
  absl::Status unanswered = {};  // why the brokers do not answer, and for how long
  absl::Duration unanswered_for = absl::ZeroDuration();
};
// Appends why they are not ready, as a whole and for single topics.
void AddReasons(const LaneGroup& group, const std::vector<LaneReport>& lanes,
                std::vector<std::string>& reasons, std::vector<TopicProblem>& problems);

// Sets `not_ready` and `but_for`: `reasons` concern all topics, `problems` one each.
void SetReadiness(const std::vector<std::string>& reasons, const std::vector<TopicProblem>& problems,
                  DaemonReport& report);

// Topics that are not read, or not all of whose partitions are: those that the user has named, or those that
// only a pattern matches.
int CountUnread(const DaemonReport& report, bool named);

// The brokers do not answer: no lag is known, nor whether active partitions still are.
void SetUnanswered(DaemonReport& report);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_READINESS_H_
