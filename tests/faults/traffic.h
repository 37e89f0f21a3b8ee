// A steady stream of events from a client that retries.
#ifndef LETHE_TESTS_FAULTS_TRAFFIC_H_
#define LETHE_TESTS_FAULTS_TRAFFIC_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/faults/judge.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {

struct TrafficOptions {
  std::string bootstrap;  // best through a proxy that loses acknowledgements
  std::string topic;
  int partitions = 1;
  uint64_t seed = 0;
  int per_second = 1000;
  // How the events' own times go on, and how wild some of them are.
  absl::Duration step = absl::Milliseconds(1);
  int wild_per_mille = 0;
  int oversized_per_mille = 0;  // of the events; half of their copies are small
  // Most copies of an event are among so many that follow it; some come up to six times as late.
  int copies_within = 1000;
  int most_copies = 3;
  // Each record goes to any partition, to the last ones rarely; else an id has its partition.
  bool scattered = false;
  // The time of the first event is so long ago, so that none is in the future.
  absl::Duration begins_ago = absl::Hours(1);
};

// A producer without idempotence: when an acknowledgement is lost it writes a batch again. Besides, the
// application itself sends a tenth of the events again, and some events have no id. An id belongs to a
// partition as long as there are as many. Thread-safe but for Stop().
class Traffic {
 public:
  static absl::StatusOr<std::unique_ptr<Traffic>> Start(TrafficOptions options);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // From now on new ids go to so many.
  void SetPartitions(int partitions) { partitions_ = partitions; }

  // From now on records are dated so, or right again: a number in a schedule's fault.
  void SetBadClock(std::optional<uint64_t> clock) { bad_clock_ = clock ? static_cast<int>(*clock % 4) : -1; }

  // Events as they will be sent soon, but as sendings of their own: for a transaction that is aborted.
  std::vector<Record> Upcoming(int count);

  // Sends no more, and returns when every record is in the log, or is known not to be.
  absl::Status Stop();

  int64_t sent() const { return sent_; }
  // Records of which the client has never learned whether they are in the log.
  int64_t given_up() const { return given_up_; }

 private:
  struct Copy {
    int64_t due;
    FaultyEvent event;
    int32_t partition;
    bool operator>(const Copy& other) const { return due > other.due; }
  };

  explicit Traffic(TrafficOptions options);
  void Run();
  void SendNext();
  FaultyEvent EventNumber(int64_t number) const;
  int32_t PartitionOf(const std::string& id) const;
  int32_t AnyPartition();
  int64_t TimeAt(int64_t position);
  int64_t RightTimeAt(int64_t position);
  void Send(const FaultyEvent& event, int32_t partition, int64_t at_ms);
  static void OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque);

  const TrafficOptions options_;
  const int64_t begin_ms_;
  Handle producer_;
  std::atomic<int> partitions_;
  std::atomic<int> bad_clock_{-1};
  std::atomic<int64_t> sent_{0};
  std::atomic<int64_t> given_up_{0};
  std::atomic<int64_t> next_number_{0};  // of events that are no copies
  std::atomic<int64_t> next_aborted_{-2};
  std::atomic<bool> stopping_{false};
  // Below: the thread's own.
  std::mt19937_64 random_;
  std::priority_queue<Copy, std::vector<Copy>, std::greater<>> copies_;
  std::thread thread_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_FAULTS_TRAFFIC_H_
