#include "src/cli/demo/demo_site.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/topics/topics.h"
#include "src/cli/demo/demo_folder.h"

namespace lethe {

absl::StatusOr<int> FreePort(uint16_t wanted) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(wanted);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool ok = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(fd);
  if (ok) return ntohs(address.sin_port);
  return wanted == 0 ? absl::StatusOr<int>(absl::InternalError("no free port on 127.0.0.1")) : FreePort(0);
}

DemoSite::DemoSite() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC);
}

DemoSite::~DemoSite() {
  close(signal_fd_);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::unique_ptr<DemoSite>> DemoSite::Create(const std::string& brokers) {
  std::unique_ptr<DemoSite> site(new DemoSite());
  const absl::StatusOr<std::string> folder = MakeDemoFolder();
  if (!folder.ok()) return folder.status();
  site->folder_ = *folder;
  site->brokers_ = brokers;
  if (brokers.empty()) {
    auto broker = kafka::EmbeddedBroker::Start();
    if (!broker.ok()) return broker.status();
    site->broker_ = *std::move(broker);
    site->brokers_ = site->broker_->bootstrap_servers();
  }
  return site;
}

absl::Status DemoSite::CreateTopics(const std::vector<std::string>& names, int partitions) {
  kafka::ClientPtr client;
  if (!is_embedded()) {
    auto producer = kafka::ClientConfig().Set("bootstrap.servers", brokers_).MakeProducer();
    if (!producer.ok()) return producer.status();
    client = *std::move(producer);
  }
  for (const std::string& name : names) {
    absl::Status made = is_embedded()
                            ? broker_->CreateTopic(name, partitions)
                            : kafka::CreateTopic(client.get(), {.name = name, .partitions = partitions},
                                                 /*validate_only=*/false);
    if (!made.ok()) return made;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ChildProcess>> DemoSite::StartDaemon(const std::string& name,
                                                                    const std::vector<std::string>& flags) {
  std::vector<std::string> args = {"run", "--brokers", brokers_, "--delivery",
                                   is_embedded() ? "at_least_once" : "exactly_once", "--commit-interval",
                                   is_embedded() ? "20ms" : "100ms",
                                   // After a SIGKILL the group waits this long before it gives the
                                   // partitions out again.
                                   "--kafka", "session.timeout.ms=6000"};
  args.insert(args.end(), flags.begin(), flags.end());
  return ChildProcess::Start(args, absl::StrCat(folder_, "/", name, ".log"));
}

absl::Status DemoSite::Check(const std::string& name, ChildProcess& daemon) {
  pollfd wait = {signal_fd_, POLLIN, 0};
  if (poll(&wait, 1, 0) > 0) return absl::CancelledError("interrupted");
  if (daemon.Running()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the daemon has ended: ", LastLogLine(name)));
}

std::string DemoSite::LastLogLine(const std::string& name) const {
  std::ifstream log(absl::StrCat(folder_, "/", name, ".log"));
  std::string last = "its log is empty";
  for (std::string line; std::getline(log, line);) last = line;
  return last;
}

void DemoSite::AwaitUser() const {
  std::fflush(stdout);
  pollfd waits[] = {{signal_fd_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  // Without a terminal there is no key to press, and a closed stdin does not count as one.
  poll(waits, isatty(STDIN_FILENO) ? 2 : 1, -1);
}

}  // namespace lethe
