#include "connectors/kafka/counters/counter_totals.h"

#include <librdkafka/rdkafka.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/client/message_view.h"
#include "connectors/kafka/group/assignment.h"
#include "connectors/kafka/topics/topics.h"
#include "lethe/counters.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr int kRequestTimeoutMs = 2000;
// A former owner's open transaction ends within this time, by its timeout.
constexpr absl::Duration kPatience = absl::Seconds(90);

// So that a restart reads little more than one record for each key.
const TopicConfig kTotalsConfig = {
    {"cleanup.policy", "compact"}, {"segment.ms", "3600000"}, {"segment.bytes", "104857600"}};

// Restores the totals of one counter.
class Restore {
 public:
  Restore(const DaemonOptions& options, size_t counter, absl::Span<Task* const> partitions,
          const std::function<bool()>& go_on)
      : options_(options), counter_(counter), topic_(options.counters[counter].output), go_on_(go_on) {
    for (Task* task : partitions) {
      task->sums[counter] = CounterSums::WithTotals(options_.counters[counter].max_keys);
      if (task->phase != Phase::kFailed) tasks_[task->id] = task;
    }
  }

  absl::Status Run() {
    absl::Status status = FindEnds();
    if (status.ok()) status = Read();
    return WithGrant("totals", topic_, status);
  }

 private:
  absl::Status FindEnds() {
    const auto asking = MakeTotalsReader(options_, "read_uncommitted");
    if (!asking.ok()) return asking.status();
    for (const auto& [id, task] : tasks_) {
      if (!go_on_()) return absl::CancelledError("the totals were not read");
      const auto bounds = BoundsOf(asking->get(), topic_, id, kRequestTimeoutMs);
      if (bounds.ok()) {
        if (bounds->begin < bounds->end) ranges_[id] = *bounds;
      } else if (!absl::IsNotFound(bounds.status())) {
        return bounds.status();
      } else if (const auto count = CountPartitions(asking->get(), topic_, kRequestTimeoutMs);
                 !count.ok() || id < *count) {
        // lethe has created the topic when it started, and brokers learn of it some moments later.
        return absl::UnavailableError(absl::StrCat("the brokers do not know ", topic_, "-", id, " yet"));
      }  // else a partition was added to the input, and not yet to the topic: then there is no total of it
    }
    return absl::OkStatus();
  }

  absl::Status Read() {
    if (ranges_.empty()) return absl::OkStatus();
    const auto reader = MakeTotalsReader(options_, "read_committed");
    if (!reader.ok()) return reader.status();
    const absl::Time begin = SteadyNow();
    const size_t partitions = ranges_.size();
    int64_t records = 0;
    const absl::Status read = ReadLog(reader->get(), topic_,
                                      {.ranges = std::move(ranges_),
                                       .patience = kPatience,
                                       .see =
                                           [&](const rd_kafka_message_t& message) {
                                             ++records;
                                             Take(*tasks_.at(message.partition), message);
                                             return true;
                                           },
                                       .go_on = [&](int64_t) { return go_on_(); }});
    if (!read.ok()) return read;
    spdlog::info("counter {}: {} totals of {} partition{} were read from {} in {}",
                 options_.counters[counter_].name, records, partitions, partitions == 1 ? "" : "s", topic_,
                 absl::FormatDuration(absl::Trunc(SteadyNow() - begin, absl::Milliseconds(1))));
    return absl::OkStatus();
  }

  void Take(Task& task, const rd_kafka_message_t& message) {
    if (task.phase == Phase::kFailed) return;
    const MessageView view(message);
    const InputRecord record = view.record();
    const auto total = CounterTotal::Parse(record.key.value_or(""), record.value);
    const std::string place = absl::StrCat(topic_, "-", message.partition, " offset ", message.offset);
    const std::string& name = options_.counters[counter_].name;
    if (!total.ok()) {
      return FailPartition(
          task, absl::StrCat(place, ": not a total: ", total.status().message(), "; give counter ", name,
                             " an output of its own, or delete that topic"));
    }
    // Several counters, or inputs, may share the topic with others' lethe.
    if (total->counter != name || total->topic != options_.origin()) return;
    if (total->partition != task.id) {
      return FailPartition(task, absl::StrCat(place, ": the total is of partition ", total->partition,
                                              "; totals are in the partition of their input: delete the "
                                              "topic if it was copied from another with more partitions"));
    }
    if (total->offset > task.committed) {
      return FailPartition(
          task, absl::StrCat(place, ": the total has everything before offset ", total->offset, " of ",
                             options_.input, "-", task.id, ", and the group is at ", task.committed,
                             ": the group was reset, or the input was recreated. Records read again would be "
                             "counted twice. Set the group's offset to ",
                             total->offset, " or later, or give counter ", name,
                             " another output, where it counts from the group's offset on"));
    }
    CounterSums& sums = task.sums[counter_];
    if (record.value) {
      sums.Restore(total->key, total->total);
    } else {
      sums.Forget(total->key);
    }
  }

  const DaemonOptions& options_;
  const size_t counter_;
  const std::string& topic_;
  const std::function<bool()>& go_on_;
  std::map<int32_t, Task*> tasks_;
  std::map<int32_t, OffsetRange> ranges_;  // by partition, where it has totals
};

}  // namespace

absl::StatusOr<ClientPtr> MakeTotalsReader(const DaemonOptions& options, const char* isolation,
                                           std::vector<Property> defaults) {
  return ReaderConfig(options, isolation, FetchOn::Defaults(std::move(defaults))).MakeConsumer();
}

absl::Status EnsureTotalsTopics(const DaemonOptions& options, const StopFlag& stop) {
  for (const CounterOptions& counter : options.counters) {
    if (counter.mode != CounterMode::kTotal) continue;
    const absl::Status made = AwaitTopics(options, stop, [&](rd_kafka_t* client) {
      return EnsureTopic(options, client, "totals", counter.output,
                         [](const TopicFacts&) -> absl::StatusOr<TopicConfig> { return kTotalsConfig; })
          .status();
    });
    if (!made.ok()) return made;
  }
  return absl::OkStatus();
}

absl::Status RestoreTotals(const DaemonOptions& options, absl::Span<Task* const> partitions,
                           const std::function<bool()>& go_on) {
  for (size_t counter = 0; counter < options.counters.size(); ++counter) {
    if (options.counters[counter].mode != CounterMode::kTotal) continue;
    if (absl::Status restored = Restore(options, counter, partitions, go_on).Run(); !restored.ok()) {
      return restored;
    }
  }
  return absl::OkStatus();
}

}  // namespace lethe::kafka
