// One life of a process on the cluster in memory.
#ifndef LETHE_TESTS_SUPPORT_LIFE_H_
#define LETHE_TESTS_SUPPORT_LIFE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/publish/log_ends.h"
#include "src/pipeline/worker.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {

// One life of a process: a worker between the fakes. Tests say what is assigned and revoked, or a group does.
class Life {
 public:
  Life(FakeCluster& of, const DaemonOptions& with, int32_t partitions = 2, FakeGroup* group = nullptr,
       const Clock& clock = SystemClock())
      : options(with),
        cluster(of),
        state(0, stop, clock),
        source(of, group),
        sink(of, group == nullptr ? nullptr : &source),
        answers(of, flows, partitions) {
    AddFlow(with, partitions);
    source.on_idle = [this] {
      if (!worker.transactions().is_open() && IsAtEnd()) stop.Request();
    };
  }

  // As an event of the source, at once.
  Task& Assign(At id) {
    worker.ownership().Assign({id});
    EXPECT_OK(state.fatal);
    return *tasks.at(id);
  }
  void Revoke(const std::vector<At>& partitions, bool lost) {
    worker.ownership().Revoke({partitions.begin(), partitions.end()}, lost);
  }

  // To the stop, or an error that is fatal. It keeps its partitions, as if it was killed then.
  absl::Status Run() {
    EXPECT_OK(worker.Open());
    while (!state.ends()) {
      worker.Step();
      if (++looks == 1'000'000) {
        ADD_FAILURE() << "it never comes to an end";
        stop.Request();
      }
      if (on_look && !state.ends()) on_look();
    }
    worker.transactions().End(state.fatal.ok());
    return state.fatal;
  }
  // All is read that can be, and nothing waits for anything.
  bool IsAtEnd() const {
    return std::all_of(source.positions.begin(), source.positions.end(), [&](const auto& position) {
      return source.paused.contains(position.first) ||
             position.second >= source.HighWatermark(position.first);
    });
  }

  // Another topic, which has as many partitions.
  Flow& AddFlow(const DaemonOptions& with, int32_t partitions) {
    Flow& flow = flows.Add(std::make_unique<Flow>(with, DedupStage::Create(with.stage).value()));
    flow.SetTopics(TopicsOf(cluster, partitions));
    return flow;
  }

  static Topics TopicsOf(const FakeCluster& cluster, int32_t partitions) {
    Topics topics;
    topics.partitions = topics.output_partitions = partitions;
    topics.least_partitions = cluster.output_partitions.value_or(0);
    topics.output_rules = cluster.output_rules;
    return topics;
  }

  DaemonOptions options;
  FakeCluster& cluster;
  StopFlag stop;
  WorkerState state;
  Flows flows;
  KeptPartitions kept;
  InstanceClaim claim{options, [] { return std::vector<NamedMember>(); }};
  LogEnds ends;
  Tasks tasks;
  FakeSource source;
  FakeSink sink;
  FakeAnswers answers;
  const Shared shared{options, flows, kept, claim, ends};
  Worker worker{{shared, state, tasks, source, sink, answers}};
  std::function<void()> on_look;  // after each step
  int looks = 0;
};
}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_LIFE_H_
