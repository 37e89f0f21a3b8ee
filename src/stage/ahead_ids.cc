#include "src/stage/ahead_ids.h"

#include <algorithm>

#include "src/assertion.h"
#include "src/snapshot/fields.h"

namespace lethe {

int64_t AheadIds::Clamp(int64_t time_ms) {
  return std::clamp(time_ms, -StreamTime::kFarthestMs, StreamTime::kFarthestMs);
}

int64_t AheadIds::LatestOf(int64_t records) const {
  int64_t latest = kNoStreamTime;
  for (int64_t i = std::max<int64_t>(0, read_ - records); i < read_; ++i) {
    latest = std::max(latest, recent_[static_cast<size_t>(i % kRecent)]);
  }
  return latest;
}

int64_t AheadIds::EarliestOf(int64_t records) const {
  int64_t earliest = INT64_MAX;
  for (int64_t i = std::max<int64_t>(0, read_ - records); i < read_; ++i) {
    earliest = std::min(earliest, recent_[static_cast<size_t>(i % kRecent)]);
  }
  return earliest;
}

int64_t AheadIds::PassesAt(int64_t now_ms) const { return std::max(now_ms, LatestOf(3)); }

int64_t AheadIds::JudgedAt(int64_t time_ms, int64_t now_ms) const {
  const auto size = static_cast<size_t>(std::min(read_, kRecent));
  if (size < kFewest) return now_ms;
  std::array<int64_t, kRecent> sorted;
  StreamTime::SortInto(recent_.data(), size, sorted.data());
  // Of those that span the least, the latest.
  const size_t others = size / 2;
  int64_t span = INT64_MAX;
  int64_t last = 0;
  for (size_t i = others; i < size; ++i) {
    if (sorted[i] - sorted[i - others] > span) continue;
    span = sorted[i] - sorted[i - others];
    last = sorted[i];
  }
  if (span <= horizon_ms_ / 64) return now_ms;
  const int64_t most = last + 3 * std::min(span, StreamTime::kFarthestMs / 4);
  int64_t believed = time_ms == kNoStreamTime ? LatestOf(1) : Clamp(time_ms);
  if (believed > most) {
    believed = EarliestOf(kFewest);
    if (believed <= most) {
      for (size_t i = 0; i < size && sorted[i] <= most; ++i) believed = sorted[i];
    }
  }
  return std::max(now_ms, believed);
}

int64_t AheadIds::AskedAt(int64_t judged_ms, int64_t now_ms) const {
  if (judged_ms == now_ms) return now_ms;
  return std::max(now_ms, judged_ms - horizon_ms_ / 16 - EarlyBy(now_ms));
}

int64_t AheadIds::EarlyBy(int64_t now_ms) const {
  if (left_ms_ == kNoStreamTime || counted_ms_ == kNoStreamTime) return 0;
  if (now_ms - counted_ms_ > horizon_ms_) return 0;
  return std::max<int64_t>(0, left_ms_ - counted_ms_);
}

const AheadIds::Entry* AheadIds::Find(IdHash id) const {
  for (size_t place = 0; place < size_; ++place) {
    if (entries_[place].id == id) return &entries_[place];
  }
  return nullptr;
}

void AheadIds::DateUntimed(int64_t time_ms) {
  for (size_t i = size_; i > 0 && entries_[i - 1].is_untimed; --i) {
    entries_[i - 1].passed_ms = std::max(entries_[i - 1].passed_ms, time_ms);
    entries_[i - 1].is_untimed = false;
  }
}

std::optional<IdHash> AheadIds::Put(Entry entry, const Entry* before, int64_t now_ms) {
  if (before != nullptr) {
    entry.passed_ms = std::max(entry.passed_ms, before->passed_ms);
    entry.filter_had_it = before->filter_had_it;
    Forget(before);
  }
  std::optional<IdHash> left;
  // Records without a timestamp of their own do not count, and may be more.
  if (size_ == kMost) {
    if (now_ms != kNoStreamTime) left = entries_[0].id;
    Leave(entries_[0].passed_ms, now_ms);
    Erase(0);
  }
  LETHE_DEBUG_ASSERT(size_ < kMost && (size_ == 0 || entries_[size_ - 1].record <= read_));
  entry.record = read_;
  entries_[size_++] = entry;
  return left;
}

std::optional<TimedId> AheadIds::Release(int64_t now_ms) {
  std::optional<size_t> first;
  for (size_t place = 0; place < size_;) {
    const Entry& entry = entries_[place];
    const bool is_ahead = IsAhead(entry.passed_ms, now_ms);
    if (is_ahead && read_ - entry.record < kMost) {
      ++place;
      continue;
    }
    // Stream time jumps.
    const bool is_over = now_ms > entry.passed_ms && now_ms - entry.passed_ms > horizon_ms_;
    if (now_ms == kNoStreamTime || is_over) {
      if (is_ahead) Leave(entry.passed_ms, now_ms);
      Erase(place);
      continue;
    }
    if (!first || entry.passed_ms < entries_[*first].passed_ms) first = place;
    ++place;
  }
  if (!first) return std::nullopt;
  const Entry entry = entries_[*first];
  Erase(*first);
  if (IsAhead(entry.passed_ms, now_ms)) Leave(entry.passed_ms, now_ms);
  // Before stream time began the filter had none.
  return TimedId{entry.id, std::max(std::min(entry.passed_ms, now_ms), counted_ms_)};
}

void AheadIds::Leave(int64_t passed_ms, int64_t now_ms) {
  if (now_ms == kNoStreamTime) {
    left_ms_ = std::max(left_ms_, passed_ms);
  } else {
    left_ms_ = now_ms + std::max(EarlyBy(now_ms), passed_ms - now_ms);
    counted_ms_ = now_ms;
  }
}

void AheadIds::Forget(const Entry* entry) { Erase(static_cast<size_t>(entry - entries_.data())); }

void AheadIds::Erase(size_t place) {
  --size_;
  for (; place < size_; ++place) entries_[place] = entries_[place + 1];
}

template <typename Self, typename Fields>
void AheadIds::Transfer(Self& self, Fields& fields) {
  for (auto& time_ms : self.recent_) fields.Time(time_ms);
  fields.Count(self.read_);
  fields.Int(self.size_, 0, kMost);
  int64_t record = 0;
  for (size_t i = 0; i < self.size_ && fields.ok(); ++i) {
    auto& entry = self.entries_[i];
    fields.Word(entry.id.a);
    fields.Word(entry.id.b);
    fields.Time(entry.passed_ms);
    fields.Int(entry.record, record, self.read_);
    record = entry.record;
    fields.Int(entry.is_untimed, 0, 1);
    fields.Int(entry.filter_had_it, 0, 1);
  }
  fields.Time(self.left_ms_);
  fields.Time(self.counted_ms_);
}

void AheadIds::Save(FieldWriter* fields) const { Transfer(*this, *fields); }

bool AheadIds::Restore(FieldReader* fields) {
  Transfer(*this, *fields);
  return fields->ok();
}

}  // namespace lethe
