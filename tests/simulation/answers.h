// What a worker asks of the cluster in memory.
#ifndef LETHE_TESTS_SIMULATION_ANSWERS_H_
#define LETHE_TESTS_SIMULATION_ANSWERS_H_

#include <map>
#include <string>
#include <vector>

#include "src/pipeline/task/cluster.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/group.h"
#include "tests/simulation/thread.h"

namespace lethe::simulation {

class Answers final : public Cluster {
 public:
  Answers(Broker& broker, Group& group, const Connection& connection, Thread& thread)
      : broker_(broker), group_(group), connection_(connection), thread_(thread) {}

  ByTopic<CommittedOffsets> AskCommitted(const std::map<std::string, int32_t>& counts) override;
  ByTopic<Logs> AskLogs(const std::map<std::string, std::vector<int32_t>>& partitions) override;
  absl::StatusOr<std::vector<absl::Time>> AskTimes(const std::vector<LogPlace>& places) override;
  ByTopic<int32_t> CountPartitions(const std::vector<std::string>& topics) override;
  std::map<std::string, std::string> TopicIds(const std::vector<std::string>& topics) override;
  absl::Status ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                          const std::function<void(const InputRecord&)>& see, const GoOn& go_on) override;

 private:
  absl::StatusOr<Logs> LogsOf(const std::string& name, const std::vector<int32_t>& partitions) const;
  bool is_away() const { return broker_.is_away() || !connection_.is_up(); }

  Broker& broker_;
  Group& group_;
  const Connection& connection_;
  Thread& thread_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_ANSWERS_H_
