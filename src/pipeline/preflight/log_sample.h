// What the newest records of the input show, and how old the next one to judge is.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_LOG_SAMPLE_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_LOG_SAMPLE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/secret_hash.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/input_record.h"
#include "src/record/event_list.h"
#include "src/record/record_reader.h"
#include "src/record/registry_frame.h"
#include "src/record/timestamp.h"

namespace lethe {

class Brokers;

struct LogSample {
  static constexpr size_t kMostSchemas = 16;
  static constexpr absl::Duration kRateOver = absl::Hours(1);

  // The newest records of each partition.
  int64_t records = 0;
  int64_t bytes = 0;          // of keys and values
  int64_t largest_bytes = 0;  // of one record's
  int64_t without_key = 0;
  int64_t without_id = 0;               // missing
  int64_t later_place = 0;              // the id is from another place than the first
  int64_t partial = 0;                  // the id lacks an optional part
  int64_t lists = 0;                    // records that hold several events
  int64_t listed = 0;                   // events in them
  int64_t lists_by_one = 0;             // of the lists: the id is that of one of the events
  int64_t malformed = 0;                // the JSON that it would be in
  int64_t copies_elsewhere = 0;         // records whose id was also seen in another partition
  int64_t copies_with_another_key = 0;  // in the same partition, but with a key that might have led elsewhere
  // Of the id with most of them: records that differ from the one before them, and where two of these are.
  int64_t differing = 0;
  std::string differing_example;
  RegistryFrames frames;
  std::set<SchemaKey> schemas;  // that keys and values name, at most kMostSchemas
  std::string example;          // where one of those is: orders-3 offset 17 and orders-5 offset 4
  absl::Time newest = absl::InfinitePast();
  TimeUnitCheck times;

  struct Partition {
    int32_t partition = 0;
    int64_t start = 0;                               // of the log
    int64_t end = 0;                                 // the last stable offset
    absl::Time first_record = absl::InfinitePast();  // its time; InfinitePast(): not known
    double rate = 0;  // records a second, over kRateOver; 0 if the log is too young to tell
    // The age of the next record to judge; zero if there is none, or the group is not known.
    absl::Duration lag = absl::ZeroDuration();
    bool is_young = false;    // its records, of some minutes, tell no rate
    bool is_planned = false;  // what a restart reads of it is known from the group's commit
    bool is_stopped = false;  // the group's commit does not fit the log: lethe does not start it

    // `since`: the offset of its first record at or after `now` - kRateOver.
    void SetRate(int64_t since, absl::Time now);
  };
  std::vector<Partition> partitions;

  double rate() const;    // of all partitions
  bool is_young() const;  // a partition is
};

// Adds records to a sample. Not thread-safe.
class LogSampler {
 public:
  // Both outlive it.
  LogSampler(const DaemonOptions& options, LogSample& sample)
      : topic_(options.input), reader_(options.record), id_(options.record.id), sample_(sample) {}

  void Add(const InputRecord& record);

 private:
  // Where an id was first seen.
  struct Place {
    int32_t partition = 0;
    int64_t offset = 0;
    std::optional<std::string> key;
    uint64_t content = 0;   // of the last record with this id
    int64_t differing = 0;  // records that differ from the one before them
  };

  void AddSchema(std::optional<absl::string_view> bytes, const RecordHeaders* headers, bool of_key);
  std::string Name(const Place& place) const;

  const std::string& topic_;
  RecordReader reader_;
  const IdSpec& id_;
  EventListFinder finder_;
  LogSample& sample_;
  SecretHashMap<Place> seen_;
};

// Their bounds; by partition, for 0 .. partitions - 1.
absl::StatusOr<std::vector<LogSample::Partition>> AskLogs(Brokers& brokers, const std::string& topic,
                                                          int32_t partitions);

// Reads some 20,000 records at most, for twenty seconds at most. PermissionDenied: the user may not read.
absl::StatusOr<LogSample> SampleLog(const DaemonOptions& options, Brokers& brokers, int32_t partitions,
                                    absl::Time now);

// The age of each partition's first record at or after its offset in `next`; zero: there is none, or the
// offset is negative. Errors as SampleLog.
absl::StatusOr<std::vector<absl::Duration>> AskLag(Brokers& brokers, const std::string& topic,
                                                   const std::vector<int64_t>& next, absl::Time now);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_LOG_SAMPLE_H_
