#include "tests/support/kafka_broker.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/free_port.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {
namespace {

constexpr int kTries = 5;  // with other ports, when somebody else was quicker to bind one
constexpr absl::Duration kStartTimeout = absl::Minutes(2);
constexpr absl::Duration kStopTimeout = absl::Seconds(30);
constexpr size_t kLogTailBytes = 4000;

// Of the tests' broker; with LETHE_KAFKA=newest in the environment those of the newest.
const char* Jars() {
  const char* const wanted = std::getenv("LETHE_KAFKA");
  return wanted != nullptr && absl::string_view(wanted) == "newest" ? LETHE_NEWEST_KAFKA_LIBS
                                                                    : LETHE_KAFKA_LIBS;
}

std::vector<std::string> Java(const std::string& heap, const std::string& folder,
                              const std::string& main_class) {
  // Java's classes are looked up in an archive, if there is one for these jars: half of a start is that. Who
  // writes it ends its broker in order.
  const bool writes_archive = std::getenv("LETHE_WRITE_KAFKA_CLASSES") != nullptr;
  // A short life: the cheap compiler and the simple collector start faster and take less of the two cores.
  return {"java", absl::StrCat("-Xmx", heap), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
          absl::StrCat(writes_archive ? "-XX:ArchiveClassesAtExit=" : "-XX:SharedArchiveFile=", Jars(),
                       "/../classes.jsa"),
          "-Djava.awt.headless=true",
          // One that is killed leaves unpacked libraries there.
          absl::StrCat("-Djava.io.tmpdir=", folder), "-Dorg.slf4j.simpleLogger.showDateTime=true",
          "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
          "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaConfig=warn",  // all its defaults
          "-cp", absl::StrCat(Jars(), "/*"), main_class};
}

std::map<std::string, std::string> Properties(int id, int cluster_size,
                                              const std::map<std::string, int>& ports,
                                              const KafkaBrokerOptions& options, const std::string& voters,
                                              const std::string& folder) {
  std::string listeners;
  std::string advertised;
  std::string protocols;
  for (const auto& [name, port] : ports) {
    const char* comma = listeners.empty() ? "" : ",";
    absl::StrAppend(&listeners, comma, name, "://127.0.0.1:", port);
    absl::StrAppend(&protocols, comma, name, ":PLAINTEXT");
  }
  absl::StrAppend(&advertised, "BROKER://127.0.0.1:", ports.at("BROKER"));
  for (const auto& [name, port] : options.proxied)
    absl::StrAppend(&advertised, ",", name, "://127.0.0.1:", port);
  const std::string replicas = absl::StrCat(std::min(cluster_size, 3));
  const std::string in_sync = cluster_size < 3 ? "1" : "2";
  std::map<std::string, std::string> properties = {
      {"process.roles", "broker,controller"},
      {"node.id", absl::StrCat(id)},
      {"controller.quorum.voters", voters},
      {"listeners", listeners},
      {"advertised.listeners", advertised},
      {"listener.security.protocol.map", protocols},
      {"inter.broker.listener.name", "BROKER"},
      {"controller.listener.names", "CONTROLLER"},
      {"log.dirs", folder + "/data"},
      {"auto.create.topics.enable", "false"},  // a topic's misspelt name must not go unseen
      {"default.replication.factor", replicas},
      {"min.insync.replicas", in_sync},
      {"offsets.topic.replication.factor", replicas},
      {"offsets.topic.num.partitions", absl::StrCat(kInternalPartitions)},
      {"transaction.state.log.replication.factor", replicas},
      {"transaction.state.log.min.isr", in_sync},
      {"transaction.state.log.num.partitions", absl::StrCat(kInternalPartitions)},
      {"share.coordinator.state.topic.replication.factor", replicas},  // from 4.0 on
      {"share.coordinator.state.topic.min.isr", in_sync},
      {"broker.session.timeout.ms", "2000"},  // one that was killed is let in again after so long
      {"broker.heartbeat.interval.ms", "500"},
      {"log.cleaner.dedupe.buffer.size", "8388608"},
      {"group.initial.rebalance.delay.ms", "0"},
      {"group.min.session.timeout.ms", "1000"},  // a killed member is missed for so long at least
      {"transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000"},
  };
  for (const auto& [name, value] : options.properties) properties[name] = value;
  if (options.adapt) options.adapt(properties);
  return properties;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace

KafkaBroker::KafkaBroker(KafkaBrokerOptions options, std::string folder, int id, int cluster_size)
    : options_(std::move(options)), folder_(std::move(folder)), id_(id), cluster_size_(cluster_size) {}

absl::StatusOr<std::unique_ptr<KafkaBroker>> KafkaBroker::Make(KafkaBrokerOptions options, int id,
                                                               int cluster_size) {
  std::string folder = (std::filesystem::temp_directory_path() / "lethe-kafka-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a folder like ", folder));
  }
  return std::unique_ptr<KafkaBroker>(new KafkaBroker(std::move(options), folder, id, cluster_size));
}

absl::StatusOr<std::unique_ptr<KafkaBroker>> KafkaBroker::Start(KafkaBrokerOptions options) {
  auto cluster = StartCluster({std::move(options)});
  if (!cluster.ok()) return cluster.status();
  return std::move(cluster->front());
}

absl::StatusOr<std::vector<std::unique_ptr<KafkaBroker>>> KafkaBroker::StartCluster(
    std::vector<KafkaBrokerOptions> nodes) {
  std::vector<std::unique_ptr<KafkaBroker>> brokers;
  const int size = static_cast<int>(nodes.size());
  for (int i = 0; i < size; ++i) {
    auto broker = Make(std::move(nodes[static_cast<size_t>(i)]), i + 1, size);
    if (!broker.ok()) return broker.status();
    brokers.push_back(*std::move(broker));
  }
  absl::Status status;
  const auto each = [&](const std::function<absl::Status(KafkaBroker&)>& step) {
    for (auto broker = brokers.begin(); status.ok() && broker != brokers.end(); ++broker)
      status = step(**broker);
  };
  for (int tries = 0; tries < kTries; ++tries) {
    std::vector<std::string> voters;
    for (const auto& broker : brokers) {
      broker->process_.reset();
      broker->ChoosePorts();
      voters.push_back(absl::StrCat(broker->id_, "@127.0.0.1:", broker->ports_.at("CONTROLLER")));
    }
    status = absl::OkStatus();
    each([&](KafkaBroker& broker) { return broker.Format(absl::StrJoin(voters, ",")); });
    each([](KafkaBroker& broker) { return broker.Launch(); });
    each([](KafkaBroker& broker) { return broker.AwaitReady(); });
    if (status.ok()) return brokers;
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

void KafkaBroker::ChoosePorts() {
  std::vector<std::string> names = {"BROKER", "CONTROLLER"};
  for (const auto& [name, advertised] : options_.proxied) names.push_back(name);
  std::set<int> taken;
  for (const std::string& name : names) {
    int port = FreePort();
    while (!taken.insert(port).second) port = FreePort();
    ports_[name] = port;
  }
  bootstrap_ = absl::StrCat("127.0.0.1:", ports_.at("BROKER"));
}

absl::Status KafkaBroker::Format(const std::string& voters) {
  const std::map<std::string, std::string> properties =
      Properties(id_, cluster_size_, ports_, options_, voters, folder_);
  const std::string file = folder_ + "/server.properties";
  {
    std::ofstream out(file);
    for (const auto& [name, value] : properties) out << name << '=' << value << '\n';
    if (!out.flush()) return absl::InternalError(absl::StrCat("cannot write ", file));
  }
  ProcessOptions format;
  format.args = Java(options_.heap, folder_, "kafka.tools.StorageTool");
  for (const char* arg : {"format", "--ignore-formatted", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c"}) {
    format.args.emplace_back(arg);
  }
  format.args.push_back(file);
  format.args.insert(format.args.end(), options_.format_args.begin(), options_.format_args.end());
  const absl::StatusOr<Finished> formatted = RunToEnd(format, kStartTimeout);
  if (!formatted.ok()) return formatted.status();
  if (formatted->exit_code != 0) {
    return absl::InternalError(absl::StrCat("kafka.tools.StorageTool failed with ", formatted->exit_code,
                                            " (jars in ", Jars(), "):\n", formatted->out, formatted->err));
  }
  return absl::OkStatus();
}

absl::Status KafkaBroker::Launch() {
  // What an earlier process said must not be taken for this one's.
  std::error_code ignored;
  std::filesystem::rename(LogFile(), LogFile() + ".before", ignored);
  ProcessOptions server;
  server.args = Java(options_.heap, folder_, "kafka.Kafka");
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
  const absl::Time deadline = SteadyNow() + kStartTimeout;
  while (SteadyNow() < deadline) {
    if (!process_->Running()) {
      const bool port_taken = absl::StrContains(ReadFile(LogFile()), "Address already in use");
      return absl::Status(port_taken ? absl::StatusCode::kAborted : absl::StatusCode::kInternal,
                          absl::StrCat("the Kafka broker ended while starting:\n", LogTail()));
    }
    // One that has not been let into the cluster yet does not count itself.
    const absl::StatusOr<int> brokers = (*client)->BrokerCount(absl::Milliseconds(200));
    if (brokers.ok() && *brokers >= cluster_size_) return absl::OkStatus();
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
