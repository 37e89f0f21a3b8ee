// What the loop needs of the group that shares the partitions out.
#ifndef LETHE_SRC_PIPELINE_TASK_GROUP_H_
#define LETHE_SRC_PIPELINE_TASK_GROUP_H_

#include <string>

#include "src/pipeline/task/input_record.h"
#include "src/pipeline/task/task.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class Group {
 public:
  virtual ~Group() = default;

  // The log differs from the one that the task's filter was made of: the task starts over, as if the
  // partition had just been assigned, and is sought.
  virtual void Rebuild(Task& task) = 0;
  // The log has no record at `next` any more: by policy the task goes on where the log starts, or fails.
  virtual void LoseUnread(Task& task, const std::string& why) = 0;
  // An error of the source that concerns no owned partition. Where the worker cannot go on, that is its end.
  virtual void MeetError(const SourceEvent& event) = 0;
  // Between two batches: whatever the group, the input topic or those who watch want.
  virtual void Look() = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_GROUP_H_
