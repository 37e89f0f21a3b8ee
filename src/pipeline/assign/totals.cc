#include "src/pipeline/assign/totals.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/pipeline/assign/assigner.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/pipeline/options/stage_options.h"
#include "src/text/format.h"

namespace lethe {
namespace {

// The total of a partition that has counted furthest beyond the group's offset.
struct AheadTotal {
  int64_t offset = 0;
  std::string place;
};

// Takes over a record of the counter's topic. Whether it is one of this partition, or stops it. `ahead`: of
// the partition, if there is one.
bool Take(const DaemonOptions& options, size_t counter, Task& task, const InputRecord& record,
          OtherTotals& others, AheadTotal& ahead) {
  if (task.phase() == Phase::kFailed) return true;
  const auto total = CounterTotal::Parse(record.key.value_or(""), record.value);
  const std::string place =
      absl::StrCat(options.counters[counter].output, "-", record.partition, " offset ", record.offset);
  const std::string& name = options.counters[counter].name;
  if (!total.ok()) {
    FailPartition(task, absl::StrCat(place, ": not a total: ", total.status().message(), "; give counter ",
                                     name, " an output of its own, or delete that topic"));
    return true;
  }
  others.Add(*total, !record.value);
  // Several counters, or inputs, may share the topic with others' lethe.
  if (total->counter != name || total->topic != options.origin()) return false;
  if (total->partition != task.id().partition) {
    FailPartition(
        task,
        absl::StrCat(place, ": the total is of partition ", total->partition,
                     "; totals are in the partition of their input: delete the topic if it was copied from "
                     "another with more partitions"));
    return true;
  }
  if (total->offset > task.committed()) {
    if (total->offset > ahead.offset) ahead = {total->offset, place};
    return true;
  }
  CounterSums& sums = task.sums()[counter];
  if (record.value) {
    sums.Restore(total->key, total->total);
  } else {
    sums.Forget(total->key);
  }
  return true;
}

void FailForAhead(const DaemonOptions& options, size_t counter, Task& task, const AheadTotal& ahead) {
  const std::string input = absl::StrCat(options.input, ":", task.id().partition);
  const std::string skip = ResetOffsets(options.process, options.process.group, {input},
                                        absl::StrCat("--to-offset ", ahead.offset));
  FailPartition(
      task, absl::StrCat(
                ahead.place, ": the total has everything before offset ", ahead.offset, " of ", task.Name(),
                ", and the group is at ", task.committed(),
                ": the group was reset, or the input was recreated. Records read again would be counted "
                "twice. Give counter ",
                options.counters[counter].name, " another output, where it counts from the group's offset on",
                // In a log that was recreated and is shorter these would be other records.
                ahead.offset > task.log_end()
                    ? ""
                    : absl::StrCat(", or, if the output has their events, skip them: ", skip)));
}

// Compares the totals that were read with those that the group's commit says of. A counter that has not
// counted yet has none. `has_any`: at least one was there, or the tombstone of one.
void CheckComplete(const DaemonOptions& options, size_t counter, Task& task, bool has_any) {
  if (task.phase() == Phase::kFailed) return;
  const CounterOptions& of = options.counters[counter];
  const auto found = static_cast<int64_t>(task.sums()[counter].keys());
  const int64_t expected = KeysOf(task.expected_totals(), TotalsFingerprint(of));
  // A commit and its totals are one transaction, so nobody but another writer adds one.
  if (found > expected && expected > 0) {
    spdlog::warn(
        "{}: counter {} has {} totals in {}-{}, and had {} at the last commit: another writer has added "
        "some, "
        "and may have changed others. Let lethe alone write to the topic; to count from 0, give the counter "
        "another name",
        task.Name(), of.name, found, of.output, task.id().partition, expected);
  }
  if (found >= expected) return;
  if (!has_any) {
    return FailPartition(
        task, absl::StrCat(task.Name(), ": ", LostTotals(options, of, task.id().partition, expected)));
  }
  spdlog::warn(
      "{}: counter {} has {} totals in {}-{}, and had {} at the last commit: others are lost if nobody has "
      "deleted them on purpose (the topic was recreated, or cut), and their keys count from 0",
      task.Name(), of.name, found, of.output, task.id().partition, expected);
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
  std::set<int32_t> with_any;
  std::map<int32_t, AheadTotal> ahead;
  OtherTotals others(options, of);
  const absl::Status read = cluster.ReadTotals(
      of.output, partitions,
      [&](const InputRecord& record) {
        ++records;
        if (Take(options, counter, *by_id.at(record.partition), record, others, ahead[record.partition])) {
          with_any.insert(record.partition);
        }
      },
      go_on);
  if (read.ok() && records > 0) {
    spdlog::info("counter {}: {} totals of {} were read from {} in {}", of.name, records,
                 Several(static_cast<int64_t>(partitions.size()), "partition"), of.output,
                 absl::FormatDuration(absl::Trunc(clock.Steady() - begin, absl::Milliseconds(1))));
  }
  if (const std::string text = others.Text(); !text.empty()) {
    spdlog::warn("counter topic {} {}: {}", of.output, text, OtherTotals::kRemedy);
  }
  for (const auto& [partition, task] : by_id) {
    if (!read.ok()) continue;
    if (ahead[partition].offset > 0 && task->phase() != Phase::kFailed) {
      FailForAhead(options, counter, *task, ahead[partition]);
    }
    CheckComplete(options, counter, *task, with_any.contains(partition));
  }
  return read;
}

}  // namespace

void OtherTotals::Add(const CounterTotal& total, bool is_deleted) {
  if (total.counter == counter_.name || total.topic != options_.origin()) return;
  if (!is_deleted) {
    found_.try_emplace(total.counter, total.RecordKey());
  } else if (const auto found = found_.find(total.counter);
             found != found_.end() && found->second == total.RecordKey()) {
    found_.erase(found);
  }
}

std::string OtherTotals::Text() const {
  if (found_.empty()) return "";
  return absl::StrCat("also has totals of counter ", found_.begin()->first, " of ", options_.origin(),
                      ", which `lethe counters` adds up with those of counter ", counter_.name);
}

std::string LostTotals(const DaemonOptions& options, const CounterOptions& counter, int32_t partition,
                       int64_t keys) {
  std::string text = absl::StrCat(
      "counter ", counter.name, " had ", keys, keys == 1 ? " total in " : " totals in ", counter.output, "-",
      partition,
      " at the group's last commit, and none is there: the topic was deleted or emptied. To count from 0, "
      "from the group's offset on, give the counter another name or output");
  // A repartition topic has only the records of a horizon.
  if (!options.half.routed_from.empty()) return text;
  absl::StrAppend(&text, "; to count the whole log again, and write its records again, stop every instance, ",
                  options.counters.size() > 1 ? "delete the topics of other totals, " : "", "and run ",
                  ResetOffsets(options.process, options.process.group, {options.input}, "--to-earliest"));
  return text;
}

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
