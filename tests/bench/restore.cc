// What a restore costs: a daemon is killed and started again, with its filter in a folder, in a topic, and in
// the log alone; seconds from the start of the process until it is ready, on a real broker on this machine.
//
//   restore_bench [--ids N]
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

// Ids in keys, and no value: the log is as small as it can be.
void Fill(KafkaClient& client, int64_t first, int64_t last) {
  while (first < last) {
    std::vector<Record> batch;
    for (; batch.size() < 100'000 && first < last; ++first) {
      Record record;
      record.key = absl::StrCat("id", first);
      record.partition = 0;
      batch.push_back(std::move(record));
    }
    OrExit(client.Produce("input", batch));
  }
}

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
                  "--http=off",
                  "--kafka=session.timeout.ms=6000",
                  "--kafka=heartbeat.interval.ms=500"};
  options.args.insert(options.args.end(), args.begin(), args.end());
  return OrExit(Process::Start(options));
}

void Await(Process& process, const std::string& what, const std::function<bool()>& met) {
  const bool is_met = WaitUntil([&] { return met() || !process.Running(); }, kPatience);
  if (is_met && process.Running()) return;
  OrExit(absl::InternalError(absl::StrCat("waited in vain for ", what, ":\n", process.Stderr())));
}

struct Restore {
  double seconds = 0;
  std::string log;  // the line that says from what
};

Restore Measure(KafkaClient& client, const std::string& brokers, const std::string& group, int64_t ids,
                const std::vector<std::string>& args) {
  OrExit(client.CreateTopic("output-" + group, 1));
  const auto committed = [&] { return OrExit(client.Committed(group, "input"))[0]; };
  {
    const auto first = Start(brokers, group, args);
    Await(*first, "the input's end", [&] { return committed().offset >= ids; });
    int64_t more = ids;
    if (!args.empty()) {
      // A snapshot of all of it, and a commit that names it.
      const int64_t wanted = ids - ids / 100;
      Await(*first, "a snapshot", [&] {
        Fill(client, more, more + 100);
        more += 100;
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

int Main(int64_t ids) {
  KafkaBrokerOptions broker_options;
  broker_options.heap = "1g";
  const auto broker = OrExit(KafkaBroker::Start(broker_options));
  const auto client = OrExit(KafkaClient::Connect(broker->bootstrap()));
  OrExit(client->CreateTopic("input", 1));
  std::fprintf(stderr, "filling the input with %lld ids ...\n", static_cast<long long>(ids));
  Fill(*client, 0, ids);
  std::string folder = std::filesystem::temp_directory_path() / "lethe-restore-bench-XXXXXX";
  folder = mkdtemp(folder.data());
  const std::pair<const char*, std::vector<std::string>> ways[] = {
      {"folder", {"--snapshots-to=folder:" + folder, "--snapshots-every=5s"}},
      {"topic", {"--snapshots-to=topic:snapshots", "--snapshots-every=5s"}},
      {"log", {}}};
  absl::PrintF(
      "%d ids in one partition, broker on the same machine, from the start of the process until it "
      "judges\n\n| from | s |\n| --- | --- |\n",
      ids);
  for (const auto& [name, args] : ways) {
    const Restore restore = Measure(*client, broker->bootstrap(), name, ids, args);
    if (!args.empty() && !absl::StrContains(restore.log, "is loaded")) {
      std::fprintf(stderr, "restore_bench: no snapshot was used:\n%s\n", restore.log.c_str());
      return 1;
    }
    absl::PrintF("| %s | %.1f |\n", name, restore.seconds);
    std::fflush(stdout);
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace lethe::test

int main(int argc, char** argv) {
  int64_t ids = 10'000'000;
  if (argc == 3 && std::string(argv[1]) == "--ids" && absl::SimpleAtoi(argv[2], &ids) && ids > 0) {
    return lethe::test::Main(ids);
  }
  if (argc != 1) {
    std::fprintf(stderr, "usage: restore_bench [--ids N]\n");
    return 2;
  }
  return lethe::test::Main(ids);
}
