// What lethe adds to the delay of a record, and how long a start takes, on a real broker on the same machine.
//
//   latency_bench [--rates 0,100,5000] [--seconds N] [--rounds N] [--against PROGRAM]
//   latency_bench --starts N [--against PROGRAM]
//
// With --against, another build of lethe takes its turn in each round.
#include <librdkafka/rdkafka.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/process.h"

namespace lethe::test {
namespace {

constexpr int kPartitions = 4;
constexpr absl::Duration kWarmUp = absl::Seconds(3);

template <class T>
T Require(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "latency_bench: %s\n", value.status().ToString().c_str());
  std::exit(1);
}

void Require(const absl::Status& status) { Require(status.ok() ? absl::StatusOr<int>(0) : status); }

Handle NewHandle(rd_kafka_type_t type, const KafkaClient::Configs& properties) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  char reason[256];
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), reason, sizeof reason) != RD_KAFKA_CONF_OK) {
      Require(absl::InternalError(reason));
    }
  }
  Handle handle(rd_kafka_new(type, conf, reason, sizeof reason));
  if (handle == nullptr) Require(absl::InternalError(reason));
  return handle;
}

// Reads a topic from its beginning, and notes the delay of each record, whose value begins with the
// nanosecond of its production, if that lies between `from` and `to`.
class Reader {
 public:
  Reader(const std::string& brokers, const std::string& topic)
      : consumer_(NewHandle(RD_KAFKA_CONSUMER, {{"bootstrap.servers", brokers},
                                                {"group.id", "reader"},
                                                {"isolation.level", "read_committed"},
                                                {"enable.auto.commit", "false"},
                                                {"fetch.wait.max.ms", "500"}})) {
    rd_kafka_poll_set_consumer(consumer_.get());
    rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(kPartitions);
    for (int partition = 0; partition < kPartitions; ++partition) {
      rd_kafka_topic_partition_list_add(list, topic.c_str(), partition)->offset = 0;
    }
    rd_kafka_assign(consumer_.get(), list);
    rd_kafka_topic_partition_list_destroy(list);
    thread_ = std::thread([this] { Read(); });
  }
  ~Reader() {
    stop_ = true;
    thread_.join();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  int64_t read() const { return read_; }
  // Unix time of the arrival of the first record; 0: none yet.
  int64_t first_ns() const { return first_ns_; }

  // After the last record has come.
  std::vector<double> DelaysMs(absl::Time from, absl::Time to) {
    std::vector<double> delays;
    for (const auto& [sent, arrived] : seen_) {
      if (sent < absl::ToUnixNanos(from) || sent >= absl::ToUnixNanos(to)) continue;
      delays.push_back(static_cast<double>(arrived - sent) / 1e6);
    }
    std::sort(delays.begin(), delays.end());
    return delays;
  }

 private:
  void Read() {
    while (!stop_) {
      rd_kafka_message_t* message = rd_kafka_consumer_poll(consumer_.get(), 20);
      if (message == nullptr) continue;
      int64_t sent = 0;
      const absl::string_view value(static_cast<const char*>(message->payload), message->len);
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR && absl::SimpleAtoi(value.substr(0, 20), &sent)) {
        const int64_t now = absl::GetCurrentTimeNanos();
        if (first_ns_ == 0) first_ns_ = now;
        seen_.emplace_back(sent, now);
        ++read_;
      }
      rd_kafka_message_destroy(message);
    }
  }

  const Handle consumer_;
  std::vector<std::pair<int64_t, int64_t>> seen_;
  std::atomic<int64_t> read_ = 0;
  std::atomic<int64_t> first_ns_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Sends `rate` records of 214 bytes a second, evenly, for so long. Returns how many.
int64_t Send(const std::string& brokers, const std::string& topic, int rate, absl::Duration duration) {
  const Handle producer =
      NewHandle(RD_KAFKA_PRODUCER,
                {{"bootstrap.servers", brokers}, {"linger.ms", "1"}, {"enable.idempotence", "true"}});
  const absl::Time begin = absl::Now();
  int64_t sent = 0;
  for (;;) {
    const absl::Duration elapsed = absl::Now() - begin;
    if (elapsed >= duration) break;
    for (const auto due = static_cast<int64_t>(absl::ToDoubleSeconds(elapsed) * rate); sent < due; ++sent) {
      const int64_t now = absl::GetCurrentTimeNanos();
      const std::string value = absl::StrFormat("%020d%s", now, std::string(194, 'x'));
      const std::string key = absl::StrCat(now, "-", sent);
      if (rd_kafka_producev(producer.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                            RD_KAFKA_V_PARTITION(static_cast<int32_t>(sent % kPartitions)),
                            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key.data(), key.size()),
                            RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
                            RD_KAFKA_V_END) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        Require(absl::InternalError("producing"));
      }
    }
    rd_kafka_poll(producer.get(), 0);
    absl::SleepFor(absl::Milliseconds(1));
  }
  if (rd_kafka_flush(producer.get(), 10000) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    Require(absl::InternalError("flushing"));
  }
  return sent;
}

absl::Duration CpuOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::stringstream text;
  text << file.rdbuf();
  const std::string line = text.str();
  const std::vector<std::string> fields = absl::StrSplit(line.substr(line.rfind(')') + 2), ' ');
  int64_t user = 0;
  int64_t system = 0;
  if (!absl::SimpleAtoi(fields[11], &user) || !absl::SimpleAtoi(fields[12], &system)) {
    Require(absl::InternalError("reading the process's times"));
  }
  return absl::Seconds(1) * (user + system) / sysconf(_SC_CLK_TCK);
}

std::unique_ptr<Process> StartLethe(const std::string& program, const std::string& brokers,
                                    const std::string& input, const std::string& output) {
  ProcessOptions options;
  options.args = {program, "run",     "--brokers", brokers, "--input", input,    "--output",
                  output,  "--group", output,      "--id",  "key",     "--http", "off"};
  options.stderr_file = options.stdout_file = "/dev/null";
  return Require(Process::Start(options));
}

double Quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return Quantile(values, 0.5);
}

struct Program {
  const char* name;
  std::string path;
};

struct Figures {
  std::vector<double> direct_p50, direct_p99, p50, p99, cpu;
};

void Measure(KafkaClient& client, const std::string& brokers, const Program& program, int rate,
             absl::Duration duration, const std::string& name, Figures& figures) {
  const std::string input = absl::StrCat("in-", name);
  const std::string output = absl::StrCat("out-", name);
  Require(client.CreateTopic(input, kPartitions));
  Require(client.CreateTopic(output, kPartitions));
  Reader direct(brokers, input);
  Reader behind(brokers, output);
  const auto lethe = StartLethe(program.path, brokers, input, output);
  // One record in each partition: it has started when they have come.
  Send(brokers, input, 1000, absl::Milliseconds(10));
  if (!WaitUntil([&] { return behind.read() > 0; }, absl::Minutes(1))) {
    Require(absl::DeadlineExceededError("lethe wrote nothing"));
  }
  absl::Time begin = absl::Now() + kWarmUp;
  absl::Duration cpu = absl::ZeroDuration();
  std::thread watch([&] {
    absl::SleepFor(begin - absl::Now());
    const absl::Duration before = CpuOf(lethe->pid());
    absl::SleepFor(duration);
    cpu = CpuOf(lethe->pid()) - before;
  });
  if (rate > 0) Send(brokers, input, rate, kWarmUp + duration);
  watch.join();
  if (!WaitUntil([&] { return behind.read() >= direct.read(); }, absl::Minutes(1))) {
    Require(absl::DeadlineExceededError("lethe has not written all records"));
  }
  Require(lethe->Terminate(absl::Seconds(10)));
  figures.cpu.push_back(100 * absl::FDivDuration(cpu, duration));
  const auto of_input = direct.DelaysMs(begin, begin + duration);
  const auto of_output = behind.DelaysMs(begin, begin + duration);
  figures.direct_p50.push_back(Quantile(of_input, 0.5));
  figures.direct_p99.push_back(Quantile(of_input, 0.99));
  figures.p50.push_back(Quantile(of_output, 0.5));
  figures.p99.push_back(Quantile(of_output, 0.99));
}

int Delays(const std::vector<Program>& programs, const std::vector<int>& rates, int rounds,
           absl::Duration duration) {
  const auto broker = Require(KafkaBroker::Start());
  const auto client = Require(KafkaClient::Connect(broker->bootstrap()));
  std::printf(
      "%d partitions, a broker on the same machine, %d rounds of %s in turn, medians; delay from the "
      "producer "
      "to a read_committed consumer, ms\n\n"
      "| events/s | program | p50 direct | p99 direct | p50 behind lethe | p99 behind lethe | CPU, %% |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n",
      kPartitions, rounds, absl::FormatDuration(duration).c_str());
  for (const int rate : rates) {
    std::vector<Figures> figures(programs.size());
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < programs.size(); ++i) {
        Measure(*client, broker->bootstrap(), programs[i], rate, duration,
                absl::StrCat(rate, "-", round, "-", i), figures[i]);
      }
    }
    for (size_t i = 0; i < programs.size(); ++i) {
      const Figures& each = figures[i];
      std::printf("| %d | %s | %.1f | %.1f | %.1f | %.1f | %.1f |\n", rate, programs[i].name,
                  Median(each.direct_p50), Median(each.direct_p99), Median(each.p50), Median(each.p99),
                  Median(each.cpu));
    }
    std::fflush(stdout);
  }
  return 0;
}

// From the start of the process to its first record in an output topic that was just made.
int Starts(const std::vector<Program>& programs, int starts) {
  const auto broker = Require(KafkaBroker::Start());
  const auto client = Require(KafkaClient::Connect(broker->bootstrap()));
  Require(client->CreateTopic("input", kPartitions));
  Send(broker->bootstrap(), "input", 10000, absl::Milliseconds(100));
  std::vector<std::vector<double>> seconds(programs.size());
  for (int start = 0; start <= starts; ++start) {
    for (size_t i = 0; i < programs.size(); ++i) {
      const std::string output = absl::StrCat("out-", start, "-", i);
      Require(client->CreateTopic(output, kPartitions));
      Reader reader(broker->bootstrap(), output);
      const int64_t begin = absl::GetCurrentTimeNanos();
      const auto lethe = StartLethe(programs[i].path, broker->bootstrap(), "input", output);
      if (!WaitUntil([&] { return reader.first_ns() != 0; }, absl::Minutes(1))) {
        Require(absl::DeadlineExceededError("lethe wrote nothing"));
      }
      if (start > 0) seconds[i].push_back(static_cast<double>(reader.first_ns() - begin) / 1e9);
      Require(lethe->Terminate(absl::Seconds(10)));
    }
  }
  std::printf("seconds from the start of the process to its first committed record, %d starts, sorted\n\n",
              starts);
  for (size_t i = 0; i < programs.size(); ++i) {
    std::sort(seconds[i].begin(), seconds[i].end());
    std::printf("%s:", programs[i].name);
    for (const double each : seconds[i]) std::printf(" %.2f", each);
    std::printf("\n");
  }
  return 0;
}

int Main(int argc, char** argv) {
  std::vector<Program> programs = {{"lethe", LETHE_PROGRAM}};
  std::vector<int> rates = {0, 100, 5000};
  int seconds = 10;
  int rounds = 3;
  int starts = 0;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    bool is_good = true;
    if (flag == "--rates") {
      rates.clear();
      for (const absl::string_view each : absl::StrSplit(value, ',')) {
        is_good = absl::SimpleAtoi(each, &rates.emplace_back()) && is_good;
      }
    } else if (flag == "--against") {
      programs.push_back({"the other", value});
    } else {
      int* const number = flag == "--seconds"  ? &seconds
                          : flag == "--rounds" ? &rounds
                          : flag == "--starts" ? &starts
                                               : nullptr;
      is_good = number != nullptr && absl::SimpleAtoi(value, number) && *number > 0;
    }
    if (is_good) continue;
    std::fprintf(stderr,
                 "usage: latency_bench [--rates N,N...] [--seconds N] [--rounds N] [--against PROGRAM]\n"
                 "       latency_bench --starts N [--against PROGRAM]\n");
    return 2;
  }
  return starts > 0 ? Starts(programs, starts) : Delays(programs, rates, rounds, absl::Seconds(seconds));
}

}  // namespace
}  // namespace lethe::test

int main(int argc, char** argv) { return lethe::test::Main(argc, argv); }
