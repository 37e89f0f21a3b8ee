// The second opinion on a filter's duplicates: an exact array of the ids that passed. This class is the whole
// interface that the stage uses.
#ifndef LETHE_SRC_SECOND_OPINION_PASSED_IDS_H_
#define LETHE_SRC_SECOND_OPINION_PASSED_IDS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/filter.h"
#include "lethe/memory_budget.h"
#include "lethe/status.h"
#include "src/memory/line_memory.h"

namespace lethe {

// After "The Opposite of a Bloom Filter" (Jeff Hodges): a bounded array in which a new id takes the place of
// an older one. An id that it confirms did pass; an id that was displaced is not confirmed. Each id has the
// stream time at which it passed, and is not confirmed after the horizon.
//
// Layout: an id has two lines of eight places, by the halves of its hash's `a`. It goes into the emptier
// line: to a free place, else to that of an expired id, else to that of the oldest. The array grows a line at
// a time when it is half full (linear hashing: line n takes its ids from line n minus the last power of two),
// so it never stalls. If both lines are full although the array is not, another id moves to its other line:
// while the budget has memory no id is displaced. Each insertion sweeps one line of expired ids, in turn.
// Memory is given back by the destructor only.
//
// Two ids count as the same if they agree in the 64 bits of `a`: 2^-64 for a pair.
//
// Invariant: an id is in one of its two lines for the present number of lines, at most once; ids_ counts the
// places that are not free. Errors: Create and MakeRoom only; if the budget or the system has no memory,
// Remember displaces an id and does not fail. Thread safety: none (a shard's lock guards it); const methods
// may run together.
class PassedIds {
 public:
  // The budget outlives the object. ResourceExhausted if it has no room for the first lines.
  static absl::StatusOr<PassedIds> Create(absl::Duration horizon, MemoryBudget* memory);

  // ---- What judging uses ----

  // Whether the id passed within the horizon before its stream time (or the last one remembered).
  bool Confirms(const TimedId& timed) const;
  // The id passed at its stream time; kNoStreamTime counts as the first time that comes.
  void Remember(const TimedId& timed);
  void Prefetch(IdHash id) const;

  SecondOpinionStatus Status() const;

  // ---- What snapshots use ----

  // The state besides the lines, and the lines. Restores a new object only: first the fields, then MakeRoom
  // for the lines, then Restored() when they are there, which is false if no such array can have been saved.
  template <typename Fields>
  void Transfer(Fields& fields) {
    TransferOf(*this, fields);
  }
  template <typename Fields>
  void Transfer(Fields& fields) const {
    TransferOf(*this, fields);
  }
  absl::Span<const char> memory() const;
  absl::StatusOr<absl::Span<char>> MakeRoom(int64_t bytes);
  bool Restored();

  // A copy of the lines, made in parts with insertions in between. It holds the ids that had passed when it
  // began, except those that expired or were displaced meanwhile. An id leaves its line in two ways: the
  // array grows, and the id goes to a line further on, which the copy reaches later; or the id moves to its
  // other line, and GoOn copies that line once more. So an id can be in the copy twice, or where it was
  // before the array grew: Restored() drops such places, and keeps the later time. Replay the events since
  // the beginning.
  struct Copy {
    std::vector<std::string> pieces;  // of kCopyPieceBytes, except the last
    int64_t bytes = 0;                // in all of them
    int64_t moves = 0;                // PassedIds::moves_ at the last GoOn
  };
  enum class CopyState { kGoesOn, kWhole, kBroken };
  // Copies at most `most_bytes` more, in whole lines. Broken if too many ids moved since the last call.
  CopyState GoOn(Copy* copy, int64_t most_bytes) const;
  static constexpr int64_t kCopyPieceBytes = int64_t{1} << 20;

  static constexpr int64_t kFewestBytes = 16384;

 private:
  struct Place {
    uint64_t key = 0;  // 0: free
    int64_t stream_time_ms = 0;
  };
  static constexpr int64_t kPlaces = 8;
  using Line = std::array<Place, kPlaces>;
  static constexpr int64_t kFewestLines = kFewestBytes / int64_t{sizeof(Line)};
  static constexpr int64_t kMovesKept = 4096;

  PassedIds(absl::Duration horizon, LineMemory memory)
      : horizon_ms_(absl::ToInt64Milliseconds(horizon)), memory_(std::move(memory)) {}

  template <typename Self, typename Fields>
  static void TransferOf(Self& self, Fields& fields) {
    fields.Time(self.now_ms_);
    fields.Time(self.first_ms_);
    fields.Count(self.swept_);
    fields.Count(self.displaced_);
  }

  static uint64_t Key(IdHash id) { return id.a == 0 ? 1 : id.a; }
  Line* lines() const { return static_cast<Line*>(memory_.data()); }
  // The id's two lines, which may be one.
  std::pair<int64_t, int64_t> LinesOf(uint64_t key) const {
    return {LineOf(static_cast<uint32_t>(key)), LineOf(static_cast<uint32_t>(key >> 32))};
  }
  int64_t LineOf(uint32_t half) const;
  const Place* Find(uint64_t key) const;
  bool Expired(const Place& place, int64_t now_ms) const;
  int64_t Kept(const Line& line) const;
  void Insert(Line* line, const Place& place);
  void MoveOne(int64_t from);
  void NoteMove(int64_t to);
  void Sweep();
  void GrowByALine();
  bool IsElsewhere(const Place& place, int64_t line) const;

  const int64_t horizon_ms_;
  LineMemory memory_;
  int64_t line_count_ = kFewestLines;
  int64_t whole_ = kFewestLines;  // the largest power of two that is not above line_count_
  int64_t swept_ = 0;             // the next line to look through
  int64_t ids_ = 0;               // places that are not free
  int64_t displaced_ = 0;         // ids that another one displaced before the horizon
  // The lines of the last kMovesKept moves, in a ring; null before the first.
  std::unique_ptr<int64_t[]> moved_to_;
  int64_t moves_ = 0;                 // made in all
  int64_t now_ms_ = kNoStreamTime;    // the last time remembered
  int64_t first_ms_ = kNoStreamTime;  // the first one, at which all that came before counts as passed
};

}  // namespace lethe

#endif  // LETHE_SRC_SECOND_OPINION_PASSED_IDS_H_
