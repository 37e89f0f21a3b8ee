// Messages to the service manager that has started the daemon (sd_notify(3), systemd's protocol).
#ifndef LETHE_SRC_CLI_SERVICE_SERVICE_MANAGER_H_
#define LETHE_SRC_CLI_SERVICE_SERVICE_MANAGER_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/cli/service/periodic.h"

namespace lethe {

// The protocol is one datagram of text to a socket that the environment names: not worth a library. Without
// the socket nothing is said. A manager that does not read is not waited for. Thread-safe.
class ServiceManager {
 public:
  ServiceManager();  // from NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  bool listens() const { return socket_ >= 0; }
  // How long it waits for a sign of life; infinite if it does not.
  absl::Duration watchdog() const { return watchdog_; }

  // Assignments, each on a line: READY=1.
  void Say(absl::string_view assignments) const;

 private:
  int socket_ = -1;
  absl::Duration watchdog_ = absl::InfiniteDuration();
};

// How a service is: in words, and whether it lives.
struct ServiceState {
  std::string status;
  bool alive = true;
};

// Says READY=1 when it begins and STOPPING=1 at its end, from a thread of its own the status when it changes,
// and, while the service lives, WATCHDOG=1 in time. Ready means that it has begun to work: how far it is, the
// status says, since to wait for a broker or to rebuild a filter may take longer than a manager waits for a
// start.
class ServiceReports {
 public:
  ServiceReports(const ServiceManager& manager, std::function<ServiceState()> look);
  ~ServiceReports();

 private:
  void SayState();

  const ServiceManager& manager_;
  const std::function<ServiceState()> look_;
  std::string said_;  // the thread's
  std::optional<Periodic> saying_;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_SERVICE_SERVICE_MANAGER_H_
