#include "connectors/kafka/counters/counter_totals.h"

#include <librdkafka/rdkafka.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/message_view.h"
#include "connectors/kafka/topics/topics.h"
#include "lethe/counters.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr int kRequestTimeoutMs = 2000;
constexpr int kPollMs = 100;
// A transaction that a former owner left open ends in between, by its timeout.
constexpr absl::Duration kPatience = absl::Seconds(90);

// So that a restart reads little more than one record for each key.
const std::map<std::string, std::string> kTotalsConfig = {
    {"cleanup.policy", "compact"}, {"segment.ms", "3600000"}, {"segment.bytes", "104857600"}};

// Of one counter.
class Restore {
 public:
  Restore(const DaemonOptions& options, size_t counter, absl::Span<Task* const> partitions,
          const std::function<bool()>& go_on)
      : options_(options), counter_(counter), topic_(options.counters[counter].output), go_on_(go_on) {
    for (Task* task : partitions) {
      task->sums[counter] = CounterSums(/*keeps_totals=*/true);
      if (task->phase != Phase::kFailed) partitions_[task->id] = {task};
    }
  }

  absl::Status Run() {
    if (absl::Status status = FindEnds(); !status.ok()) return Granting(status);
    return Granting(Read());
  }

 private:
  struct Partition {
    Task* task = nullptr;
    int64_t next = 0;
    int64_t end = 0;
  };

  absl::Status Granting(const absl::Status& status) const { return WithGrant("totals", topic_, status); }

  absl::Status FindEnds() {
    const auto asking = MakeTotalsReader(options_, "read_uncommitted");
    if (!asking.ok()) return asking.status();
    for (auto& [id, partition] : partitions_) {
      if (!go_on_()) return absl::CancelledError("the totals were not read");
      const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
          asking->get(), topic_.c_str(), id, &partition.next, &partition.end, kRequestTimeoutMs);
      if (code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
          code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
        const auto count = CountPartitions(asking->get(), topic_, kRequestTimeoutMs);
        // lethe has created the topic when it started, and brokers learn of it some moments later.
        if (!count.ok() || id < *count) {
          return absl::UnavailableError(absl::StrCat("the brokers do not know ", topic_, "-", id, " yet"));
        }
        // A partition was added to the input, and not yet to the topic: then there is no total of it.
        partition.end = partition.next = 0;
      } else if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return ErrorStatus(code, absl::StrCat("asking for the end of ", topic_, "-", id));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Read() {
    const auto reader = MakeTotalsReader(options_, "read_committed");
    if (!reader.ok()) return reader.status();
    const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions_.size())));
    for (const auto& [id, partition] : partitions_) {
      if (partition.next >= partition.end) continue;
      rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), id)->offset = partition.next;
    }
    int left = list->cnt;
    if (left == 0) return absl::OkStatus();
    rd_kafka_poll_set_consumer(reader->get());
    const rd_kafka_resp_err_t code = rd_kafka_assign(reader->get(), list.get());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(code, absl::StrCat("reading ", topic_));
    FetchOn fetch_on(reader->get());
    const absl::Time begin = SteadyNow();
    absl::Time deadline = begin + kPatience;
    int64_t records = 0;
    for (int unasked = 0; left > 0;) {
      const MessagePtr message = fetch_on.Poll(kPollMs);
      const absl::Time now = SteadyNow();
      if ((message == nullptr || ++unasked >= 1000) && !go_on_()) {
        return absl::CancelledError("the totals were not read");
      }
      if (message == nullptr || unasked >= 1000) unasked = 0;
      const bool is_end = message != nullptr && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
      if (message == nullptr || (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && !is_end)) {
        if (message != nullptr && !IsTransient(message->err) &&
            message->err != RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) {
          return ErrorStatus(message->err, absl::StrCat("reading ", topic_));
        }
        if (now < deadline) continue;
        return absl::UnavailableError(absl::StrCat(
            "reading ", topic_, " stands still: a transaction in it is open, or no broker answers"));
      }
      const auto found = partitions_.find(message->partition);
      if (found == partitions_.end() || found->second.next >= found->second.end) continue;
      Partition& partition = found->second;
      if (!is_end) ++records;
      if (!is_end && message->offset < partition.end) Take(partition, *message);
      const int64_t next = is_end ? message->offset : message->offset + 1;
      if (next > partition.next) deadline = now + kPatience;
      partition.next = next;
      if (partition.next >= partition.end) --left;
    }
    spdlog::info("counter {}: {} totals of {} partition{} were read from {} in {}",
                 options_.counters[counter_].name, records, list->cnt, list->cnt == 1 ? "" : "s", topic_,
                 absl::FormatDuration(absl::Trunc(SteadyNow() - begin, absl::Milliseconds(1))));
    return absl::OkStatus();
  }

  void Take(Partition& partition, const rd_kafka_message_t& message) {
    Task& task = *partition.task;
    if (task.phase == Phase::kFailed) return;
    const MessageView view(message);
    const InputRecord record = view.record();
    const auto total = CounterTotal::Parse(record.key.value_or(""), record.value);
    const std::string place = absl::StrCat(topic_, "-", message.partition, " offset ", message.offset);
    const std::string& name = options_.counters[counter_].name;
    if (!total.ok()) {
      return Fail(task, absl::StrCat(place, ": the record is no total: ", total.status().message(),
                                     "; give counter ", name, " an output of its own, or delete that topic"));
    }
    // Several counters, or inputs, may share the topic with others' lethe.
    if (total->counter != name || total->topic != options_.origin()) return;
    if (total->partition != task.id) {
      return Fail(task, absl::StrCat(place, ": the total is of partition ", total->partition,
                                     "; totals are in the partition of their input: delete the topic if it "
                                     "was copied from another with more partitions"));
    }
    if (total->offset > task.committed) {
      return Fail(
          task,
          absl::StrCat(place, ": the total has everything before offset ", total->offset, " of ",
                       options_.input, "-", task.id, ", and the group is at ", task.committed,
                       ": it was reset, or the input was recreated, and what is read again would be counted "
                       "again; set the group's offset to ",
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

  static void Fail(Task& task, std::string problem) {
    task.phase = Phase::kFailed;
    task.problem = std::move(problem);
    spdlog::error("{}", task.problem);
  }

  const DaemonOptions& options_;
  const size_t counter_;
  const std::string& topic_;
  const std::function<bool()>& go_on_;
  std::map<int32_t, Partition> partitions_;
};

}  // namespace

absl::StatusOr<ClientPtr> MakeTotalsReader(const DaemonOptions& options, const char* isolation,
                                           std::vector<Property> defaults) {
  ClientConfig config = BaseConfig(options, FetchOn::Defaults(std::move(defaults)));
  config.Set("group.id", options.group)
      .Set("isolation.level", isolation)
      .Set("enable.auto.commit", "false")
      .Set("enable.auto.offset.store", "false")
      .Set("enable.partition.eof", "true")
      .Set("auto.offset.reset", "earliest");
  return config.MakeConsumer();
}

absl::Status EnsureTotalsTopics(const DaemonOptions& options, const StopFlag& stop) {
  for (const CounterOptions& counter : options.counters) {
    if (counter.mode != CounterMode::kTotal) continue;
    const std::string& name = counter.output;
    const absl::Status made = AwaitTopics(options, stop, [&](rd_kafka_t* client) {
      const absl::Status exists = CountPartitions(client, name, kRequestTimeoutMs).status();
      if (!absl::IsNotFound(exists)) return WithGrant("totals", name, exists);
      const auto input = DescribeInput(options, client);
      if (!input.ok()) return input.status();
      const absl::Status created =
          CreateTopic(client, name, {input->partitions, input->replicas}, kTotalsConfig);
      if (created.ok()) spdlog::info("topic {} was made, with {} partitions", name, input->partitions);
      return WithGrant("totals", name, created);
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
