// Whether copies of an id have the key of the first. Where they have not, only chance brought those together
// that were found, and others are in partitions where they are not found.
#ifndef LETHE_SRC_PIPELINE_REPORT_KEY_WATCH_H_
#define LETHE_SRC_PIPELINE_REPORT_KEY_WATCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/event.h"

namespace lethe {

// Remembers the key of one id in 64, chosen by its hash: that of the last 16,384 of them, or somewhat fewer,
// since each has one place, and a newer one takes it. So a copy is compared if it comes within about a
// million ids of the first. 256 KiB, allocated at the beginning.
//
// Not thread-safe: it is one lane's.
class KeyWatch {
 public:
  KeyWatch();

  static bool IsSampled(IdHash id) { return id.a % kOneIn == 0; }
  // An event of a sampled id was judged. A key that is null differs from every other.
  void See(int32_t partition, IdHash id, Verdict verdict, std::optional<absl::string_view> key);

  struct Found {
    int64_t differing = 0;  // copies whose key is not that of the first
    int64_t compared = 0;   // of so many
  };
  // What is to be warned of: ten copies, among at most a thousand in a row that were compared. Once an hour.
  std::optional<Found> Take(absl::Time now);

 private:
  static constexpr uint64_t kOneIn = 64;

  // Two copies of an id in one partition meet here; those in different ones are two ids.
  struct Place {
    uint64_t id = 0;
    uint64_t key = 0;
  };
  std::vector<Place> places_;
  Found found_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_KEY_WATCH_H_
