// Samples of the input's log.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_LOG_SAMPLE_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_LOG_SAMPLE_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/cluster.h"
#include "src/record/registry_frame.h"

namespace lethe::kafka {

struct LogSample {
  static constexpr size_t kMostSchemas = 16;

  // The newest records of each partition.
  int64_t records = 0;
  int64_t bytes = 0;          // of keys and values
  int64_t largest_bytes = 0;  // of one record's
  int64_t without_key = 0;
  int64_t without_id = 0;               // missing
  int64_t malformed = 0;                // the JSON that it would be in
  int64_t copies_elsewhere = 0;         // records whose id was also seen in another partition
  int64_t copies_with_another_key = 0;  // in the same partition, but with a key that might have led elsewhere
  RegistryFrames frames;
  std::set<SchemaKey> schemas;  // that keys and values name, at most kMostSchemas
  std::string example;          // where one of those is: orders-3 offset 17 and orders-5 offset 4
  absl::Time newest = absl::InfinitePast();

  struct Partition {
    int32_t partition = 0;
    int64_t start = 0;                               // of the log
    int64_t end = 0;                                 // the last stable offset
    absl::Time first_record = absl::InfinitePast();  // its time; InfinitePast(): not known
    double rate = 0;  // records a second, over the last hour; 0 if the log is too young to tell
    // The age of the next record to judge; zero if there is none, or the group is not known.
    absl::Duration lag = absl::ZeroDuration();
    int64_t unread_from = -1;  // retention has deleted the records from here to `start` unread; -1: none
    bool is_planned = false;   // what a restart reads of it is known from the group's commit
  };
  std::vector<Partition> partitions;
};

// Reads some 20,000 records at most, for ten seconds at most, with MakeAskingClient()'s client.
// PermissionDenied: the user may not read.
absl::StatusOr<LogSample> SampleLog(const DaemonOptions& options, rd_kafka_t* client, int32_t partitions);

// The timestamp of the first record at or after each place. InfiniteFuture: there is none; InfinitePast: it
// has none, or did not come in time. Takes ten seconds at most; errors as SampleLog.
absl::StatusOr<std::vector<absl::Time>> AskTimes(rd_kafka_t* client, const std::vector<LogPlace>& places);

// The age of each partition's first record at or after its offset in `next`; zero: there is none, or the
// offset is negative. Takes ten seconds at most; errors as SampleLog.
absl::StatusOr<std::vector<absl::Duration>> AskLag(rd_kafka_t* client, const std::string& topic,
                                                   const std::vector<int64_t>& next);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_LOG_SAMPLE_H_
