// The topic that has the records of snapshots, as their store uses it.
#ifndef LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_LOG_H_
#define LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_LOG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/pipeline/snapshots/snapshots.h"

namespace lethe {

// Send and Flush are called from one thread, Scan from any.
class SnapshotLog {
 public:
  virtual ~SnapshotLog() = default;

  struct NewRecord {
    int32_t partition = 0;
    std::string key;
    std::optional<absl::string_view> value;  // none: a tombstone
    absl::Time time;
  };
  // Waits while the queue is full. Flush() follows, also after an error.
  virtual absl::Status Send(const NewRecord& record, const GoOn& go_on) = 0;
  // Waits until all that was sent is in the log. After an error any of it may be there; none comes later.
  virtual absl::Status Flush(const GoOn& go_on) = 0;

  // Calls `see` for the records of a partition from the first one that is not older than `from`, up to the
  // present end, or until it returns false. A record without a key has an empty one.
  using See = std::function<bool(absl::string_view key, std::optional<absl::string_view> value)>;
  virtual absl::Status Scan(int32_t partition, absl::Time from, const GoOn& go_on, const See& see) const = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_LOG_H_
