// Finds jumps of the share of duplicates: from 1 % to 80 % after a deployment of a producer, say.
#ifndef LETHE_SRC_PIPELINE_REPORT_DUPLICATE_WATCH_H_
#define LETHE_SRC_PIPELINE_REPORT_DUPLICATE_WATCH_H_

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "absl/time/time.h"
#include "lethe/event.h"
#include "lethe/status.h"

namespace lethe {

// Watches the judged events of one partition, in stretches of a thousand. The share rises when less than half
// as many events pass as usual, and is as usual again when three quarters of them do. Usual is the mean of
// all stretches before the rise, of those of the last hours once it has watched for longer.
//
// A rise is a jump in two cases:
//  - Most of its copies that the audit compares differ from the first event of their id, which they did not
//    before: ids are not unique any more, and events are lost.
//  - For five minutes most of its copies are of events that came after it began: a producer sends its events
//    several times. So neither a burst of retries is a jump, nor that a producer sends a topic again from its
//    start, however long that takes, nor how fast a backlog is read.
//
// What lasts for a day is usual. Times are Clock::Steady(). Not thread-safe: it belongs to the lane of its
// partition.
class DuplicateWatch {
 public:
  struct Jump {
    absl::Time since = absl::InfinitePast();
    int64_t since_offset = 0;
    double usual = 0;              // share of the duplicates before
    double share = 0;              // since then
    std::vector<int64_t> offsets;  // of some duplicates
    // Copies that the audit has compared with the first event of their id, and those of them that differ.
    int64_t compared = 0;
    int64_t differing = 0;

    bool MostDiffer() const { return 2 * differing > compared; }
  };

  // For each judged event. One that is judged again, after an abort, may count again.
  void Add(IdHash id, Verdict verdict, int64_t offset);
  // After one or more Add().
  void Update(const AuditStatus& audit, absl::Time now);

  const std::optional<Jump>& jump() const { return jump_; }

 private:
  struct Stretch {
    int64_t records = 0;
    int64_t duplicates = 0;
    int64_t first_offset = 0;
    absl::Time began = absl::InfiniteFuture();
    std::vector<int64_t> offsets;  // of its first duplicates

    double passed() const { return 1 - static_cast<double>(duplicates) / static_cast<double>(records); }
  };
  // What the audit has counted.
  struct Compared {
    int64_t all = 0;
    int64_t differing = 0;
  };
  struct Rise {
    Stretch all;
    int stretches = 1;
    Compared before;
    // Ids of events that passed since: those with no bit of `mask`, so that they are few.
    std::unordered_set<uint64_t> passed;
    uint64_t mask = 0;
    int64_t copies = 0;      // of ids without a bit of `mask`
    int64_t new_copies = 0;  // of these, of an event that passed since
  };

  void Learn(const Stretch& stretch, absl::Time now);
  void EndStretch(const Stretch& stretch, const AuditStatus& audit, absl::Time now);
  bool IsJump(const Jump& found, absl::Time now) const;

  Stretch open_;
  double usually_passes_ = 1;
  int stretches_ = 0;  // that are learnt
  absl::Time learnt_ = absl::InfiniteFuture();
  Compared usually_compared_;
  std::optional<Rise> rise_;
  std::optional<Jump> jump_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_DUPLICATE_WATCH_H_
