#include "src/second_opinion/passed_ids.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "src/snapshot/fields.h"

namespace lethe {

absl::StatusOr<PassedIds> PassedIds::Create(absl::Duration horizon, MemoryBudget* memory) {
  absl::StatusOr<LineMemory> lines = LineMemory::Create(memory, kFewestBytes, LineMemory::kFirstRoomBytes);
  if (!lines.ok()) return lines.status();
  return PassedIds(horizon, *std::move(lines));
}

int64_t PassedIds::LineOf(uint32_t half) const {
  const auto twice = static_cast<uint64_t>(2 * whole_);
  const auto line = static_cast<int64_t>(half & (twice - 1));
  return line < line_count_ ? line : line - whole_;
}

bool PassedIds::Expired(const Place& place, int64_t now_ms) const {
  const int64_t passed_ms = place.stream_time_ms == kNoStreamTime ? first_ms_ : place.stream_time_ms;
  if (passed_ms == kNoStreamTime || now_ms == kNoStreamTime) return false;
  return now_ms - passed_ms > horizon_ms_;
}

const PassedIds::Place* PassedIds::Find(uint64_t key) const {
  const auto [first, second] = LinesOf(key);
  for (const int64_t line : {first, second}) {
    for (const Place& place : lines()[line]) {
      if (place.key == key) return &place;
    }
  }
  return nullptr;
}

bool PassedIds::Confirms(const TimedId& timed) const {
  const Place* const place = Find(Key(timed.id));
  return place != nullptr && !Expired(*place, std::max(now_ms_, timed.stream_time_ms));
}

void PassedIds::Prefetch(IdHash id) const {
  const auto [first, second] = LinesOf(Key(id));
  for (const int64_t line : {first, second}) {
    __builtin_prefetch(&lines()[line][0], 1);
    __builtin_prefetch(&lines()[line][4], 1);
  }
}

void PassedIds::Remember(const TimedId& timed) {
  if (now_ms_ == kNoStreamTime) first_ms_ = timed.stream_time_ms;
  now_ms_ = std::max(now_ms_, timed.stream_time_ms);
  Sweep();
  const Place passed = {.key = Key(timed.id), .stream_time_ms = now_ms_};
  if (const Place* const found = Find(passed.key); found != nullptr) {
    const_cast<Place*>(found)->stream_time_ms = now_ms_;
    return;
  }
  if (2 * ids_ >= kPlaces * line_count_) GrowByALine();
  const auto [first, second] = LinesOf(passed.key);
  const int64_t emptier = Kept(lines()[second]) < Kept(lines()[first]) ? second : first;
  // At the limit nearly all lines are full, and a search for another would be slow.
  if (Kept(lines()[emptier]) == kPlaces && 8 * ids_ < 7 * kPlaces * line_count_) MoveOne(emptier);
  Insert(&lines()[emptier], passed);
}

// Moves one of the ids of a full line to its other line, if one of these lines has a free place.
void PassedIds::MoveOne(int64_t from) {
  for (Place& place : lines()[from]) {
    const auto [first, second] = LinesOf(place.key);
    const int64_t to = first == from ? second : first;
    Line& other = lines()[to];
    if (Kept(other) == kPlaces) continue;
    Insert(&other, place);
    NoteMove(to);
    place = {};
    --ids_;
    return;
  }
}

void PassedIds::NoteMove(int64_t to) {
  if (moved_to_ == nullptr) moved_to_.reset(new (std::nothrow) int64_t[kMovesKept]);
  if (moved_to_ == nullptr) {
    moves_ += kMovesKept + 1;  // no memory: a copy that is under way has missed too many of them
    return;
  }
  moved_to_[static_cast<size_t>(moves_++ % kMovesKept)] = to;
}

PassedIds::CopyState PassedIds::GoOn(Copy* copy, int64_t most_bytes) const {
  constexpr auto kLineBytes = int64_t{sizeof(Line)};
  static_assert(kCopyPieceBytes % kLineBytes == 0);
  const absl::Span<const char> all = memory();
  const int64_t new_moves = copy->bytes == 0 ? 0 : moves_ - copy->moves;
  if (new_moves > kMovesKept) return CopyState::kBroken;
  for (int64_t move = moves_ - new_moves; move < moves_; ++move) {
    const int64_t at = moved_to_[static_cast<size_t>(move % kMovesKept)] * kLineBytes;
    if (at >= copy->bytes) continue;
    std::string& piece = copy->pieces[static_cast<size_t>(at / kCopyPieceBytes)];
    std::memcpy(piece.data() + at % kCopyPieceBytes, all.data() + at, sizeof(Line));
  }
  copy->moves = moves_;
  const int64_t end =
      std::min(static_cast<int64_t>(all.size()), copy->bytes + most_bytes / kLineBytes * kLineBytes);
  while (copy->bytes < end) {
    const int64_t in_piece = copy->bytes % kCopyPieceBytes;
    if (in_piece == 0) copy->pieces.emplace_back().reserve(kCopyPieceBytes);
    const int64_t bytes = std::min(end - copy->bytes, kCopyPieceBytes - in_piece);
    copy->pieces.back().append(all.data() + copy->bytes, static_cast<size_t>(bytes));
    copy->bytes += bytes;
  }
  return copy->bytes == static_cast<int64_t>(all.size()) ? CopyState::kWhole : CopyState::kGoesOn;
}

int64_t PassedIds::Kept(const Line& line) const {
  return std::count_if(line.begin(), line.end(),
                       [this](const Place& place) { return place.key != 0 && !Expired(place, now_ms_); });
}

void PassedIds::Insert(Line* line, const Place& place) {
  const auto worth = [this](const Place& old) {
    if (old.key == 0) return 0;
    return Expired(old, now_ms_) ? 1 : 2;
  };
  Place* const taken = std::min_element(line->begin(), line->end(), [&](const Place& x, const Place& y) {
    return std::pair(worth(x), x.stream_time_ms) < std::pair(worth(y), y.stream_time_ms);
  });
  if (worth(*taken) == 0) ++ids_;
  if (worth(*taken) == 2) ++displaced_;
  *taken = place;
}

void PassedIds::Sweep() {
  for (Place& place : lines()[swept_]) {
    if (place.key == 0 || !Expired(place, now_ms_)) continue;
    place = {};
    --ids_;
  }
  if (++swept_ >= line_count_) swept_ = 0;
}

void PassedIds::GrowByALine() {
  // Halves of `a` tell no more lines apart.
  if (whole_ > int64_t{UINT32_MAX} / 2) return;
  if (!memory_.GrowOrMove((line_count_ + 1) * int64_t{sizeof(Line)})) return;
  const int64_t added = line_count_++;
  const int64_t split = added - whole_;
  if (line_count_ == 2 * whole_) whole_ = line_count_;
  Line& from = lines()[split];
  Line& to = lines()[added];
  for (size_t i = 0; i < from.size(); ++i) {
    const auto [first, second] = LinesOf(from[i].key);
    if (from[i].key == 0 || first == split || second == split) continue;
    to[i] = from[i];
    from[i] = {};
  }
}

SecondOpinionStatus PassedIds::Status() const {
  return {.ids = ids_, .displaced = displaced_, .memory_bytes = memory_.bytes()};
}

absl::Span<const char> PassedIds::memory() const {
  return {static_cast<const char*>(memory_.data()), static_cast<size_t>(line_count_) * sizeof(Line)};
}

absl::StatusOr<absl::Span<char>> PassedIds::MakeRoom(int64_t bytes) {
  constexpr auto kLineBytes = int64_t{sizeof(Line)};
  constexpr int64_t kMostLines = int64_t{1} << 32;
  if (bytes < kFewestBytes || bytes % kLineBytes != 0 || bytes / kLineBytes > kMostLines) {
    return absl::DataLossError("no second opinion takes so many bytes");
  }
  if (!memory_.GrowOrMove(bytes)) {
    return absl::ResourceExhaustedError("the memory limit has no room for its second opinion; raise it");
  }
  line_count_ = bytes / kLineBytes;
  whole_ = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(line_count_)));
  return absl::MakeSpan(static_cast<char*>(memory_.data()), static_cast<size_t>(bytes));
}

// Whether the id of a place belongs to other lines, or is also in its other line, which then gets the later
// time. A copy may have such places.
bool PassedIds::IsElsewhere(const Place& place, int64_t line) const {
  const auto [first, second] = LinesOf(place.key);
  if (line != first && line != second) return true;
  if (first == second) return false;
  for (Place& same : lines()[line == first ? second : first]) {
    if (same.key != place.key) continue;
    same.stream_time_ms = std::max(same.stream_time_ms, place.stream_time_ms);
    return true;
  }
  return false;
}

bool PassedIds::Restored() {
  if (swept_ >= line_count_) return false;
  for (int64_t line = 0; line < line_count_; ++line) {
    for (Place& place : lines()[line]) {
      const int64_t ms = place.stream_time_ms;
      if (ms != kNoStreamTime && (ms < -kFarthestSnapshotMs || ms > kFarthestSnapshotMs)) return false;
      if (place.key == 0) continue;
      if (IsElsewhere(place, line)) {
        place = {};
      } else {
        ++ids_;
      }
    }
  }
  return true;
}

}  // namespace lethe
