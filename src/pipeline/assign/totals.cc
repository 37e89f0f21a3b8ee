#include "src/pipeline/assign/totals.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "lethe/counters.h"
#include "src/pipeline/assign/assigner.h"

namespace lethe {
namespace {

// Takes over a record of the counter's topic.
void Take(const DaemonOptions& options, size_t counter, Task& task, const InputRecord& record) {
  if (task.phase() == Phase::kFailed) return;
  const auto total = CounterTotal::Parse(record.key.value_or(""), record.value);
  const std::string place =
      absl::StrCat(options.counters[counter].output, "-", record.partition, " offset ", record.offset);
  const std::string& name = options.counters[counter].name;
  if (!total.ok()) {
    return FailPartition(
        task, absl::StrCat(place, ": not a total: ", total.status().message(), "; give counter ", name,
                           " an output of its own, or delete that topic"));
  }
  // Several counters, or inputs, may share the topic with others' lethe.
  if (total->counter != name || total->topic != options.origin()) return;
  if (total->partition != task.id().partition) {
    return FailPartition(
        task,
        absl::StrCat(place, ": the total is of partition ", total->partition,
                     "; totals are in the partition of their input: delete the topic if it was copied from "
                     "another with more partitions"));
  }
  if (total->offset > task.committed()) {
    return FailPartition(
        task, absl::StrCat(place, ": the total has everything before offset ", total->offset, " of ",
                           task.Name(), ", and the group is at ", task.committed(),
                           ": the group was reset, or the input was recreated. Records read again would be "
                           "counted twice. Set the group's offset to ",
                           total->offset, " or later, or give counter ", name,
                           " another output, where it counts from the group's offset on"));
  }
  CounterSums& sums = task.sums()[counter];
  if (record.value) {
    sums.Restore(total->key, total->total);
  } else {
    sums.Forget(total->key);
  }
}

absl::Status RestoreCounter(const DaemonOptions& options, size_t counter, const std::vector<Task*>& tasks,
                            Cluster& cluster, const Clock& clock, const GoOn& go_on) {
  const CounterOptions& of = options.counters[counter];
  std::map<int32_t, Task*> by_id;
  std::vector<int32_t> partitions;
  for (Task* task : tasks) {
    task->sums()[counter] = CounterSums::WithTotals(of.max_keys);
    if (task->phase() == Phase::kFailed) continue;
    by_id[task->id().partition] = task;
    partitions.push_back(task->id().partition);
  }
  const absl::Time begin = clock.Steady();
  int64_t records = 0;
  const absl::Status read = cluster.ReadTotals(
      of.output, partitions,
      [&](const InputRecord& record) {
        ++records;
        Take(options, counter, *by_id.at(record.partition), record);
      },
      go_on);
  if (read.ok() && records > 0) {
    spdlog::info("counter {}: {} totals of {} partition{} were read from {} in {}", of.name, records,
                 partitions.size(), partitions.size() == 1 ? "" : "s", of.output,
                 absl::FormatDuration(absl::Trunc(clock.Steady() - begin, absl::Milliseconds(1))));
  }
  return read;
}

}  // namespace

absl::Status RestoreTotals(const std::vector<Task*>& tasks, Cluster& cluster, const Clock& clock,
                           const GoOn& go_on) {
  if (tasks.empty()) return absl::OkStatus();
  const DaemonOptions& options = tasks[0]->flow()->options;
  for (size_t counter = 0; counter < options.counters.size(); ++counter) {
    if (options.counters[counter].mode != CounterMode::kTotal) continue;
    const absl::Status restored = RestoreCounter(options, counter, tasks, cluster, clock, go_on);
    if (!restored.ok()) return restored;
  }
  return absl::OkStatus();
}

}  // namespace lethe
