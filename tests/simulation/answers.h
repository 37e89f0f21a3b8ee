// What a worker asks of the cluster in memory.
#ifndef LETHE_TESTS_SIMULATION_ANSWERS_H_
#define LETHE_TESTS_SIMULATION_ANSWERS_H_

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

  absl::StatusOr<std::vector<CommittedOffset>> Committed(const std::string& topic, int32_t count) override;
  absl::StatusOr<LogState> Log(const std::string& topic, int32_t partition) override;
  absl::StatusOr<absl::Time> TimeAt(const std::string& topic, int32_t partition, int64_t offset) override;
  absl::StatusOr<int32_t> CountPartitions(const std::string& topic) override;
  std::string TopicId(const std::string& topic) override;
  absl::Status ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                          const std::function<void(const InputRecord&)>& see, const GoOn& go_on) override;

 private:
  bool is_away() const { return broker_.is_away() || !connection_.is_up(); }

  Broker& broker_;
  Group& group_;
  const Connection& connection_;
  Thread& thread_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_ANSWERS_H_
