// The two ends of the demo: the sender with retries, and the reader of the output.
#ifndef LETHE_SRC_CLI_DEMO_DEMO_TRAFFIC_H_
#define LETHE_SRC_CLI_DEMO_DEMO_TRAFFIC_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/client/client.h"
#include "lethe/secret_hash.h"
#include "src/cli/demo/demo_events.h"

namespace lethe {

struct DemoTopics {
  std::string input;
  std::string output;
  std::string counters;  // empty: none
  std::string group;
  int partitions = 4;
};

// Sends events, keyed by their id, so that all copies of one are in the same partition. Not thread-safe.
class DemoSender {
 public:
  static absl::StatusOr<DemoSender> Connect(const std::string& brokers, const std::string& topic);
  // With its timestamp in milliseconds since 1970; 0: the time of sending.
  absl::Status Send(const DemoEvent& event, int64_t time_ms = 0);
  absl::Status Flush();

 private:
  kafka::ClientPtr producer_;
  kafka::TopicPtr topic_;
};

// Reads the output and the counters (read_committed) and counts what it reads. Not thread-safe.
class DemoReader {
 public:
  static absl::StatusOr<DemoReader> Connect(const std::string& brokers, const DemoTopics& topics);

  // Reads the available records, waiting at most 20 ms. Not OK if reading failed.
  absl::Status Poll();
  // How much of output and counters is there and not read yet.
  absl::StatusOr<int64_t> Behind();
  // Of the group, over all partitions of the input; 0 where nothing is committed.
  absl::StatusOr<int64_t> CommittedOffsets();

  const SecretHashMap<int64_t>& copies() const { return copies_; }  // per id
  int64_t records() const { return records_; }
  const std::map<std::string, int64_t>& counters() const { return counters_; }

 private:
  DemoReader() = default;

  DemoTopics topics_;
  kafka::ClientPtr consumer_;
  // A client of the daemon's group that never joins it, to ask for its offsets; and for the ends of topics,
  // since the reading client's questions would wait behind its fetches.
  kafka::ClientPtr group_;
  std::map<std::pair<std::string, int32_t>, int64_t> positions_;
  SecretHashMap<int64_t> copies_;
  int64_t records_ = 0;
  std::map<std::string, int64_t> counters_;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_DEMO_DEMO_TRAFFIC_H_
