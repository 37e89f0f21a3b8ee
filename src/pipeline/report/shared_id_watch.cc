#include "src/pipeline/report/shared_id_watch.h"

#include <algorithm>

#include "absl/types/span.h"

namespace lethe {

bool SharedIdWatch::Add(IdHash id, uint64_t content, int64_t offset) {
  if (places_.empty()) places_.resize(kSets * kWays);
  const auto set = absl::MakeSpan(places_).subspan(id.b % kSets * kWays, kWays);
  auto place = std::find_if(set.begin(), set.end(), [&](const Place& each) { return each.id == id.a; });
  if (place == set.end() || place->own == 0) {
    place = std::min_element(set.begin(), set.end(),
                             [](const Place& x, const Place& y) { return x.count < y.count; });
    *place = {.id = id.a, .content = content, .count = place->count + 1, .own = 1, .offset = offset};
    return false;
  }
  const bool differs = content != place->content;
  if (offset > place->offset) {
    ++place->count;
    ++place->own;
    place->differing += differs ? 1 : 0;
    if (differs && place->differing == kEnough && !found_) found_ = Pair{place->offset, offset};
    place->content = content;
    place->offset = offset;
  }
  return differs && place->differing >= kEnough && 2 * place->differing >= place->own;
}

}  // namespace lethe
