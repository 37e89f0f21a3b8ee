// What a restore costs: a daemon is killed and started again, with its filter in a folder, in a topic, and in
// the log alone; seconds from the start of the process until it is ready, on a real broker on this machine.
//
//   restore_bench [--ids N] [--at-once]
#include <librdkafka/rdkafka.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/process.h"

namespace lethe::test {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(15);

template <typename T>
T OrExit(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "restore_bench: %s\n", value.status().ToString().c_str());
  std::exit(1);
}
void OrExit(const absl::Status& status) { OrExit(status.ok() ? absl::StatusOr<int>(0) : status); }

constexpr absl::Duration kHorizon = absl::Hours(24);

// The input's ids, in keys, without values: the log is as small as it can be.
class Input {
 public:
  // Their times are those of `ids` that came steadily in the horizon up to now, or the time of sending: then
  // the filter expects a whole horizon of such, and takes the memory for it, up to its limit.
  Input(KafkaClient* client, int64_t ids, bool at_once)
      : client_(client), interval_(kHorizon / static_cast<double>(ids)), at_once_(at_once) {
    OrExit(client->CreateTopic("input", 1));
  }

  void Add(int64_t count) {
    while (count > 0) {
      std::vector<Record> batch;
      for (; batch.size() < 100'000 && count > 0; --count) {
        Record record;
        record.key = absl::StrCat("id", ids_);
        record.partition = 0;
        if (!at_once_) {
          record.timestamp_ms = absl::ToUnixMillis(start_ + interval_ * static_cast<double>(ids_));
        }
        batch.push_back(std::move(record));
        ++ids_;
      }
      OrExit(client_->Produce("input", batch));
    }
  }

  int64_t ids() const { return ids_; }

 private:
  KafkaClient* const client_;
  const absl::Duration interval_;
  const bool at_once_;
  // Not in the future, whatever is added at the end.
  const absl::Time start_ = absl::Now() - kHorizon - absl::Hours(1);
  int64_t ids_ = 0;
};

std::unique_ptr<Process> Start(const std::string& brokers, const std::string& group,
                               const std::vector<std::string>& args) {
  ProcessOptions options;
  options.args = {LETHE_PROGRAM,
                  "run",
                  "--brokers=" + brokers,
                  "--input=input",
                  "--output=output-" + group,
                  "--group=" + group,
                  "--instance=bench",
                  "--id=key",
                  absl::StrCat("--horizon=", absl::ToInt64Hours(kHorizon), "h"),
                  "--http=off",
                  "--kafka=session.timeout.ms=6000",
                  "--kafka=heartbeat.interval.ms=500"};
  options.args.insert(options.args.end(), args.begin(), args.end());
  return OrExit(Process::Start(options));
}

void Await(Process& process, const std::string& what, const std::function<bool()>& met) {
  const bool is_met = WaitUntil([&] { return met() || !process.Running(); }, kPatience);
  if (is_met && process.Running()) return;
  OrExit(absl::InternalError(absl::StrCat("timed out waiting for ", what, ":\n", process.Stderr())));
}

struct Restore {
  double seconds = 0;
  std::string log;  // of the process that restored
};

Restore Measure(KafkaClient& client, const std::string& brokers, const std::string& group, Input* input,
                const std::vector<std::string>& args) {
  OrExit(client.CreateTopic("output-" + group, 1));
  const auto committed = [&] { return OrExit(client.Committed(group, "input"))[0]; };
  {
    const auto first = Start(brokers, group, args);
    const int64_t ids = input->ids();
    Await(*first, "the input's end", [&] { return committed().offset >= ids; });
    if (!args.empty()) {
      // A snapshot of all of it, and a commit that names it.
      const int64_t wanted = ids - ids / 100;
      Await(*first, "a snapshot", [&] {
        input->Add(100);
        const std::string story = committed().metadata;
        const size_t at = story.find(" s=");
        int64_t offset = 0;
        return at != std::string::npos &&
               absl::SimpleAtoi(story.substr(at + 3, story.find('-', at) - at - 3), &offset) &&
               offset >= wanted;
      });
    }
  }                                  // killed
  absl::SleepFor(absl::Seconds(8));  // until the group has noticed
  const absl::Time start = absl::Now();
  const auto second = Start(brokers, group, args);
  Await(*second, "the restore", [&] { return absl::StrContains(second->Stderr(), ": ready at offset"); });
  return {absl::ToDoubleSeconds(absl::Now() - start), second->Stderr()};
}

// Reads the input as the daemon's consumer does, and does nothing with it: as fast as a log can be.
double SecondsOfAConsumer(const std::string& brokers, int64_t ids) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  char error[256] = "";
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"bootstrap.servers", brokers},
                                    {"group.id", "alone"},
                                    {"isolation.level", "read_committed"},
                                    {"queued.min.messages", "200000"},
                                    {"queued.max.messages.kbytes", "32768"}}) {
    rd_kafka_conf_set(conf, name.c_str(), value.c_str(), error, sizeof error);
  }
  rd_kafka_t* consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
  if (consumer == nullptr) OrExit(absl::InternalError(error));
  rd_kafka_poll_set_consumer(consumer);
  rd_kafka_topic_partition_list_t* from = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(from, "input", 0)->offset = 0;
  const absl::Time start = absl::Now();
  rd_kafka_assign(consumer, from);
  rd_kafka_queue_t* queue = rd_kafka_queue_get_consumer(consumer);
  std::vector<rd_kafka_message_t*> messages(1024);
  for (int64_t last = -1; last < ids - 1;) {
    const ssize_t count = rd_kafka_consume_batch_queue(queue, 1000, messages.data(), messages.size());
    for (ssize_t i = 0; i < count; ++i) {
      rd_kafka_message_t* message = messages[static_cast<size_t>(i)];
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) last = message->offset;
      rd_kafka_message_destroy(message);
    }
    if (absl::Now() - start > kPatience) OrExit(absl::DeadlineExceededError("reading the input alone"));
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  rd_kafka_queue_destroy(queue);
  rd_kafka_topic_partition_list_destroy(from);
  rd_kafka_destroy(consumer);
  return seconds;
}

int64_t BytesIn(const std::string& folder) {
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    bytes += static_cast<int64_t>(file.file_size());
  }
  return bytes;
}

int Main(int64_t ids, bool at_once) {
  KafkaBrokerOptions broker_options;
  broker_options.heap = "1g";
  const auto broker = OrExit(KafkaBroker::Start(broker_options));
  const auto client = OrExit(KafkaClient::Connect(broker->bootstrap()));
  std::fprintf(stderr, "filling the input with %lld ids ...\n", static_cast<long long>(ids));
  Input input(client.get(), ids, at_once);
  input.Add(ids);
  std::string folder = std::filesystem::temp_directory_path() / "lethe-restore-bench-XXXXXX";
  folder = mkdtemp(folder.data());
  const std::pair<const char*, std::vector<std::string>> ways[] = {
      {"folder", {"--snapshots-to=folder:" + folder, "--snapshots-every=5s"}},
      {"topic", {"--snapshots-to=topic:snapshots", "--snapshots-every=5s"}},
      {"log", {}}};
  absl::PrintF(
      "%d ids in one partition, %s, broker on the same machine; from the start of the process until it "
      "judges\n\n| from | s | snapshot, MB |\n| --- | --- | --- |\n",
      ids, at_once ? "all at once" : "spread over the horizon");
  for (const auto& [name, args] : ways) {
    const Restore restore = Measure(*client, broker->bootstrap(), name, &input, args);
    if (!args.empty() && !absl::StrContains(restore.log, "is loaded")) {
      std::fprintf(stderr, "restore_bench: no snapshot was used:\n%s\n", restore.log.c_str());
      return 1;
    }
    const bool is_folder = args == ways[0].second;
    absl::PrintF("| %s | %.1f | %s |\n", name, restore.seconds,
                 is_folder ? absl::StrCat(BytesIn(folder) / 1'000'000) : "");
    std::fflush(stdout);
  }
  absl::PrintF("| the log, by a consumer that does nothing | %.1f | |\n",
               SecondsOfAConsumer(broker->bootstrap(), input.ids()));
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace lethe::test

int main(int argc, char** argv) {
  int64_t ids = 10'000'000;
  bool at_once = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--at-once") {
      at_once = true;
    } else if (arg != "--ids" || ++i == argc || !absl::SimpleAtoi(argv[i], &ids) || ids <= 0) {
      std::fprintf(stderr, "usage: restore_bench [--ids N] [--at-once]\n");
      return 2;
    }
  }
  return lethe::test::Main(ids, at_once);
}
