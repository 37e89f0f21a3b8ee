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

struct KafkaBrokerOptions {
  std::vector<std::pair<std::string, std::string>> properties;  // in addition to our own, or instead of them
  std::string heap = "384m";
  // Has the last word on the properties, each time before the broker is formatted: for listeners of its own,
  // say, whose ports must be chosen anew when one was taken.
  std::function<void(std::map<std::string, std::string>& properties)> adapt;
  std::vector<std::string> format_args;  // for the tool that formats the storage: --add-scram ...
};

// One KRaft node, broker and controller in one, on 127.0.0.1, with its data in a temporary folder.
// Invariant: its process ends with the object, and with the thread that started it. Its log stays in the
// folder until the object is destroyed, and its end is part of every error. Thread-compatible.
class KafkaBroker {
 public:
  // Returns when the broker answers metadata requests.
  static absl::StatusOr<std::unique_ptr<KafkaBroker>> Start(KafkaBrokerOptions options = {});
  ~KafkaBroker();
  KafkaBroker(const KafkaBroker&) = delete;
  KafkaBroker& operator=(const KafkaBroker&) = delete;

  const std::string& bootstrap() const { return bootstrap_; }
  pid_t pid() const;

  // Return when the process is gone. Stop() asks first, and insists after half a minute.
  absl::Status Stop();
  absl::Status Kill();

  // Starts it again on the same ports and data; stops it before, if it runs.
  absl::Status Restart();

  // The end of its log, for people.
  std::string LogTail() const;

 private:
  KafkaBroker(KafkaBrokerOptions options, std::string folder);
  absl::Status Format();
  absl::Status Launch();      // starts the process
  absl::Status AwaitReady();  // until it answers; Aborted if it has found a port taken
  std::string LogFile() const;

  const KafkaBrokerOptions options_;
  const std::string folder_;
  std::string bootstrap_;
  std::unique_ptr<Process> process_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_KAFKA_BROKER_H_
