// Limits the rate of log messages that may come very often.
#ifndef LETHE_SRC_PIPELINE_CLOCK_REPEATS_H_
#define LETHE_SRC_PIPELINE_CLOCK_REPEATS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/sync/mutex.h"

namespace lethe {

// One kind of message: logs the first, then at most one every five seconds, with the number left out since.
//
//   if (const auto like_it = refusals_.Next(clock.Steady())) spdlog::warn("refused: {}{}", why, *like_it);
//
// Thread safety: none.
class Repeats {
 public:
  // If the message is to be logged: text to append to it.
  std::optional<std::string> Next(absl::Time now) {
    if (now < next_) {
      ++left_out_;
      return std::nullopt;
    }
    const std::string like_it =
        left_out_ == 0 ? "" : absl::StrCat(" (", left_out_, " like it since the last were left out)");
    next_ = now + kEvery;
    left_out_ = 0;
    return like_it;
  }
  // Another one was logged now.
  void Logged(absl::Time now) { next_ = now + kEvery; }

 private:
  static constexpr absl::Duration kEvery = absl::Seconds(5);
  int64_t left_out_ = 0;
  absl::Time next_ = absl::InfinitePast();
};

// The same of a message with a reason: each of the first few reasons in a minute is logged.
class RepeatsByReason {
 public:
  std::optional<std::string> Next(absl::string_view reason, absl::Time now) {
    if (now >= forgets_) {
      reasons_.clear();
      forgets_ = now + kForgetsAfter;
    }
    if (reasons_.size() >= kMost || !reasons_.emplace(reason).second) return repeats_.Next(now);
    repeats_.Logged(now);
    return "";
  }

 private:
  static constexpr size_t kMost = 8;
  static constexpr absl::Duration kForgetsAfter = absl::Minutes(1);
  Repeats repeats_;
  std::set<std::string> reasons_;
  absl::Time forgets_ = absl::InfinitePast();
};

// Thread-safe, for any number of kinds.
class RepeatsByKind {
 public:
  std::optional<std::string> Next(const std::string& kind, absl::Time now) {
    const MutexLock lock(mutex_);
    return kinds_[kind].Next(now);
  }

 private:
  Mutex mutex_;
  std::map<std::string, Repeats> kinds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_CLOCK_REPEATS_H_
