#include "tests/support/kafka_broker.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/free_port.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {
namespace {

constexpr int kTries = 5;  // with other ports, when somebody else was quicker to bind one
constexpr absl::Duration kStartTimeout = absl::Minutes(2);
constexpr absl::Duration kStopTimeout = absl::Seconds(30);
constexpr size_t kLogTailBytes = 4000;

std::vector<std::string> Java(const std::string& heap, const std::string& main_class) {
  // A short life: the cheap compiler and the simple collector start faster and take less of the two cores.
  return {"java",
          absl::StrCat("-Xmx", heap),
          "-XX:TieredStopAtLevel=1",
          "-XX:+UseSerialGC",
          "-Djava.awt.headless=true",
          "-Dorg.slf4j.simpleLogger.showDateTime=true",
          "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
          "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaConfig=warn",  // all its defaults
          "-cp",
          absl::StrCat(LETHE_KAFKA_LIBS, "/*"),
          main_class};
}

std::map<std::string, std::string> Properties(int broker_port, int controller_port,
                                              const std::string& folder) {
  const std::string broker = absl::StrCat("BROKER://127.0.0.1:", broker_port);
  const std::string controller = absl::StrCat("127.0.0.1:", controller_port);
  return {
      {"process.roles", "broker,controller"},
      {"node.id", "1"},
      {"controller.quorum.voters", absl::StrCat("1@", controller)},
      {"listeners", absl::StrCat(broker, ",CONTROLLER://", controller)},
      {"advertised.listeners", broker},
      {"listener.security.protocol.map", "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT"},
      {"inter.broker.listener.name", "BROKER"},
      {"controller.listener.names", "CONTROLLER"},
      {"log.dirs", folder + "/data"},
      {"auto.create.topics.enable", "false"},  // a topic's misspelt name must not go unseen
      {"offsets.topic.replication.factor", "1"},
      {"offsets.topic.num.partitions", "4"},
      {"transaction.state.log.replication.factor", "1"},
      {"transaction.state.log.min.isr", "1"},
      {"transaction.state.log.num.partitions", "4"},
      {"broker.session.timeout.ms", "2000"},  // one that was killed is let in again after so long
      {"broker.heartbeat.interval.ms", "500"},
      {"log.cleaner.dedupe.buffer.size", "8388608"},
      {"group.initial.rebalance.delay.ms", "0"},
      {"group.min.session.timeout.ms", "1000"},  // a killed member is missed for so long at least
      {"transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000"},
  };
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace

KafkaBroker::KafkaBroker(KafkaBrokerOptions options, std::string folder)
    : options_(std::move(options)), folder_(std::move(folder)) {}

absl::StatusOr<std::unique_ptr<KafkaBroker>> KafkaBroker::Start(KafkaBrokerOptions options) {
  std::string folder = (std::filesystem::temp_directory_path() / "lethe-kafka-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a folder like ", folder));
  }
  std::unique_ptr<KafkaBroker> broker(new KafkaBroker(std::move(options), folder));
  absl::Status status;
  for (int tries = 0; tries < kTries; ++tries) {
    status = broker->Format();
    if (status.ok()) status = broker->Launch();
    if (status.ok()) status = broker->AwaitReady();
    if (status.ok()) return broker;
    if (!absl::IsAborted(status)) break;
  }
  return status;
}

KafkaBroker::~KafkaBroker() {
  // The data is not wanted any more, so there is nothing to shut down in order.
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

pid_t KafkaBroker::pid() const { return process_ == nullptr ? 0 : process_->pid(); }

absl::Status KafkaBroker::Format() {
  const int broker_port = FreePort();
  int controller_port = FreePort();
  while (controller_port == broker_port) controller_port = FreePort();
  bootstrap_ = absl::StrCat("127.0.0.1:", broker_port);

  std::map<std::string, std::string> properties = Properties(broker_port, controller_port, folder_);
  for (const auto& [name, value] : options_.properties) properties[name] = value;
  if (options_.adapt) options_.adapt(properties);
  const std::string file = folder_ + "/server.properties";
  {
    std::ofstream out(file);
    for (const auto& [name, value] : properties) out << name << '=' << value << '\n';
    if (!out.flush()) return absl::InternalError(absl::StrCat("cannot write ", file));
  }
  ProcessOptions format;
  format.args = Java(options_.heap, "kafka.tools.StorageTool");
  for (const char* arg : {"format", "--ignore-formatted", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c"}) {
    format.args.emplace_back(arg);
  }
  format.args.push_back(file);
  format.args.insert(format.args.end(), options_.format_args.begin(), options_.format_args.end());
  const absl::StatusOr<Finished> formatted = RunToEnd(format, kStartTimeout);
  if (!formatted.ok()) return formatted.status();
  if (formatted->exit_code != 0) {
    return absl::InternalError(absl::StrCat("kafka.tools.StorageTool failed with ", formatted->exit_code,
                                            " (jars in ", LETHE_KAFKA_LIBS, "):\n", formatted->out,
                                            formatted->err));
  }
  return absl::OkStatus();
}

absl::Status KafkaBroker::Launch() {
  // What an earlier process said must not be taken for this one's.
  std::error_code ignored;
  std::filesystem::rename(LogFile(), LogFile() + ".before", ignored);
  ProcessOptions server;
  server.args = Java(options_.heap, "kafka.Kafka");
  server.args.push_back(folder_ + "/server.properties");
  server.stdout_file = server.stderr_file = LogFile();
  absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(server);
  if (!process.ok()) return process.status();
  process_ = std::move(*process);
  return absl::OkStatus();
}

absl::Status KafkaBroker::AwaitReady() {
  const absl::StatusOr<std::unique_ptr<KafkaClient>> client = KafkaClient::Connect(bootstrap_);
  if (!client.ok()) return client.status();
  const absl::Time deadline = absl::Now() + kStartTimeout;
  while (absl::Now() < deadline) {
    if (!process_->Running()) {
      const bool port_taken = absl::StrContains(ReadFile(LogFile()), "Address already in use");
      return absl::Status(port_taken ? absl::StatusCode::kAborted : absl::StatusCode::kInternal,
                          absl::StrCat("the Kafka broker ended while starting:\n", LogTail()));
    }
    // Without a broker in it the answer is one of a broker that has not been let into the cluster yet.
    const absl::StatusOr<int> brokers = (*client)->BrokerCount(absl::Milliseconds(200));
    if (brokers.ok() && *brokers > 0) return absl::OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat("the Kafka broker does not answer on ", bootstrap_,
                                                  " after ", absl::FormatDuration(kStartTimeout), ":\n",
                                                  LogTail()));
}

absl::Status KafkaBroker::Stop() {
  if (process_ == nullptr) return absl::FailedPreconditionError("the Kafka broker does not run");
  const absl::StatusOr<int> code = process_->Terminate(kStopTimeout);
  process_.reset();
  if (!code.ok()) return code.status();
  // Java ends with 128 + SIGTERM when asked to end; StatusOr<int> says 128 + SIGKILL when that took too long.
  if (*code == 128 + SIGTERM || *code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the Kafka broker ended with ", *code, ":\n", LogTail()));
}

absl::Status KafkaBroker::Kill() {
  if (process_ == nullptr) return absl::FailedPreconditionError("the Kafka broker does not run");
  const absl::Status status = process_->Signal(SIGKILL);
  process_.reset();
  return status;
}

absl::Status KafkaBroker::Restart() {
  if (process_ != nullptr) {
    if (const absl::Status stopped = Stop(); !stopped.ok()) return stopped;
  }
  absl::Status status;
  for (int tries = 0; tries < kTries; ++tries) {
    status = Launch();
    if (status.ok()) status = AwaitReady();
    if (!absl::IsAborted(status)) break;
  }
  return status;
}

std::string KafkaBroker::LogFile() const { return folder_ + "/broker.log"; }

std::string KafkaBroker::LogTail() const {
  const std::string log = ReadFile(LogFile());
  return log.size() <= kLogTailBytes ? log : absl::StrCat("[...]", log.substr(log.size() - kLogTailBytes));
}

}  // namespace lethe::test
