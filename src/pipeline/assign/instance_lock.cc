#include "src/pipeline/assign/instance_lock.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "src/pipeline/clock/clock.h"
#include "src/text/fixed_hash.h"

namespace lethe {
namespace {

// Whether a process of the same user holds the lock of this name.
bool IsHeldByThisUser(const sockaddr_un& address, socklen_t length) {
  const StopFlag never;
  // The holder listens within microseconds; one that never does is not lethe.
  for (int tries = 0; tries < 100; ++tries) {
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0) return true;
    ucred holder = {};
    socklen_t size = sizeof(holder);
    const bool is_connected = connect(probe, reinterpret_cast<const sockaddr*>(&address), length) == 0;
    const bool is_ours = is_connected && getsockopt(probe, SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0 &&
                         holder.uid == geteuid();
    close(probe);
    if (is_connected) return is_ours;
    SystemClock().WaitFor(never, absl::Milliseconds(1));
  }
  return false;
}

}  // namespace

InstanceLock::~InstanceLock() {
  if (socket_ >= 0) close(socket_);
}

absl::Status InstanceLock::Take(const ProcessOptions& process) {
  if (process.brokers.empty()) return absl::OkStatus();
  std::vector<std::string> brokers =
      absl::StrSplit(process.brokers, absl::ByAnyChar(", "), absl::SkipEmpty());
  std::sort(brokers.begin(), brokers.end());  // in whatever order they are named, it is one cluster
  const std::string name =
      absl::StrCat("lethe/", absl::StrJoin(brokers, ","), "/", process.group, "/", process.instance);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // Longer names are replaced by their hash.
  const std::string fitted = name.size() < sizeof(address.sun_path) - 1
                                 ? name
                                 : absl::StrCat("lethe/", absl::Hex(FixedHash(name).a, absl::kZeroPad16),
                                                absl::Hex(FixedHash(name).b, absl::kZeroPad16));
  std::memcpy(address.sun_path + 1, fitted.data(), fitted.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + fitted.size());
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return absl::ErrnoToStatus(errno, "socket");
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    // So that others can see the owner.
    return listen(socket_, SOMAXCONN) == 0 ? absl::OkStatus() : absl::ErrnoToStatus(errno, "listen");
  }
  if (errno != EADDRINUSE) return absl::ErrnoToStatus(errno, "bind");
  if (!IsHeldByThisUser(address, length)) {
    // Any user of the host can take any name, and may not keep lethe from starting with it.
    spdlog::warn(
        "another user of this host holds the lock of group {}, instance {}; starting without it. If that is "
        "lethe, give each its own --instance: two processes with one instance fence each other",
        process.group, process.instance);
    close(std::exchange(socket_, -1));
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat("another process of group ", process.group, " runs as instance ", process.instance,
                   " on this host: two of one name would fence each other; give each its own --instance"));
}

void InstanceLock::CloseQuestions() const {
  for (int asked = 0; socket_ >= 0 && (asked = accept(socket_, nullptr, nullptr)) >= 0;) close(asked);
}

}  // namespace lethe
