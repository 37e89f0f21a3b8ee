// What the daemon is told.
#ifndef LETHE_CONNECTORS_KAFKA_OPTIONS_H_
#define LETHE_CONNECTORS_KAFKA_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lethe/options.h"
#include "src/record/record_reader.h"

namespace lethe::kafka {

enum class Start { kEarliest, kLatest };
enum class Delivery { kExactlyOnce, kAtLeastOnce };

// What is done where the log does not reach back to what the filter must know.
enum class OnShortHistory { kContinue, kFail };
// What is done where records were deleted before they were read.
enum class OnUnreadDeleted { kFail, kContinue };

// How the group moves partitions: all of them stop when one moves, or only that one does.
enum class Assignment { kEager, kCooperative };

// Where snapshots go: to a folder, to a topic, or (both empty) nowhere.
struct SnapshotOptions {
  std::string folder;
  std::string topic;
  absl::Duration every = absl::Minutes(5);
};

// A librdkafka property, passed through.
using Property = std::pair<std::string, std::string>;

struct DaemonOptions {
  std::string brokers;  // bootstrap.servers
  std::string input;
  std::string output;
  std::string group;
  std::string instance;  // stable, and unique in the group

  Start start = Start::kEarliest;  // for a group that has committed nothing
  Delivery delivery = Delivery::kExactlyOnce;
  int lanes = 1;
  Assignment assignment = Assignment::kEager;
  bool static_membership = false;  // a restart within session.timeout.ms moves no partition
  absl::Duration commit_interval = absl::Milliseconds(100);
  bool exit_at_end = false;

  RecordSpec record;
  std::string counter_output;  // empty: no counters
  StageOptions stage;
  SnapshotOptions snapshots;
  OnShortHistory on_short_history = OnShortHistory::kContinue;
  OnUnreadDeleted on_unread_deleted = OnUnreadDeleted::kFail;

  std::vector<Property> properties;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OPTIONS_H_
