// The daemon without a broker: what it says before it asks for one.
#include "src/pipeline/daemon/daemon.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <memory>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/connector.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

TEST(DaemonTest, EveryEngineOfTheLibraryIsTaken) {
  DaemonOptions options;
  options.process.brokers = "127.0.0.1:1";
  options.input = "events";
  options.output = "unique";
  options.process.group = "daemon-test";
  for (const Engine engine : {Engine::kPublished, Engine::kExact, Engine::kCompact}) {
    options.stage.engine = engine;
    EXPECT_OK(Daemon::Create(std::make_unique<kafka::KafkaConnector>(), options)) << EngineName(engine);
  }
}

// The status of a daemon whose topics are refused, unless another process has its name before.
absl::Status RunAs(const std::string& instance) {
  DaemonOptions options;
  options.process.brokers = "127.0.0.1:1";
  options.input = options.output = "events";
  options.process.group = "daemon-test";
  options.process.instance = instance;
  auto daemon = Daemon::Create(std::make_unique<kafka::KafkaConnector>(), options);
  return daemon.ok() ? (*daemon)->Run() : daemon.status();
}

// A process that holds the lock of an instance until it is destroyed.
class Holder {
 public:
  Holder(const std::string& instance, bool listens, uid_t user) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    child_ = fork();
    if (child_ == 0) {
      const std::string name = absl::StrCat("lethe/127.0.0.1:1/daemon-test/", instance);
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      name.copy(address.sun_path + 1, name.size());
      const int lock = socket(AF_UNIX, SOCK_STREAM, 0);
      const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
      const bool is_held = setuid(user) == 0 &&
                           bind(lock, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                           (!listens || listen(lock, 1) == 0);
      if (write(ready[1], is_held ? "y" : "n", 1) == 1) pause();
      _exit(0);
    }
    char answer = 0;
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    close(ready[0]);
    close(ready[1]);
  }
  ~Holder() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  pid_t child_ = 0;
};

TEST(DaemonTest, OneProcessOfAUserHasAnInstancesName) {
  const std::string instance = absl::StrCat("held-", getpid());
  const Holder holder(instance, /*listens=*/true, geteuid());
  EXPECT_THAT(RunAs(instance), StatusIs(absl::StatusCode::kAlreadyExists));
}

// Any user can take any name: it costs the warning of a second process, and not the start of the first.
TEST(DaemonTest, AnotherUserCannotTakeAnInstancesName) {
  const std::string instance = absl::StrCat("taken-", getpid());
  {
    const Holder holder(instance, /*listens=*/false, geteuid());
    EXPECT_THAT(RunAs(instance), StatusIs(absl::StatusCode::kInvalidArgument)) << "not lethe, which listens";
  }
  if (geteuid() == 0) {  // only root can be another user
    const Holder holder(instance, /*listens=*/true, 65534);
    EXPECT_THAT(RunAs(instance), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace lethe
