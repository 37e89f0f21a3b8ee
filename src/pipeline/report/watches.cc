#include "src/pipeline/report/watches.h"

#include <algorithm>
#include <utility>

#include "src/text/fixed_hash.h"

namespace lethe {
namespace {

constexpr size_t kPlaces = 16384;
constexpr int64_t kEnough = 10;
constexpr int64_t kAmong = 1000;
constexpr absl::Duration kEvery = absl::Hours(1);
constexpr absl::Duration kThrottleWindow = absl::Seconds(10);
constexpr double kLeastThrottled = 0.1;
constexpr absl::Duration kThrottleNewsEvery = absl::Minutes(10);

uint64_t HashOf(std::optional<absl::string_view> key) {
  // The lowest bit tells an empty key from a null one.
  return key ? FixedHash(*key).a | 1 : 0;
}

}  // namespace

void KeyWatch::See(int32_t partition, IdHash id, Verdict verdict, std::optional<absl::string_view> key) {
  if (places_.empty()) places_.resize(kPlaces);
  Place& place = places_[id.a / kOneIn % kPlaces];
  // The factor is odd, so the ids of two partitions differ.
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

void ThrottleWatch::Look(absl::Duration throttled, absl::Time now) {
  window_ = std::min(window_, now);
  if (looked_ < now) {
    in_window_ += std::max(std::min(now, until_) - looked_, absl::ZeroDuration());
  }
  looked_ = now;
  if (throttled > total_) until_ = std::max(until_, now + (throttled - total_));
  total_ = throttled;
  if (now - window_ < kThrottleWindow) return;
  share_ = absl::FDivDuration(in_window_, now - window_);
  if (share_ < kLeastThrottled) share_ = 0;
  window_ = now;
  in_window_ = absl::ZeroDuration();
}

std::optional<double> ThrottleWatch::Take(absl::Time now) {
  if (share_ == 0 || now < next_) return std::nullopt;
  next_ = now + kThrottleNewsEvery;
  return share_;
}

void ProgressWatch::Look(absl::Span<const Sight> owned, absl::Time now) {
  auto next = seen_.begin();
  for (const Sight& sight : owned) {
    while (next != seen_.end() && next->first < sight.partition) next = seen_.erase(next);
    if (next == seen_.end() || sight.partition < next->first) {
      next = seen_.emplace_hint(next, sight.partition, Seen{sight.committed, sight.behind, now});
    } else {
      Seen& seen = next->second;
      const bool stands = seen.behind && sight.behind && seen.committed == sight.committed;
      seen = {sight.committed, sight.behind, stands ? seen.since : now};
    }
    ++next;
  }
  seen_.erase(next, seen_.end());
}

absl::Duration ProgressWatch::StandsFor(TopicPartition partition, absl::Time now) const {
  const auto seen = seen_.find(partition);
  return seen == seen_.end() || !seen->second.behind ? absl::ZeroDuration() : now - seen->second.since;
}

std::vector<TopicPartition> ProgressWatch::Stalled(absl::Duration patience, absl::Time now) const {
  absl::Time last_step = absl::InfinitePast();
  for (const auto& [partition, seen] : seen_) {
    if (seen.behind) last_step = std::max(last_step, seen.since);
  }
  const absl::Duration allowed = now - last_step > patience ? patience : kTurns * patience;
  std::vector<TopicPartition> stalled;
  for (const auto& [partition, seen] : seen_) {
    if (seen.behind && now - seen.since > allowed) stalled.push_back(partition);
  }
  return stalled;
}

void OpenTransactionWatch::Look(absl::Span<const Sight> owned, absl::Time now) {
  std::map<TopicPartition, Held> held;
  for (const Sight& sight : owned) {
    if (!sight.held) continue;
    const auto before = held_.find(sight.partition);
    const bool is_same = before != held_.end() && before->second.position == sight.position;
    held[sight.partition] = {sight.position, is_same ? before->second.since : now};
  }
  held_ = std::move(held);
}

absl::Duration OpenTransactionWatch::HeldFor(TopicPartition partition, absl::Time now) const {
  const auto held = held_.find(partition);
  return held == held_.end() ? absl::ZeroDuration() : now - held->second.since;
}

}  // namespace lethe
