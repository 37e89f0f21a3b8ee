#include "src/pipeline/report/key_watch.h"

namespace lethe {
namespace {

constexpr size_t kPlaces = 16384;
constexpr int64_t kEnough = 10;
constexpr int64_t kAmong = 1000;
constexpr absl::Duration kEvery = absl::Hours(1);

uint64_t HashOf(std::optional<absl::string_view> key) {
  // Whether it is null or not is one of the bits.
  return key ? HashId(*key, 0).a | 1 : 0;
}

}  // namespace

KeyWatch::KeyWatch() : places_(kPlaces) {}

void KeyWatch::See(int32_t partition, IdHash id, Verdict verdict, std::optional<absl::string_view> key) {
  Place& place = places_[id.a / kOneIn % kPlaces];
  // An odd factor: no two partitions make one id of another's.
  const Place seen = {id.b + static_cast<uint64_t>(partition) * 0x9E3779B97F4A7C15u, HashOf(key)};
  if (verdict == Verdict::kUnique) {
    place = seen;
    return;
  }
  if (place.id != seen.id) return;
  if (found_.compared == kAmong) found_ = {};
  ++found_.compared;
  if (place.key != seen.key) ++found_.differing;
}

std::optional<KeyWatch::Found> KeyWatch::Take(absl::Time now) {
  if (found_.differing < kEnough || now < next_) return std::nullopt;
  next_ = now + kEvery;
  const Found found = found_;
  found_ = {};
  return found;
}

}  // namespace lethe
