// The ends of the inputs' logs, as the brokers have told them.
#ifndef LETHE_SRC_PIPELINE_PUBLISH_LOG_ENDS_H_
#define LETHE_SRC_PIPELINE_PUBLISH_LOG_ENDS_H_

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "src/pipeline/options/topic_partition.h"
#include "src/sync/mutex.h"

namespace lethe {

// Last stable offsets, asked by another client than the one that reads: that one knows an end from its last
// fetch only, and the end is needed where fetches fail.
//
// Thread-safe.
class LogEnds {
 public:
  // Keeps the known ends of other partitions.
  void Put(int32_t flow, const std::map<int32_t, int64_t>& ends) {
    const MutexLock lock(mutex_);
    for (const auto& [partition, end] : ends) ends_[{flow, partition}] = end;
  }
  // As last put; 0: it never was.
  int64_t Of(TopicPartition partition) const {
    const MutexLock lock(mutex_);
    const auto end = ends_.find(partition);
    return end == ends_.end() ? 0 : end->second;
  }

 private:
  mutable Mutex mutex_;
  std::map<TopicPartition, int64_t> ends_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PUBLISH_LOG_ENDS_H_
