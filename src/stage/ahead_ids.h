// What came ahead of stream time: in a quiet partition nearly all records, in another the first after a
// silence.
#ifndef LETHE_SRC_STAGE_AHEAD_IDS_H_
#define LETHE_SRC_STAGE_AHEAD_IDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "lethe/event.h"
#include "lethe/filter.h"
#include "src/stage/stream_time.h"

namespace lethe {

class FieldReader;
class FieldWriter;

// Stream time lags 50 records behind, so that no few wild timestamps move it. Where 50 records take long, it
// tells nothing about two of them: it stands for days before it starts, and then jumps. (An id that passes
// before a silence of more than a horizon ends would look older than the horizon when stream time has crossed
// the silence, 50 records later; one that comes again after days would look young.)
//
// So a record that comes more than a sixteenth of the horizon ahead of stream time is judged by its own
// timestamp, and its id is kept here with that until stream time has come to it, at most for 101 records;
// then it goes into the filter once more, as of that timestamp, or of stream time if this is earlier. (Stream
// time may have jumped far beyond it, as it does early in a replay.) In detail:
//   - The time at which an id passed counts as the latest of its record's timestamp and of the two before.
//     One that is here is a copy up to a horizon after that. (A record without a timestamp may have come
//     after a silence: the next timestamp counts, too.)
//   - Ids that leave before stream time has come to them (before it starts, for one that is too wild, since
//     older records are read in between, or for want of room) are younger than the filter knows then. It is
//     asked for a time that is earlier by the most of that, until the horizon has gone by.
//   - A copy that is remembered again (with StageOptions::renew, and in a replay, where any may have passed)
//     may be dated earlier than its id passed. Where the id is here, the later of the two counts. Where it
//     has left, the filter knows when it passed: what comes then is a copy by either.
//   - A timestamp ahead of stream time is believed where records are sparse: the majority of the last 21 (5
//     suffice) that is nearest together spans more than a 64th of the horizon. It may be later than that
//     majority by three times its span, or else the last five must all be later, the earliest of which then
//     counts. An id that is not here is as old, by what is believed, as the filter says.
// So up to 10 wild timestamps in any 21 change nothing in a dense partition. In a sparse one they keep ids
// longer, but a copy within the horizon passes only if its own timestamp is wrong, or that of the record that
// has passed and those of the two before.
//
// Times are in milliseconds. Invariant: at most kMost entries, in the order in which they came. A copy (4 KB)
// is a saved state. Thread-compatible.
class AheadIds {
 public:
  // Records after which stream time has come to a record, whatever its timestamp is.
  static constexpr int64_t kMost = StreamTime::kWindow;
  // Timestamps that are looked at.
  static constexpr int64_t kRecent = 21;

  explicit AheadIds(int64_t horizon_ms) : horizon_ms_(horizon_ms) {}

  bool IsAhead(int64_t time_ms, int64_t now_ms) const { return time_ms > now_ms + horizon_ms_ / 16; }
  // Whether the next record may have to do with what is kept here, though it is not ahead itself.
  bool Watches(int64_t now_ms) const { return size_ > 0 || IsAhead(LatestOf(3), now_ms); }

  // A record was read; kNoStreamTime: it has no timestamp.
  void Read(int64_t time_ms) {
    if (time_ms == kNoStreamTime) return;
    recent_[static_cast<size_t>(read_ % kRecent)] = Clamp(time_ms);
    ++read_;
    if (__builtin_expect(size_ > 0 && entries_[size_ - 1].is_untimed, 0)) DateUntimed(Clamp(time_ms));
  }

  // Of the record that was read last, at stream time `now_ms`: when its id passes, if it does.
  int64_t PassesAt(int64_t now_ms) const;
  // The time by which it is judged: stream time, or its own if that is believed; of a record without a
  // timestamp, the one before.
  int64_t JudgedAt(int64_t time_ms, int64_t now_ms) const;
  // JudgedAt, as the filter is asked, whose ids may be that much younger than it knows: those that were
  // released were up to a sixteenth of the horizon ahead, and those that left before (EarlyBy).
  int64_t AskedAt(int64_t judged_ms, int64_t now_ms) const;

  struct Entry {
    IdHash id;
    int64_t passed_ms = 0;
    int64_t record = 0;          // read_ then
    bool is_untimed = false;     // as long as no timestamp has come since
    bool filter_had_it = false;  // when it came, and may know a later time at which it passed
  };

  // Null: the id is not here.
  const Entry* Find(IdHash id) const;
  // `entry` without `record`; `before` is what Find() says of its id. Returns an id that leaves for it,
  // before its time: it goes into the filter at `now_ms`.
  std::optional<IdHash> Put(Entry entry, const Entry* before, int64_t now_ms);
  void Forget(const Entry* entry);

  // Stream time has begun with this value, as of which the filter counts what it has.
  void Begin(int64_t first_ms) { counted_ms_ = first_ms; }
  // Forgets one that stream time has come to, the earliest first, with the time at which it goes into the
  // filter. Those that the horizon has passed, too, do not go there, and none before stream time begins.
  std::optional<TimedId> Release(int64_t now_ms);

  // For a snapshot. False if the fields are none of this.
  void Save(FieldWriter* fields) const;
  bool Restore(FieldReader* fields);

 private:
  static constexpr int64_t kFewest = 5;

  void Erase(size_t place);
  template <typename Self, typename Fields>
  static void Transfer(Self& self, Fields& fields);
  static int64_t Clamp(int64_t time_ms);
  void DateUntimed(int64_t time_ms);
  // An id that passed then leaves before stream time has come to it.
  void Leave(int64_t passed_ms, int64_t now_ms);
  // By how much ids that left may be younger than the filter knows.
  int64_t EarlyBy(int64_t now_ms) const;
  // The latest timestamp of the last `records`; kNoStreamTime: there is none.
  int64_t LatestOf(int64_t records) const;
  int64_t EarliestOf(int64_t records) const;

  int64_t horizon_ms_;
  std::array<int64_t, kRecent> recent_{};  // a ring of timestamps
  int64_t read_ = 0;                       // how many were
  std::array<Entry, kMost> entries_;
  size_t size_ = 0;
  int64_t left_ms_ = kNoStreamTime;     // of the ids that left before their time, when the last passed
  int64_t counted_ms_ = kNoStreamTime;  // when it passed as the filter knows
};

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_AHEAD_IDS_H_
