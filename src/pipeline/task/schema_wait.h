// A partition that waits for schemas.
#ifndef LETHE_SRC_PIPELINE_TASK_SCHEMA_WAIT_H_
#define LETHE_SRC_PIPELINE_TASK_SCHEMA_WAIT_H_

#include <algorithm>
#include <optional>

#include "absl/time/time.h"
#include "src/record/schema_source.h"

namespace lethe {

// Times are by Clock::Steady(). Not thread-safe.
class SchemaWait {
 public:
  void Begin(const SchemaNeed& need, absl::Time now) {
    waited_ = WaitedOfLate(now);
    at_ = since_ = now;
    is_on_ = true;
    need_ = need;
  }
  void End(absl::Time now) {
    if (!is_on_) return;
    waited_ = WaitedOfLate(now);
    at_ = now;
    is_on_ = false;
  }
  bool is_on() const { return is_on_; }
  // Of the present wait, or of the last one.
  absl::Time since() const { return since_; }
  const SchemaNeed& need() const { return need_; }

  // For more than two seconds, or for most of the last few: many short waits in a row hold it, too.
  bool IsLong(absl::Time now) const { return WaitedOfLate(now) > kLong; }

 private:
  static constexpr absl::Duration kLong = absl::Seconds(2);
  static constexpr absl::Duration kMost = absl::Seconds(4);

  // Grows while it waits, and goes down as fast while it does not.
  absl::Duration WaitedOfLate(absl::Time now) const {
    const absl::Duration passed = now - at_;
    return is_on_ ? std::min(waited_ + passed, kMost) : std::max(waited_ - passed, absl::ZeroDuration());
  }

  bool is_on_ = false;
  SchemaNeed need_;
  absl::Time since_ = absl::UnixEpoch();
  absl::Duration waited_ = absl::ZeroDuration();  // of late, at `at_`
  absl::Time at_ = absl::UnixEpoch();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_SCHEMA_WAIT_H_
