// A process's way to the cluster in memory.
#ifndef LETHE_TESTS_SIMULATION_CONNECTOR_H_
#define LETHE_TESTS_SIMULATION_CONNECTOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/pipeline/daemon/connector.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/group.h"
#include "tests/simulation/sink.h"
#include "tests/simulation/source.h"
#include "tests/simulation/thread.h"

namespace lethe::simulation {

class SimulatedConnector final : public Connector {
 public:
  struct Site {
    World& world;
    Broker& broker;
    Group& group;
    Group* routing_group;  // null: there are no routers
    const Connection& connection;
    SinkOptions sink;
  };
  // The clients of a lane.
  struct LaneClients {
    explicit LaneClients(World& world) : thread(world) {}
    Thread thread;
    bool is_routing = false;
    SimulatedSource* source = nullptr;
    SimulatedSink* sink = nullptr;
  };

  explicit SimulatedConnector(const Site& site) : site_(site), others_(site.world) {}

  absl::StatusOr<std::unique_ptr<Brokers>> MakeBrokers(const DaemonOptions& options,
                                                       Isolation isolation) override;
  Streams MakeStreams(const Shared& shared, WorkerState& state,
                      std::function<absl::Status()> may_recreate) override;
  absl::StatusOr<std::unique_ptr<SnapshotLog>> OpenSnapshots(const DaemonOptions& options) override;
  std::unique_ptr<TotalsLog> OpenTotals(const DaemonOptions& options, const std::string& topic) override;

  std::deque<LaneClients>& lanes() { return lanes_; }
  const std::deque<LaneClients>& lanes() const { return lanes_; }
  // Of all clients that are no lane's.
  Thread& others() { return others_; }
  const Thread& others() const { return others_; }

 private:
  Group& GroupOf(const DaemonOptions& options) const;

  const Site site_;
  Thread others_;
  std::deque<LaneClients> lanes_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_CONNECTOR_H_
