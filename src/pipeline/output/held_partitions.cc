#include "src/pipeline/output/held_partitions.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/pipeline/options/stage_options.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr absl::Duration kLookAtTopicsEvery = absl::Seconds(1);
// Each try of a topic that fails may abort a transaction of all topics.
constexpr absl::Duration kTryAgainAfter = absl::Seconds(10);
// A registry that takes longer is slow or away.
constexpr absl::Duration kSchemaSoon = absl::Seconds(1);
// Each has 1 MiB or 4,096 records at most.
constexpr size_t kMostKeeping = 32;

bool KeepsTotals(const DaemonOptions& options) {
  return absl::c_any_of(options.counters,
                        [](const CounterOptions& each) { return each.mode == CounterMode::kTotal; });
}

}  // namespace

bool HeldPartitions::HasOutput(Task& task) {
  LaneFlow& flow = flows_.Of(task);
  const int32_t id = task.id().partition;
  if (id < flow.output_partitions) return true;
  const auto count = CountPartitions(task.id().flow);
  // Without an answer of the broker the transaction shows it.
  if (!count.ok() && !absl::IsNotFound(count.status())) return true;
  flow.output_partitions = count.ok() ? count->partitions : 0;
  if (id < flow.output_partitions) return true;
  Hold(task, WhyItLacks(task, count));
  return false;
}

std::string HeldPartitions::WhyItLacks(const Task& task, const absl::StatusOr<SmallestTopic>& count) const {
  const DaemonOptions& options = task.flow()->options;
  // A new one would have none of the records that are routed and not judged.
  if (!count.ok() && options.half.routing && absl::StrContains(count.status().message(), options.output)) {
    return LostRepartitionTopic(options);
  }
  if (!count.ok()) return absl::StrCat(count.status().message(), "; it resumes when you create it");
  int32_t needed = 0;  // for all partitions of the topic that this lane has
  for (const auto& [id, each] : tasks_) {
    if (id.flow == task.id().flow) needed = std::max(needed, id.partition + 1);
  }
  const bool is_of_totals = absl::c_any_of(options.counters, [&](const CounterOptions& each) {
    return each.mode == CounterMode::kTotal && each.output == count->topic;
  });
  return absl::StrCat(is_of_totals ? "totals" : "records",
                      " keep the partition number of the input, and topic ", count->topic, " has only ",
                      Several(count->partitions, "partition"), "; it resumes when you add partitions there: ",
                      KafkaCommand("kafka-topics.sh", options.process,
                                   absl::StrCat("--alter --topic ", count->topic, " --partitions ", needed)));
}

absl::StatusOr<SmallestTopic> HeldPartitions::CountPartitions(int32_t flow) {
  auto count = sink_.CountPartitions(flow);
  if (!absl::IsNotFound(count.status())) return count;
  for (const auto& [id, task] : tasks_) {
    if (id.flow == flow) task->WriteAllTotals();
  }
  return count;
}

void HeldPartitions::Hold(Task& task, const std::string& why) {
  if (task.Hold(why)) spdlog::error("{}", task.problem());
  source_.SetPaused(task, true);
  next_look_ = clock_.Steady() + kLookAtTopicsEvery;
}

void HeldPartitions::AwaitOutput(Task& task, const std::string& why) {
  LaneFlow& flow = flows_.Of(task);
  const absl::Time now = clock_.Steady();
  // A topic of totals that is missing now may be there again at the next try.
  if (now >= flow.next_try && KeepsTotals(flow.flow.options)) {
    CountPartitions(task.id().flow).IgnoreError();
  }
  flow.next_try = now + kTryAgainAfter;
  Hold(task, absl::StrCat(why, "; it tries again every ", absl::FormatDuration(kTryAgainAfter)));
}

void HeldPartitions::AwaitSchema(Task& task, const SchemaNeed& need, RecordRun records) {
  const absl::Time now = clock_.Steady();
  task.schema_wait().Begin(need, now);
  schema_soon_ = now + kSchemaSoon;
  flows_.Of(task).expected.Add(records);
  // To fetch the records again takes up to half a second. The pace has set aside some that come behind these.
  const bool may_keep = keeping_.size() < kMostKeeping && !task.pace().peek && !task.pace().waits();
  task.pace() = {};  // what it has set aside is dropped at the seek
  if (!may_keep) return source_.SetPaused(task, true);
  keeping_.insert(task.id());
  source_.SetAside(task, records);
  source_.Wait(task);
}

void HeldPartitions::Keep(const Task& task, RecordRun records) {
  if (!keeping_.contains(task.id())) return;  // it is sought
  flows_.Of(task).expected.Add(records);
  source_.SetAside(task, records);
}

bool HeldPartitions::ExpectsSchema() const { return clock_.Steady() < schema_soon_; }

void HeldPartitions::LookForSchemas(const Tasks& tasks) {
  if (schemas_ == nullptr || schemas_->answers() == answers_) return;
  answers_ = schemas_->answers();
  schema_soon_ = absl::InfinitePast();
  for (const auto& [id, task] : tasks) {
    if (!task->schema_wait().is_on()) continue;
    if (schemas_->Peek(task->schema_wait().need()).state == SchemaLookup::State::kWaiting) {
      schema_soon_ = std::max(schema_soon_, task->schema_wait().since() + kSchemaSoon);
      continue;
    }
    const bool keeps = keeping_.contains(id);
    Release(*task);
    keeps ? source_.TakeBack(*task) : source_.Seek(*task);
  }
}

void HeldPartitions::Look(const Tasks& tasks) {
  LookForSchemas(tasks);
  if (clock_.Steady() < next_look_) return;
  next_look_ = absl::InfiniteFuture();
  std::map<int32_t, absl::StatusOr<SmallestTopic>> counts;  // by flow
  for (auto& [id, task] : tasks) {
    if (task->phase() != Phase::kHeld) continue;
    auto asked = counts.find(id.flow);
    if (asked == counts.end()) asked = counts.emplace(id.flow, CountPartitions(id.flow)).first;
    const absl::StatusOr<SmallestTopic>& count = asked->second;
    const bool lacks_it = count.ok() ? id.partition >= count->partitions : absl::IsNotFound(count.status());
    if (lacks_it) {
      const std::string why = WhyItLacks(*task, count);
      if (!absl::StrContains(task->problem(), why)) Hold(*task, why);
    }
    if (lacks_it || !count.ok() || clock_.Steady() < flows_.Of(*task).next_try) {
      next_look_ = clock_.Steady() + kLookAtTopicsEvery;
      continue;
    }
    flows_.Of(*task).output_partitions = count->partitions;
    spdlog::info("{}: resumed at offset {}: the topics that it needs are there", task->Name(), task->next());
    Release(*task);
    source_.Seek(*task);
  }
}

void HeldPartitions::Release(Task& task) {
  if (task.paused()) source_.SetPaused(task, false);
  task.pace() = {};
  task.schema_wait().End(clock_.Steady());
  keeping_.erase(task.id());
  task.Resume();
}

}  // namespace lethe
