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

#include "absl/strings/str_cat.h"
#include "src/pipeline/worker.h"
#include "tests/support/fake_cluster.h"

namespace lethe::test {

// One life of a process: a worker between the fakes, with partitions that are assigned and revoked by hand.
class Life final : public Group {
 public:
  Life(FakeCluster& of, const DaemonOptions& with, int32_t partitions = 2)
      : options(with),
        cluster(of),
        topics(TopicsOf(of, partitions)),
        source(of, with.input),
        sink(of),
        worker(options, topics, state, tasks, source, sink, *this, nullptr) {
    source.on_idle = [this] {
      if (!worker.transactions().is_open() && IsAtEnd()) stop.Request();
    };
  }

  // As the group's leader does, and an owner then: restored from the log by what the commit says.
  Task& Assign(int32_t id) {
    auto task = std::make_unique<Task>();
    const FakeCluster::Log& log = cluster.logs[id];
    task->id = id;
    task->filter = stage->Open(absl::StrCat(options.input, "-", id)).value();
    task->log_end = log.end();
    task->origin_partitions = topics.partitions;
    RestartPoint start = {log.start};
    task->committed = log.start;
    const auto found = cluster.committed.find(id);
    if (found != cluster.committed.end()) {
      const CommitMetadata metadata = CommitMetadata::Parse(found->second.metadata).value();
      start = {std::max(metadata.restart, log.start), metadata.restart_time};
      task->committed = task->in_group = found->second.offset;
      task->origin = metadata.origin;
      if (metadata.committed_time != absl::InfinitePast()) task->time_at_committed = metadata.committed_time;
      task->filter_end = start.offset;
      task->TakeHistory(metadata, log.start);
      EXPECT_TRUE(task->filter->StartAt(start.stream_time).ok());
    } else {
      task->origin = log.start;
    }
    task->next = task->filter_end = start.offset;
    task->phase = task->next < task->committed ? Phase::kRestoring : Phase::kActive;
    task->restore = RestoreProgress(task->next, task->committed);
    task->points.emplace(options.stage.horizon, start);
    Task& assigned = *task;
    tasks[id] = std::move(task);
    source.Assign({&assigned});
    if (assigned.in_group < 0) {
      EXPECT_TRUE(worker.transactions().CommitStart({&assigned}).ok());
    }
    return assigned;
  }
  void Assign(const std::vector<int32_t>& partitions) override {
    for (const int32_t partition : partitions) Assign(partition);
  }
  void Revoke(const std::vector<int32_t>& partitions, bool lost) override {
    worker.transactions().End(!lost);
    for (const int32_t partition : partitions) tasks.erase(partition);
    source.Unassign(partitions);
  }
  void Release() override {}

  absl::Status Run() {
    worker.Run();
    return state.fatal;
  }
  // All is read that can be, and nothing waits for anything.
  bool IsAtEnd() const {
    return std::all_of(source.positions.begin(), source.positions.end(), [&](const auto& position) {
      return source.paused.contains(position.first) ||
             position.second >= source.HighWatermark(position.first);
    });
  }

  void Rebuild(Task& task) override { rebuilt.push_back(task.id); }
  void LoseUnread(Task& task, const std::string& why) override {
    task.Fail(why);
    source.Unassign({task.id});
  }
  void MeetError(const SourceEvent& event) override { errors.push_back(event.why); }
  void Look() override {
    if (++looks == 1'000'000) {
      ADD_FAILURE() << "it never comes to an end";
      stop.Request();
    }
    if (on_look) on_look();
  }

  static Topics TopicsOf(const FakeCluster& cluster, int32_t partitions) {
    Topics topics;
    topics.partitions = topics.output_partitions = partitions;
    topics.least_partitions = cluster.output_partitions;
    topics.output_rules = cluster.output_rules;
    return topics;
  }

  DaemonOptions options;
  FakeCluster& cluster;
  Topics topics;
  StopFlag stop;
  WorkerState state{0, stop};
  std::unique_ptr<DedupStage> stage = DedupStage::Create(options.stage).value();
  Tasks tasks;
  FakeSource source;
  FakeSink sink;
  Worker worker;
  std::function<void()> on_look;
  std::vector<int32_t> rebuilt;
  std::vector<std::string> errors;
  int looks = 0;
};
}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_LIFE_H_
