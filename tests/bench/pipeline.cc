// The daemon beside a bare copy loop and Kafka Streams, on a real broker on the same machine: events per
// second from start to drained, CPU and memory of the process.
//
//   pipeline_bench [--events N] [--rounds N] [--only TEXT] [--readme FILE]   the copy loop, and those with
//   TEXT in their names pipeline_bench --formats all [--events N] [--rounds N]     the daemon on one content
//   in each format, instead
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/report.h"
#include "tests/support/encodings.h"
#include "tests/support/fake_registry.h"
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

// Of the fields of an event, its value.
using Encode =
    std::function<std::string(const std::string& id, const std::string& user, const std::string& text)>;

std::string Json(const std::string& id, const std::string& user, const std::string& text) {
  return absl::StrCat(R"({"id":")", id, R"(","user":")", user, R"(","text":")", text, "\"}");
}
std::string Avro(const std::string& id, const std::string& user, const std::string& text) {
  using lethe::test::AvroString;
  return lethe::test::Framed(1, AvroString(id) + AvroString(user) + AvroString(text));
}
std::string Protobuf(const std::string& id, const std::string& user, const std::string& text) {
  using lethe::test::BytesField;
  const std::string first_message(1, '\0');
  return lethe::test::Framed(2,
                             first_message + BytesField(1, id) + BytesField(2, user) + BytesField(3, text));
}

// Events whose JSON is of 214 bytes, 5 % of them copies of one of the last 2,000.
void Fill(KafkaClient& client, const std::string& topic, int64_t events, const Encode& encode) {
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
      static const std::string* const kText = new std::string(144, 'x');
      batch.push_back({id, encode(id, absl::StrCat("user-", id.substr(0, 4)), *kText), {}, 0, -1, -1});
    }
    Require(client.Produce(topic, batch));
  }
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Contender {
  const char* name;
  const char* topic;
  std::vector<std::string> command;  // with {output} and {group}
  std::vector<Run> runs = {};
};

// `copies` are the runs of the copy loop in the same rounds.
std::string Row(const Contender& contender, int64_t events, const std::vector<Run>& copies) {
  std::vector<double> rates, cpu, ratios, memory;
  for (size_t i = 0; i < contender.runs.size(); ++i) {
    const Run& run = contender.runs[i];
    rates.push_back(static_cast<double>(events) / run.seconds);
    cpu.push_back(run.cpu_seconds);
    ratios.push_back(run.cpu_seconds / copies[i].cpu_seconds);
    memory.push_back(run.peak_mib);
  }
  return absl::StrFormat("| %s | %.0f | %.0f to %.0f | %.2f | %.2f | %.0f |\n", contender.name, Median(rates),
                         *std::min_element(rates.begin(), rates.end()),
                         *std::max_element(rates.begin(), rates.end()), Median(cpu), Median(ratios),
                         Median(memory));
}

// One format after the other, in turn: what else the machine does meets all of them.
int Formats(int64_t events, int rounds) {
  struct Format {
    const char* name;
    const char* topic;
    const char* id;
    Encode encode;
    std::vector<Run> runs = {};
  };
  Format formats[] = {{"JSON", "json", "json:/id", Json},
                      {"Avro", "avro", "avro:/id", Avro},
                      {"Protobuf by names", "protobuf", "protobuf:/id", Protobuf},
                      {"Protobuf by numbers", "protobuf", "protobuf:/1", nullptr}};
  FakeRegistry registry;
  registry.PutAvro(
      1, R"({\"type\":\"record\",\"name\":\"Event\",\"fields\":[{\"name\":\"id\",\"type\":\"string\"},)"
         R"({\"name\":\"user\",\"type\":\"string\"},{\"name\":\"text\",\"type\":\"string\"}]})");
  registry.Put("/schemas/ids/2",
               {200, R"({"schemaType":"PROTOBUF","schema":"syntax = \"proto3\"; message Event {)"
                     R"( string id = 1; string user = 2; string text = 3; }"})"});
  KafkaBrokerOptions broker_options;
  broker_options.heap = "1g";
  auto broker = KafkaBroker::Start(broker_options);
  Require(broker.status());
  auto client = KafkaClient::Connect((*broker)->bootstrap());
  Require(client.status());
  for (const Format& format : formats) {
    if (!format.encode) continue;
    Require((*client)->CreateTopic(format.topic, kPartitions));
    Fill(**client, format.topic, events, format.encode);
  }
  for (int round = 0; round <= rounds; ++round) {
    std::fprintf(stderr, "round %d of %d ...\n", round, rounds);
    for (size_t i = 0; i < std::size(formats); ++i) {
      Format& format = formats[(i + static_cast<size_t>(round)) % std::size(formats)];
      const std::string output = absl::StrCat("output-", round, "-", i);
      Require((*client)->CreateTopic(output, kPartitions));
      const Run run = Measure({LETHE_PROGRAM, "run", "--brokers", (*broker)->bootstrap(), "--input",
                               format.topic, "--output", output, "--group", output, "--id", format.id,
                               "--http", "off", "--exit-at-end", "--schema-registry", registry.url()});
      if (round > 0) format.runs.push_back(run);  // the first warms up
      Require((*client)->DeleteTopic(output));
    }
  }
  std::printf(
      "%lld events of the same content in %d partitions, %d rounds in turn, exactly once; ratios to JSON in "
      "the same round: medians\n\n"
      "| format | events/s | times JSON | CPU of the process, s | times JSON |\n| --- | --- | --- | --- | "
      "--- |\n",
      static_cast<long long>(events), kPartitions, rounds);
  for (const Format& format : formats) {
    std::vector<double> rates, cpu, rate_ratios, cpu_ratios;
    for (size_t i = 0; i < format.runs.size(); ++i) {
      const Run& run = format.runs[i];
      rates.push_back(static_cast<double>(events) / run.seconds);
      cpu.push_back(run.cpu_seconds);
      rate_ratios.push_back(formats[0].runs[i].seconds / run.seconds);
      cpu_ratios.push_back(run.cpu_seconds / formats[0].runs[i].cpu_seconds);
    }
    std::printf("| %s | %.0f | %.2f | %.2f | %.2f |\n", format.name, Median(rates), Median(rate_ratios),
                Median(cpu), Median(cpu_ratios));
  }
  return 0;
}

int Main(int64_t events, int rounds, const std::string& only, const std::string& readme) {
  KafkaBrokerOptions broker_options;
  broker_options.heap = "1g";
  auto broker = KafkaBroker::Start(broker_options);
  Require(broker.status());
  auto client = KafkaClient::Connect((*broker)->bootstrap());
  Require(client.status());
  Require((*client)->CreateTopic("input", kPartitions));
  std::fprintf(stderr, "filling the input with %lld events ...\n", static_cast<long long>(events));
  Fill(**client, "input", events, Json);
  const std::string& brokers = (*broker)->bootstrap();
  const auto lethe_run = [&](const char* delivery) -> std::vector<std::string> {
    return {LETHE_PROGRAM, "run",      "--brokers",     brokers,      "--input", "input",
            "--output",    "{output}", "--group",       "{group}",    "--id",    "json:/id",
            "--http",      "off",      "--exit-at-end", "--delivery", delivery};
  };
  std::vector<Contender> contenders = {
      {"bare transactional copy loop", "bare", {LETHE_COPY_LOOP, brokers, "input", "{output}", "{group}"}},
      {"lethe run, exactly once, 1 lane", "lethe", lethe_run("exactly_once")},
      {"lethe run, at least once, 1 lane", "lethe-alo", lethe_run("at_least_once")},
      {"Kafka Streams, exactly once, a window store in RocksDB, 2 threads",
       "streams",
       {"/usr/bin/java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", LETHE_KAFKA_LIBS "/*",
        LETHE_SOURCE_DIR "/tests/bench/StreamsDedup.java", brokers, "input", "{output}", "{group}"}}};
  std::erase_if(contenders, [&](const Contender& contender) {
    return &contender != &contenders.front() && !absl::StrContains(contender.name, only);
  });
  for (int round = 0; round <= rounds; ++round) {
    std::fprintf(stderr, "round %d of %d ...\n", round, rounds);
    for (Contender& contender : contenders) {
      const std::string output = absl::StrCat(contender.topic, "-", round);
      Require((*client)->CreateTopic(output, kPartitions));
      std::vector<std::string> command = contender.command;
      for (std::string& arg : command) {
        if (arg == "{output}" || arg == "{group}") arg = output;
      }
      const Run run = Measure(command);
      if (round > 0) contender.runs.push_back(run);  // the first warms up
      Require((*client)->DeleteTopic(output));
    }
  }
  std::string text = absl::StrFormat(
      "%d events of 214 bytes in %d partitions, 5 %% duplicates, broker on the same machine, %d rounds in "
      "turn, medians, from the start of the process to its end with all committed\n\n"
      "| contender | events/s | range | CPU of the process, s | times the copy's in the same round | peak "
      "memory, MiB |\n| --- | --- | --- | --- | --- | --- |\n",
      events, kPartitions, rounds);
  for (const Contender& contender : contenders) text += Row(contender, events, contenders.front().runs);
  std::printf("%s", text.c_str());
  if (!readme.empty()) Require(bench::ReplaceTables(readme, "pipeline", absl::StrCat("\n", text)));
  return 0;
}

}  // namespace
}  // namespace lethe::test

int main(int argc, char** argv) {
  int64_t events = 2000000;
  int rounds = 3;
  std::string only, readme;
  bool formats = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--events" && absl::SimpleAtoi(argv[i + 1], &events)) continue;
    if (flag == "--rounds" && absl::SimpleAtoi(argv[i + 1], &rounds)) continue;
    if (flag == "--only" || flag == "--readme") {
      (flag == "--only" ? only : readme) = argv[i + 1];
      continue;
    }
    if (flag == "--formats") {
      formats = true;
      continue;
    }
    std::fprintf(
        stderr,
        "usage: pipeline_bench [--events N] [--rounds N] [--only TEXT] [--readme FILE] [--formats all]\n");
    return 2;
  }
  if (formats) return lethe::test::Formats(events, rounds);
  return lethe::test::Main(events, rounds, only, readme);
}
