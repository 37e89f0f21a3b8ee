// What every demo stands on: a broker, daemons of this program, and the signals that end it.
#ifndef LETHE_SRC_CLI_DEMO_DEMO_SITE_H_
#define LETHE_SRC_CLI_DEMO_DEMO_SITE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/broker/embedded_broker.h"
#include "src/cli/demo/child_process.h"

namespace lethe {

inline constexpr uint16_t kDemoPort = 9464;

// `wanted` of 127.0.0.1 if it is free, or any that is (always for 0).
absl::StatusOr<int> FreePort(uint16_t wanted);

// Its folder, with the daemons' logs, goes with it. While it lives SIGINT and SIGTERM are blocked: construct
// it before any client, whose threads inherit that. Not thread-safe.
class DemoSite {
 public:
  // On the cluster `brokers`, or on a broker inside the program if that is empty.
  static absl::StatusOr<std::unique_ptr<DemoSite>> Create(const std::string& brokers);
  ~DemoSite();
  DemoSite(const DemoSite&) = delete;
  DemoSite& operator=(const DemoSite&) = delete;

  bool is_embedded() const { return broker_ != nullptr; }
  const std::string& brokers() const { return brokers_; }

  // On a topic that exists already it is an error.
  absl::Status CreateTopics(const std::vector<std::string>& names, int partitions);

  // `lethe run` with these flags, and those for the broker. `name` tells its log from another daemon's.
  absl::StatusOr<std::unique_ptr<ChildProcess>> StartDaemon(const std::string& name,
                                                            const std::vector<std::string>& flags);

  // OK while the daemon runs and no signal has asked to end the demo.
  absl::Status Check(const std::string& name, ChildProcess& daemon);
  std::string LastLogLine(const std::string& name) const;

  // Until Enter is pressed or a signal comes.
  void AwaitUser() const;

 private:
  DemoSite();

  int signal_fd_ = -1;
  std::string folder_;
  std::string brokers_;
  std::unique_ptr<kafka::EmbeddedBroker> broker_;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_DEMO_DEMO_SITE_H_
