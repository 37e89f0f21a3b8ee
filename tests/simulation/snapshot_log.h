// The topic of snapshots, in the cluster in memory.
#ifndef LETHE_TESTS_SIMULATION_SNAPSHOT_LOG_H_
#define LETHE_TESTS_SIMULATION_SNAPSHOT_LOG_H_

#include <cstdint>
#include <deque>
#include <string>

#include "src/pipeline/snapshots/snapshot_log.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/group.h"
#include "tests/simulation/thread.h"

namespace lethe::simulation {

class SimulatedSnapshotLog final : public SnapshotLog {
 public:
  SimulatedSnapshotLog(Broker& broker, std::string topic, const Connection& connection, Thread& thread)
      : broker_(broker), topic_(std::move(topic)), connection_(connection), thread_(thread) {}

  absl::Status Send(const NewRecord& record, const GoOn& go_on) override;
  absl::Status Flush(const GoOn& go_on) override;
  absl::Status Scan(int32_t partition, absl::Time from, const GoOn& go_on, const See& see) const override;

 private:
  bool is_up() const { return connection_.is_up() && !broker_.is_away(); }

  Broker& broker_;
  const std::string topic_;
  const Connection& connection_;
  Thread& thread_;
  std::deque<Record> on_their_way_;
};

// What is in the topic is damaged, by a number that says how; or is gone.
void DamageSnapshots(Broker& broker, const std::string& topic, uint64_t number);
void LoseSnapshots(Broker& broker, const std::string& topic);

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_SNAPSHOT_LOG_H_
