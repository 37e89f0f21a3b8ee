#include "tests/simulation/connector.h"

#include <utility>

#include "tests/simulation/answers.h"
#include "tests/simulation/brokers.h"
#include "tests/simulation/snapshot_log.h"

namespace lethe::simulation {

Group& SimulatedConnector::GroupOf(const DaemonOptions& options) const {
  return options.half.routing ? *site_.routing_group : site_.group;
}

absl::StatusOr<std::unique_ptr<Brokers>> SimulatedConnector::MakeBrokers(const DaemonOptions& options,
                                                                         Isolation isolation) {
  return std::make_unique<SimulatedBrokers>(site_.broker, GroupOf(options), site_.connection, isolation,
                                            others_);
}

Streams SimulatedConnector::MakeStreams(const Shared& shared, WorkerState& state,
                                        std::function<absl::Status()> may_recreate) {
  LaneClients& lane = lanes_.emplace_back(site_.world);
  lane.is_routing = shared.options.half.routing.has_value();
  Group& group = GroupOf(shared.options);
  auto source = std::make_unique<SimulatedSource>(shared.options, shared.flows, state.lane, site_.broker,
                                                  group, site_.connection, lane.thread);
  auto sink = std::make_unique<SimulatedSink>(shared.options, shared.flows, state.lane, site_.sink,
                                              site_.broker, *source, state, lane.thread);
  sink->may_recreate = std::move(may_recreate);
  lane.source = source.get();
  lane.sink = sink.get();
  return {std::move(source), std::move(sink),
          std::make_unique<Answers>(site_.broker, group, site_.connection, lane.thread)};
}

absl::StatusOr<std::unique_ptr<SnapshotLog>> SimulatedConnector::OpenSnapshots(const DaemonOptions& options) {
  return std::make_unique<SimulatedSnapshotLog>(site_.broker, options.process.snapshots.topic,
                                                site_.connection, others_);
}

std::unique_ptr<TotalsLog> SimulatedConnector::OpenTotals(const DaemonOptions& /*options*/,
                                                          const std::string& /*topic*/) {
  return nullptr;  // no counter has a store
}

}  // namespace lethe::simulation
