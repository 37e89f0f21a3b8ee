// The brokers that all schedules of a kind share, and the wires to them.
#ifndef LETHE_TESTS_FAULTS_SITE_H_
#define LETHE_TESTS_FAULTS_SITE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/faults/schedule.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/tcp_proxy.h"

namespace lethe::test {

// One broker or three; the producer of the input and each lethe have a wire of their own to all of them,
// which can be cut while the others hold. Thread-compatible.
class Site {
 public:
  static absl::StatusOr<std::unique_ptr<Site>> Start(int brokers);

  // Without a wire: for whoever prepares and judges.
  KafkaClient& client() { return *client_; }
  const std::string& bootstrap() const { return bootstrap_; }

  struct Wire {
    std::unique_ptr<TcpProxy> proxy;
    std::string bootstrap;
  };
  Wire& producer_wire() { return wires_[0]; }
  Wire& wire(int instance) { return wires_[static_cast<size_t>(instance) + 1]; }

  // The broker that has this role for a topic's partition, a group or a transactional id.
  absl::StatusOr<int> Leader(const std::string& topic, int partition);
  absl::StatusOr<int> GroupCoordinator(const std::string& group);
  absl::StatusOr<int> TransactionCoordinator(const std::string& transactional_id);

  // 0: none is. One at a time is: a second would be a cluster's end, and prove nothing.
  int down() const { return down_; }
  absl::Status TakeDown(int broker, bool kill);
  // Starts the one that is down, and does not wait for it. One of several that was killed starts when the
  // others have taken over what it led: Kafka 3.9.1 still leads in its first seconds what it led in its life
  // before, and sends the markers of a transaction whose end it alone has in its log. The next coordinator
  // has not, and aborts: half of the transaction is committed, whatever the client does.
  absl::Status Relaunch();
  // Returns when all brokers are in.
  absl::Status Settle();
  // The same, with all wires whole again.
  absl::Status Heal();

  // Copies the brokers' logs there.
  void KeepLogs(const std::string& folder) const;

 private:
  Site() = default;
  KafkaBroker& broker(int id) { return *brokers_[static_cast<size_t>(id - 1)]; }

  std::vector<Wire> wires_;
  std::vector<std::unique_ptr<KafkaBroker>> brokers_;
  std::string bootstrap_;
  std::unique_ptr<KafkaClient> client_;
  int down_ = 0;
  bool killed_ = false;  // it was, and not asked to stop
  bool settled_ = true;  // nobody was launched since all were in
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_FAULTS_SITE_H_
