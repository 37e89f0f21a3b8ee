// What a lane watches of the frames of schema registries, where the id has them in it.
#ifndef LETHE_SRC_PIPELINE_REPORT_FRAME_WATCH_H_
#define LETHE_SRC_PIPELINE_REPORT_FRAME_WATCH_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/text/fixed_hash.h"

namespace lethe {

// Finds records of one key whose schema ids differ. Where the id is the key or the value as a whole, the
// schema id is a part of it, and copies that were written with another version of the schema pass.
//
// Remembers the last schema of up to 16,384 keys, one in each place: 256 KiB, allocated for the first record.
// Not thread-safe.
class FrameWatch {
 public:
  // `key` without its frame; `schema` above 0.
  void See(absl::string_view key, int32_t schema) {
    if (places_.empty()) places_.resize(kPlaces);
    const uint64_t hash = FixedHash(key).a;
    Place& place = places_[hash % kPlaces];
    if (place.key == hash && place.schema != 0 && place.schema != schema) {
      found_ = {found_.differing + 1, schema, place.schema};
    }
    place = {hash, schema};
  }

  struct Found {
    int64_t differing = 0;  // records with another schema than the one before them with their key
    int32_t schema = 0;     // of the last of them
    int32_t before = 0;
  };
  // What was found since the last time; at most once an hour.
  std::optional<Found> Take(absl::Time now) {
    if (found_.differing == 0 || now < next_) return std::nullopt;
    next_ = now + absl::Hours(1);
    return std::exchange(found_, {});
  }

 private:
  static constexpr size_t kPlaces = 16384;

  struct Place {
    uint64_t key = 0;
    int32_t schema = 0;
  };
  std::vector<Place> places_;
  Found found_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_FRAME_WATCH_H_
