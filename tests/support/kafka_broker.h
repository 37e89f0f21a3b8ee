// A real Kafka broker for tests.
#ifndef LETHE_TESTS_SUPPORT_KAFKA_BROKER_H_
#define LETHE_TESTS_SUPPORT_KAFKA_BROKER_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/support/process.h"

namespace lethe::test {

inline constexpr int kInternalPartitions = 4;  // of the topic of offsets, and of that of transactions

struct KafkaBrokerOptions {
  std::vector<std::pair<std::string, std::string>> properties;  // in addition to our own, or instead of them
  std::string heap = "384m";
  // Has the last word on the properties, each time before the broker is formatted: for listeners of its own,
  // say, whose ports must be chosen again when one was taken.
  std::function<void(std::map<std::string, std::string>& properties)> adapt;
  std::vector<std::string> format_args;  // for the tool that formats the storage: --add-scram ...
  // More listeners, each with the port that is told to its clients: that of a proxy, which leads to
  // port(name).
  std::vector<std::pair<std::string, int>> proxied;
};

// One KRaft node, broker and controller in one, on 127.0.0.1, with its data in a temporary folder.
// Invariant: its process ends with the object, and with the thread that started it. Its log stays in the
// folder until the object is destroyed, and its end is part of every error. Thread-compatible.
class KafkaBroker {
 public:
  // Returns when the broker answers metadata requests.
  static absl::StatusOr<std::unique_ptr<KafkaBroker>> Start(KafkaBrokerOptions options = {});
  // A cluster of one node for each of the options. With three, topics have three replicas, of which two must
  // be in sync. Returns when all of them are in.
  static absl::StatusOr<std::vector<std::unique_ptr<KafkaBroker>>> StartCluster(
      std::vector<KafkaBrokerOptions> nodes);
  ~KafkaBroker();
  KafkaBroker(const KafkaBroker&) = delete;
  KafkaBroker& operator=(const KafkaBroker&) = delete;

  const std::string& bootstrap() const { return bootstrap_; }
  // As in the metadata.
  int id() const { return id_; }
  // Where a proxied listener is to be reached.
  int port(const std::string& listener) const { return ports_.at(listener); }
  pid_t pid() const;

  // Return when the process is gone. Stop() asks first, and insists after half a minute.
  absl::Status Stop();
  absl::Status Kill();

  // Starts it again on the same ports and data; stops it before, if it runs.
  absl::Status Restart();
  // The same in two steps, where something is to happen meanwhile: starts the process, and waits until it
  // answers and says that every node of its cluster is in. Aborted if it has found a port taken.
  absl::Status Launch();
  absl::Status AwaitReady();

  // Of the present process; that of the one before it is beside it, as .before.
  std::string LogFile() const;
  // The end of its log, for people.
  std::string LogTail() const;

 private:
  KafkaBroker(KafkaBrokerOptions options, std::string folder, int id, int cluster_size);
  static absl::StatusOr<std::unique_ptr<KafkaBroker>> Make(KafkaBrokerOptions options, int id,
                                                           int cluster_size);
  // Ports that were free a moment ago.
  void ChoosePorts();
  absl::Status Format(const std::string& voters);

  const KafkaBrokerOptions options_;
  const std::string folder_;
  const int id_;
  const int cluster_size_;
  std::string bootstrap_;
  std::map<std::string, int> ports_;  // by listener
  std::unique_ptr<Process> process_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_KAFKA_BROKER_H_
