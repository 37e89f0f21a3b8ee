// What a service manager hears, on a socket of the test's own.
#include "src/cli/service/service_manager.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/cli/commands/run_command.h"

namespace lethe {
namespace {

// The manager's end; `name` as in NOTIFY_SOCKET.
class Socket {
 public:
  explicit Socket(const std::string& name) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), length), 0) << std::strerror(errno);
  }
  ~Socket() { close(fd_); }

  // The next datagram; empty if none comes.
  std::string Next(int timeout_ms = 10'000) {
    pollfd readable = {fd_, POLLIN, 0};
    if (poll(&readable, 1, timeout_ms) != 1) return "";
    char text[512];
    const ssize_t size = recv(fd_, text, sizeof text, 0);
    return std::string(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  }

 private:
  const int fd_;
};

class ServiceManagerTest : public testing::Test {
 protected:
  ~ServiceManagerTest() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }
  const std::string abstract_ = absl::StrCat("@lethe-service-manager-test-", getpid());
};

TEST_F(ServiceManagerTest, WithoutASocketNothingIsSent) {
  for (const char* name : {"", "/", "no/socket", "/nowhere/there", "@lethe-nobody-listens"}) {
    setenv("NOTIFY_SOCKET", name, 1);
    const ServiceManager manager;
    EXPECT_FALSE(manager.listens()) << name;
    manager.Say("READY=1");
    const ServiceReports reports(manager, [] { return ServiceState(); });
  }
}

TEST_F(ServiceManagerTest, SaysReadyStatusAndStopping) {
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("lethe-notify-", getpid())).string();
  for (const std::string& name : {abstract_, path}) {
    Socket socket(name);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    const ServiceManager manager;
    ASSERT_TRUE(manager.listens()) << name;
    EXPECT_EQ(manager.watchdog(), absl::InfiniteDuration());
    std::atomic<int> looks = 0;
    {
      const ServiceReports reports(manager, [&] {
        return ServiceState{++looks < 2 ? "waiting\nfor a broker" : "judging", true};
      });
      EXPECT_EQ(socket.Next(), "READY=1");
      EXPECT_EQ(socket.Next(), "STATUS=waiting for a broker");
      EXPECT_EQ(socket.Next(), "STATUS=judging");
    }
    EXPECT_EQ(socket.Next(), "STOPPING=1");
    EXPECT_EQ(socket.Next(0), "");
    std::filesystem::remove(path);
  }
}

TEST_F(ServiceManagerTest, TheWatchdogHearsOfLifeAndOfNothingElse) {
  Socket socket(abstract_);
  setenv("NOTIFY_SOCKET", abstract_.c_str(), 1);
  setenv("WATCHDOG_USEC", "200000", 1);
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  const ServiceManager manager;
  EXPECT_EQ(manager.watchdog(), absl::Milliseconds(200));
  std::atomic<bool> alive = true;
  std::atomic<int> dead_looks = 0;
  const ServiceReports reports(manager, [&] {
    if (!alive) ++dead_looks;
    dead_looks.notify_one();
    return ServiceState{"", alive};
  });
  const auto await_looks = [&](int looks) {
    for (int now = dead_looks; now < looks; now = dead_looks) dead_looks.wait(now);
  };
  EXPECT_EQ(socket.Next(), "READY=1");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(socket.Next(), "WATCHDOG=1");
  alive = false;
  await_looks(1);
  while (!socket.Next(0).empty()) {
  }
  await_looks(dead_looks + 2);
  EXPECT_EQ(socket.Next(0), "");
}

TEST_F(ServiceManagerTest, AnotherProcesssWatchdogIsNotOurs) {
  Socket socket(abstract_);
  setenv("NOTIFY_SOCKET", abstract_.c_str(), 1);
  setenv("WATCHDOG_USEC", "200000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceManager().watchdog(), absl::InfiniteDuration());
  setenv("WATCHDOG_PID", "", 1);
  for (const char* limit : {"", "0", "-5", "soon"}) {
    setenv("WATCHDOG_USEC", limit, 1);
    EXPECT_EQ(ServiceManager().watchdog(), absl::InfiniteDuration()) << limit;
  }
}

// What a container's liveness probe asks, which has no watchdog.
TEST(Health, IsThatOfTheMostSilentLane) {
  EXPECT_EQ(Health(absl::ZeroDuration()).status, 200);
  EXPECT_EQ(Health(absl::Seconds(29)).body, "ok\n");
  EXPECT_EQ(Health(absl::Seconds(31)).status, 503);
  EXPECT_EQ(Health(absl::Seconds(31)).body, "a lane hangs: no sign of life for 31s\n");
}

}  // namespace
}  // namespace lethe
