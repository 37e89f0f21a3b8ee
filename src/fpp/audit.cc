#include "src/fpp/audit.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "src/fpp/confidence.h"

namespace lethe {
namespace {

constexpr uint32_t kAllIds = 1 << 16;
constexpr size_t kFewestPlaces = 64;
constexpr uint64_t kPayloadBits = ~uint64_t{0} >> 1;
constexpr double kConfidence = 0.99;
// Keeps the sum of a window and an interval from overflowing.
constexpr int64_t kLongestMs = int64_t{1} << 60;

uint32_t Threshold(double share) {
  if (!(share > 0)) return 0;
  return static_cast<uint32_t>(std::ceil(std::min(share, 1.0) * kAllIds));
}

uint64_t HashPayload(absl::string_view payload, HashKey key) {
  if (payload.data() == nullptr) return 0;
  const uint64_t hash = HashId(payload, key).a & kPayloadBits;
  return hash == 0 ? 1 : hash;
}

}  // namespace

Audit::Audit(double share, absl::Duration horizon, const Filter* filter, MemoryBudget* memory, HashKey key,
             bool renews)
    : key_(key),
      horizon_ms_(absl::ToInt64Milliseconds(horizon)),
      renews_(renews),
      filter_(filter),
      memory_(memory),
      threshold_(Threshold(share)),
      fades_ms_(horizon_ms_ + horizon_ms_ / 4) {
  parts_.push_back(std::make_unique<Part>());
  part_of_.push_back(parts_.back().get());
}

Audit::~Audit() {
  for (const auto& part : parts_) memory_->Release(OrderedIdSet<Seen>::BytesFor(part->capacity));
}

Audit::Seen Audit::See(const TimedId& timed, bool passed, absl::string_view payload) const {
  return {.id = timed.id,
          .stream_time_ms = timed.stream_time_ms,
          .payload = HashPayload(payload, key_) & kPayloadBits,
          .passed = passed};
}

void Audit::Judged(const TimedId& timed, bool passed, absl::string_view payload, bool by_own_time) {
  Seen event = See(timed, passed, payload);
  const bool is_news = Count(Find(timed.id), event, by_own_time, &counts_);
  event.passed |= renews_;  // the filter has it from now on, as if it had passed
  if (is_news || renews_) Remember(event);
}

void Audit::JudgedPending(const TimedId& timed, bool passed, absl::string_view payload, bool by_own_time) {
  Seen event = See(timed, passed, payload);
  const Seen* const pending = pending_.Find(timed.id);
  const bool is_news =
      Count(pending != nullptr ? pending : Find(timed.id), event, by_own_time, &pending_counts_);
  event.passed |= renews_;
  if (!is_news && !renews_) return;
  pending_.Forget(timed.id);  // inserted again, at its new time
  RememberPending(event);
}

void Audit::Renewed(const TimedId& timed) { Remember(SeeAgain(timed, Find(timed.id))); }

void Audit::RenewedPending(const TimedId& timed) {
  const Seen* const pending = pending_.Find(timed.id);
  const Seen seen = SeeAgain(timed, pending != nullptr ? pending : Find(timed.id));
  pending_.Forget(timed.id);
  RememberPending(seen);
}

// It may have been forgotten here.
Audit::Seen Audit::SeeAgain(const TimedId& timed, const Seen* before) const {
  Seen seen = before != nullptr ? *before : See(timed, true, {});
  seen.stream_time_ms = timed.stream_time_ms;
  seen.passed = true;
  return seen;
}

void Audit::Replayed(const TimedId& timed, absl::string_view payload) { Remember(See(timed, true, payload)); }

bool Audit::Count(const Seen* before, const Seen& event, bool by_own_time, Counts* counts) {
  ++counts->events;
  if (by_own_time) {
    if (!event.passed && before != nullptr && before->passed) CountCopy(*before, event, counts);
    return event.passed;
  }
  if (before != nullptr) {
    const bool in_horizon = AgeMs(*before, std::max(now_ms_, event.stream_time_ms)) <= horizon_ms_;
    if (before->passed && in_horizon) {
      CountCopy(*before, event, counts);
      return event.passed;
    }
    // The filter's window may have become longer since it was last asked. Asking is slow, so it happens only
    // where it matters.
    const bool may_be_fresh = AgeMs(*before, now_ms_) > fades_ms_;
    if (may_be_fresh && !event.passed && !MeasureFading()) return false;
    if (AgeMs(*before, now_ms_) <= fades_ms_) return event.passed;
  }
  ++counts->fresh;
  if (!event.passed) ++counts->false_drops;
  return true;
}

void Audit::CountCopy(const Seen& first, const Seen& event, Counts* counts) {
  ++counts->copies;
  if (event.passed) ++counts->missed;
  if (first.payload == 0 || event.payload == 0) return;
  ++counts->compared;
  if (first.payload != event.payload) ++counts->payload_mismatches;
}

void Audit::Remember(const Seen& seen) {
  PartOf(seen.id).seen.Forget(seen.id);  // inserted again below
  if (MakeRoom(seen.id) && Audits(seen.id)) PartOf(seen.id).seen.Insert(seen);
}

void Audit::RememberPending(const Seen& seen) {
  while (Audits(seen.id)) {
    try {
      pending_.Insert(seen);
      return;
    } catch (const std::bad_alloc&) {
      threshold_ /= 2;
      pending_.KeepIf([this](const Seen& each) { return Audits(each.id); });
    }
  }
}

bool Audit::MakeRoom(IdHash id) {
  for (;;) {
    Part& part = PartOf(id);
    if (part.seen.places() < part.capacity) return true;
    DropForgotten(&part);
    // Otherwise a part that stays nearly full would be searched again and again.
    const auto has_room = [&part] { return part.seen.size() <= part.capacity / 4 * 3; };
    if (part.capacity > 0 && has_room()) return true;
    if (part.capacity < kMostPlaces ? Grow(&part) : Split(&part)) continue;
    while (threshold_ > 0 && !has_room()) {
      threshold_ /= 2;
      part.seen.KeepIf([this](const Seen& seen) { return Audits(seen.id); });
    }
    if (part.capacity == 0) threshold_ = 0;
    return threshold_ > 0;
  }
}

void Audit::DropForgotten(Part* part) {
  const bool is_measured = MeasureFading();
  part->seen.KeepIf([&](const Seen& seen) {
    return Audits(seen.id) && (!is_measured || AgeMs(seen, now_ms_) <= fades_ms_);
  });
}

bool Audit::Grow(Part* part) {
  const size_t larger = std::max(kFewestPlaces, 2 * part->capacity);
  // For a moment both the old and the new one exist.
  if (!memory_->Reserve(OrderedIdSet<Seen>::BytesFor(larger))) return false;
  bool has_grown = true;
  try {
    part->seen.Reserve(larger);
  } catch (const std::bad_alloc&) {
    has_grown = false;
  }
  memory_->Release(OrderedIdSet<Seen>::BytesFor(has_grown ? part->capacity : larger));
  if (has_grown) part->capacity = larger;
  return has_grown;
}

bool Audit::Split(Part* part) {
  if (part->depth == kMostDepth) return false;
  if (!memory_->Reserve(OrderedIdSet<Seen>::BytesFor(kMostPlaces))) return false;
  try {
    auto other = std::make_unique<Part>();
    other->seen.Reserve(kMostPlaces);
    parts_.reserve(parts_.size() + 1);
    if (const size_t size = part_of_.size(); size_t{1} << part->depth == size) {
      part_of_.resize(2 * size);
      std::copy_n(part_of_.begin(), size, part_of_.begin() + static_cast<std::ptrdiff_t>(size));
    }
    other->capacity = kMostPlaces;
    const uint64_t bit = uint64_t{1} << part->depth;
    other->depth = ++part->depth;
    for (size_t i = 0; i < part_of_.size(); ++i) {
      if (part_of_[i] == part && (i & bit) != 0) part_of_[i] = other.get();
    }
    for (const Seen& seen : part->seen.places_in_order()) {
      if (!part->seen.IsForgotten(seen) && (PartBits(seen.id) & bit) != 0) other->seen.Insert(seen);
    }
    part->seen.KeepIf([&](const Seen& seen) { return (PartBits(seen.id) & bit) == 0; });
    parts_.push_back(std::move(other));
    return true;
  } catch (const std::bad_alloc&) {
    memory_->Release(OrderedIdSet<Seen>::BytesFor(kMostPlaces));
    return false;
  }
}

std::vector<Audit::Seen> Audit::CopyIds() const {
  std::vector<Seen> ids;
  VisitIds([&ids](absl::Span<const Seen> places) { ids.insert(ids.end(), places.begin(), places.end()); });
  return ids;
}

void Audit::Commit() {
  for (const Seen& seen : pending_.InOrder()) {
    if (Audits(seen.id)) Remember(seen);
  }
  counts_.events += pending_counts_.events;
  counts_.fresh += pending_counts_.fresh;
  counts_.false_drops += pending_counts_.false_drops;
  counts_.copies += pending_counts_.copies;
  counts_.missed += pending_counts_.missed;
  counts_.compared += pending_counts_.compared;
  counts_.payload_mismatches += pending_counts_.payload_mismatches;
  Abort();
}

void Audit::Abort() {
  pending_.Clear();
  pending_counts_ = {};
  pending_first_ms_ = kNoStreamTime;
}

int64_t Audit::AgeMs(const Seen& seen, int64_t now_ms) const {
  const int64_t first_ms = std::max(first_ms_, pending_first_ms_);  // one of them is kNoStreamTime
  const int64_t seen_ms = seen.stream_time_ms == kNoStreamTime ? first_ms : seen.stream_time_ms;
  if (seen_ms == kNoStreamTime || now_ms == kNoStreamTime) return 0;
  return std::max<int64_t>(0, now_ms - seen_ms);
}

bool Audit::MeasureFading() try {
  const FilterStatus status = filter_->Figures();
  // Intervals are of unequal length, and at most a fourth of the horizon where they adapt.
  const int64_t interval_ms =
      std::max(absl::ToInt64Milliseconds(status.shape.refresh_period), horizon_ms_ / 4);
  const int64_t window_ms = std::max(absl::ToInt64Milliseconds(status.window), horizon_ms_);
  fades_ms_ = std::min(window_ms, kLongestMs) + std::min(interval_ms, kLongestMs);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

AuditStatus Audit::Status() const {
  AuditStatus status = Counted();
  SetAuditRate(&status);
  return status;
}

AuditStatus Audit::Counted() const {
  size_t ids = 0;
  size_t places = 0;
  for (const auto& part : parts_) {
    ids += part->seen.size();
    places += part->capacity;
  }
  return {.share = static_cast<double>(threshold_) / kAllIds,
          .events = counts_.events,
          .fresh = counts_.fresh,
          .false_drops = counts_.false_drops,
          .copies = counts_.copies,
          .missed = counts_.missed,
          .compared = counts_.compared,
          .payload_mismatches = counts_.payload_mismatches,
          .ids = static_cast<int64_t>(ids),
          .memory_bytes = OrderedIdSet<Seen>::BytesFor(places)};
}

void AddAudit(const AuditStatus& audit, double share, AuditStatus* all) {
  all->share += share * audit.share;
  all->events += audit.events;
  all->fresh += audit.fresh;
  all->false_drops += audit.false_drops;
  all->copies += audit.copies;
  all->missed += audit.missed;
  all->compared += audit.compared;
  all->payload_mismatches += audit.payload_mismatches;
  all->ids += audit.ids;
  all->memory_bytes += audit.memory_bytes;
}

void SetAuditRate(AuditStatus* all) {
  if (all->fresh == 0) return;
  all->fpp_measured = static_cast<double>(all->false_drops) / static_cast<double>(all->fresh);
  const Interval interval = RateInterval(all->false_drops, all->fresh, kConfidence);
  all->fpp_low = interval.low;
  all->fpp_high = interval.high;
}

AuditStatus MergeAudits(absl::Span<const AuditStatus> audits) {
  AuditStatus all;
  for (const AuditStatus& audit : audits) AddAudit(audit, 1.0 / static_cast<double>(audits.size()), &all);
  SetAuditRate(&all);
  return all;
}

}  // namespace lethe
