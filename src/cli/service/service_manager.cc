#include "src/cli/service/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace lethe {
namespace {

constexpr absl::Duration kNotifyEvery = absl::Seconds(1);

std::string Variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody calls setenv
  return value == nullptr ? "" : value;
}

absl::Duration WatchdogOf(absl::string_view pid, absl::string_view microseconds) {
  int64_t limit = 0;
  if (!absl::SimpleAtoi(microseconds, &limit) || limit <= 0) return absl::InfiniteDuration();
  // The variables are inherited: they may be meant for another process.
  if (!pid.empty() && pid != absl::StrCat(getpid())) return absl::InfiniteDuration();
  return absl::Microseconds(limit);
}

}  // namespace

ServiceManager::ServiceManager()
    : watchdog_(WatchdogOf(Variable("WATCHDOG_PID"), Variable("WATCHDOG_USEC"))) {
  const std::string name = Variable("NOTIFY_SOCKET");
  sockaddr_un address = {};
  if (name.size() < 2 || name.size() > sizeof address.sun_path || (name[0] != '/' && name[0] != '@')) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';  // of the abstract space
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (socket_ >= 0 && connect(socket_, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    close(socket_);
    socket_ = -1;
  }
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) close(socket_);
}

void ServiceManager::Say(absl::string_view assignments) const {
  if (socket_ >= 0) send(socket_, assignments.data(), assignments.size(), MSG_NOSIGNAL);
}

ServiceReports::ServiceReports(const ServiceManager& manager, std::function<ServiceState()> look)
    : manager_(manager), look_(std::move(look)) {
  if (!manager_.listens()) return;
  manager_.Say("READY=1");
  saying_.emplace(std::min(kNotifyEvery, manager_.watchdog() / 4), [this] { SayState(); });
}

ServiceReports::~ServiceReports() {
  if (!saying_) return;
  saying_.reset();
  manager_.Say("STOPPING=1");
}

void ServiceReports::SayState() {
  const ServiceState state = look_();
  // A line break would begin another assignment.
  const std::string status = absl::StrReplaceAll(state.status, {{"\n", " "}});
  if (status != said_) manager_.Say(absl::StrCat("STATUS=", status));
  said_ = status;
  if (state.alive && manager_.watchdog() != absl::InfiniteDuration()) manager_.Say("WATCHDOG=1");
}

}  // namespace lethe
