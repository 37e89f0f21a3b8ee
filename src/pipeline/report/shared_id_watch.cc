#include "src/pipeline/report/shared_id_watch.h"

#include <algorithm>

#include "absl/types/span.h"

namespace lethe {

std::optional<SharedIdWatch::Pair> SharedIdWatch::Add(IdHash id, uint64_t content, int64_t offset) {
  if (places_.empty()) places_.resize(kSets * kWays);
  const auto set = absl::MakeSpan(places_).subspan(id.b % kSets * kWays, kWays);
  auto place = std::find_if(set.begin(), set.end(), [&](const Place& each) { return each.id == id.a; });
  if (place == set.end() || place->own == 0) {
    place = std::min_element(set.begin(), set.end(),
                             [](const Place& x, const Place& y) { return x.count < y.count; });
    *place = {.id = id.a, .content = content, .count = place->count + 1, .own = 1, .offset = offset};
    return std::nullopt;
  }
  const Pair pair = {place->offset, offset};
  // The last one, judged again, is what it was.
  const bool differs = offset == place->offset ? place->differs : content != place->content;
  if (offset > place->offset) {
    ++place->count;
    ++place->own;
    place->differing += differs ? 1 : 0;
    place->content = content;
    place->differs = differs;
    place->offset = offset;
  }
  const bool is_shared = place->differing >= kEnough && 2 * place->differing >= place->own;
  return differs && is_shared ? std::optional(pair) : std::nullopt;
}

}  // namespace lethe
