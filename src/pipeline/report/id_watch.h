// Whether records have the id that they are judged by.
#ifndef LETHE_SRC_PIPELINE_REPORT_ID_WATCH_H_
#define LETHE_SRC_PIPELINE_REPORT_ID_WATCH_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace lethe {

// Looks at the records of one lane in stretches. Where nearly all of a stretch lack a usable id, `id` names
// the wrong field, or a producer has changed: nothing is deduplicated. One record without an id now and then
// is no news here.
//
// Thread safety: none.
class IdWatch {
 public:
  struct Stretch {
    int64_t records = 0;
    int64_t without_id = 0;
  };

  // Records that were committed. Returns the stretch that ends with them, if nearly all of it lack an id: at
  // most one a minute.
  std::optional<Stretch> Add(int64_t records, int64_t without_id, absl::Time now) {
    if (records == 0) return std::nullopt;
    open_.records += records;
    open_.without_id += without_id;
    if (open_.records < kLeast || now < next_) return std::nullopt;
    next_ = now + kEvery;
    last_ = open_;
    open_ = {};
    return nearly_none();
  }

  // The last stretch, if nearly all of it lack an id.
  std::optional<Stretch> nearly_none() const {
    const bool nearly_none =
        last_.records > 0 && kOneIn * (last_.records - last_.without_id) <= last_.records;
    return nearly_none ? std::optional(last_) : std::nullopt;
  }

 private:
  static constexpr int64_t kLeast = 100;
  static constexpr int64_t kOneIn = 10;  // nine of ten lack it
  static constexpr absl::Duration kEvery = absl::Minutes(1);

  Stretch open_;
  Stretch last_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_ID_WATCH_H_
