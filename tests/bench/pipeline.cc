// The daemon beside a bare copy loop and Kafka Streams, on a real broker on the same machine: events per
// second from start to drained, CPU and memory of the process.
//
//   pipeline_bench [--events N] [--rounds N] [--readme FILE]
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/report.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {
namespace {

constexpr int kPartitions = 4;

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "pipeline_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

struct Run {
  double seconds = 0;
  double cpu_seconds = 0;
  double peak_mib = 0;
};

Run Measure(const std::vector<std::string>& args) {
  std::vector<char*> argv;
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  pid_t pid = 0;
  if (posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) {
    Require(absl::InternalError(absl::StrCat("starting ", args[0])));
  }
  int status = 0;
  rusage usage = {};
  wait4(pid, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    Require(absl::InternalError(absl::StrCat(args[0], " failed")));
  }
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<double>(usage.ru_maxrss) / 1024};
}

// Events of 214 bytes, 5 % of them copies of one of the last 2,000.
void Fill(KafkaClient& client, const std::string& topic, int64_t events) {
  std::mt19937_64 random(1);
  std::vector<std::string> recent;
  for (int64_t sent = 0; sent < events;) {
    std::vector<Record> batch;
    for (; batch.size() < 50000 && sent < events; ++sent) {
      std::string id;
      if (random() % 20 == 0 && !recent.empty()) {
        id = recent[random() % recent.size()];
      } else {
        id = absl::StrFormat("%016x%016x", random(), static_cast<uint64_t>(sent));
        if (recent.size() < 2000) {
          recent.push_back(id);
        } else {
          recent[random() % recent.size()] = id;
        }
      }
      std::string value =
          absl::StrCat("{\"id\":\"", id, "\",\"user\":\"user-", id.substr(0, 4), "\",\"text\":\"");
      value.append(212 - value.size(), 'x');
      value += "\"}";
      batch.push_back({id, std::move(value), {}, 0, -1, -1});
    }
    Require(client.Produce(topic, batch));
  }
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string Row(const char* name, int64_t events, const std::vector<Run>& runs) {
  std::vector<double> rates, cpu, memory;
  for (const Run& run : runs) {
    rates.push_back(static_cast<double>(events) / run.seconds);
    cpu.push_back(run.cpu_seconds);
    memory.push_back(run.peak_mib);
  }
  return absl::StrFormat("| %s | %.0f | %.0f to %.0f | %.2f | %.0f |\n", name, Median(rates),
                         *std::min_element(rates.begin(), rates.end()),
                         *std::max_element(rates.begin(), rates.end()), Median(cpu), Median(memory));
}

int Main(int64_t events, int rounds, const std::string& readme) {
  KafkaBrokerOptions broker_options;
  broker_options.heap = "1g";
  auto broker = KafkaBroker::Start(broker_options);
  Require(broker.status());
  auto client = KafkaClient::Connect((*broker)->bootstrap());
  Require(client.status());
  Require((*client)->CreateTopic("input", kPartitions));
  std::fprintf(stderr, "filling the input with %lld events ...\n", static_cast<long long>(events));
  Fill(**client, "input", events);
  std::vector<Run> bare, lethe, at_least_once, streams;
  for (int round = 0; round <= rounds; ++round) {
    std::fprintf(stderr, "round %d of %d ...\n", round, rounds);
    const auto run = [&](const std::string& name, std::vector<std::string> args, std::vector<Run>& runs) {
      const std::string output = absl::StrCat(name, "-", round);
      Require((*client)->CreateTopic(output, kPartitions));
      for (std::string& arg : args) {
        if (arg == "{output}") arg = output;
      }
      const Run measured = Measure(args);
      if (round > 0) runs.push_back(measured);  // the first warms up
      Require((*client)->DeleteTopic(output));
    };
    const std::string& brokers = (*broker)->bootstrap();
    run("bare", {LETHE_COPY_LOOP, brokers, "input", "{output}", absl::StrCat("bare-", round)}, bare);
    const auto lethe_run = [&](const std::string& name, const std::string& delivery, std::vector<Run>& runs) {
      run(name,
          {LETHE_PROGRAM, "run", "--brokers", brokers, "--input", "input", "--output", "{output}", "--group",
           absl::StrCat(name, "-", round), "--id", "json:/id", "--http", "off", "--exit-at-end", "--delivery",
           delivery},
          runs);
    };
    lethe_run("lethe", "exactly_once", lethe);
    lethe_run("lethe-alo", "at_least_once", at_least_once);
    run("streams",
        {"/usr/bin/java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", LETHE_KAFKA_LIBS "/*",
         LETHE_SOURCE_DIR "/tests/bench/StreamsDedup.java", brokers, "input", "{output}",
         absl::StrCat("streams-", round)},
        streams);
  }
  std::string text = absl::StrFormat(
      "%d events of 214 bytes in %d partitions, 5 %% duplicates, broker on the same machine, %d rounds in "
      "turn, medians, from the start of the process to its end with all committed\n\n"
      "| contender | events/s | range | CPU of the process, s | peak memory, MiB |\n| --- | --- | --- | --- "
      "| --- "
      "|\n",
      events, kPartitions, rounds);
  text += Row("bare transactional copy loop", events, bare);
  text += Row("lethe run, exactly once, 1 lane", events, lethe);
  text += Row("lethe run, at least once, 1 lane", events, at_least_once);
  text += Row("Kafka Streams, exactly once, a window store in RocksDB, 2 threads", events, streams);
  std::printf("%s", text.c_str());
  if (!readme.empty()) Require(bench::ReplaceTables(readme, "pipeline", absl::StrCat("\n", text)));
  return 0;
}

}  // namespace
}  // namespace lethe::test

int main(int argc, char** argv) {
  int64_t events = 2000000;
  int rounds = 3;
  std::string readme;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--events" && absl::SimpleAtoi(argv[i + 1], &events)) continue;
    if (flag == "--rounds" && absl::SimpleAtoi(argv[i + 1], &rounds)) continue;
    if (flag == "--readme") {
      readme = argv[i + 1];
      continue;
    }
    std::fprintf(stderr, "usage: pipeline_bench [--events N] [--rounds N] [--readme FILE]\n");
    return 2;
  }
  return lethe::test::Main(events, rounds, readme);
}
