// The audit measures on the real traffic how many verdicts of a filter are wrong.
#ifndef LETHE_SRC_FPP_AUDIT_H_
#define LETHE_SRC_FPP_AUDIT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lethe/event.h"
#include "lethe/filter.h"
#include "lethe/memory_budget.h"
#include "lethe/status.h"
#include "src/filter/ordered_id_set.h"

namespace lethe {

class FieldReader;
class FieldWriter;
class SnapshotReader;
class SnapshotWriter;

// Remembers exactly which of the audited ids one filter has seen, when, with which payload, and whether they
// passed, and compares every verdict on such an id with that. It gets all that the filter gets, and the
// beginnings and ends of transactions, in the same order. It never changes a verdict.
//
// An event is one of three. A *copy*: its id was passed within the horizon, by the event's stream time; if
// it is passed, it was missed. *Fresh*: its id was not seen, or so long ago, by the filter's own time, that
// the filter must have forgotten it; if it is not passed, a unique event is lost. In between it is not
// counted: past the horizon the filter may give either answer, and a second copy of a lost event gets the
// same answer as the first, so counting it again would distort the rate. "So long ago" is the filter's
// present window and an interval: past the end of a window ids fade for about that long.
//
// The set is in parts of at most kMostPlaces, by bits of the id, so that no call does more than look through
// one of them. Memory comes from the budget: 48 bytes per place, of which 3/8 are in use on average. When a
// part is full, ids that were forgotten, or are no longer audited, are removed; then it doubles, or is split
// in two; where the budget refuses that, or the system has no memory, the audited share is halved, as often
// as it takes, and half of the ids leave, those of other parts when these are full. A rate is the same for
// any share, so the counts continue. If memory is lacking to ask the filter whether an id is fresh, the event
// is not counted. So no call fails.
//
// Invariant: every audited id that was seen within the horizon is in the exact set (or pending).
// Thread-compatible; the filter and the budget outlive it.
class Audit {
 public:
  // `key` is of the payloads' hash. `renews`: the filter remembers copies, too (StageOptions::renew).
  Audit(double share, absl::Duration horizon, const Filter* filter, MemoryBudget* memory, HashKey key,
        bool renews = false);
  ~Audit();
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  // By bits 9 to 24 of b: not those that choose shards, nor those from which filters take lines.
  bool Audits(IdHash id) const { return ((id.b >> 9) & 0xffff) < threshold_; }

  // The filter's time has moved.
  void AdvanceTo(int64_t stream_time_ms) {
    if (stream_time_ms <= now_ms_) return;
    if (now_ms_ == kNoStreamTime) first_ms_ = stream_time_ms;
    now_ms_ = stream_time_ms;
  }

  // The filter has no time yet, and the open transaction has: what came before counts as of then.
  void BeginsAt(int64_t stream_time_ms) { pending_first_ms_ = stream_time_ms; }

  // The next six are for audited ids. Judged outside of a transaction; the filter is at the event's time.
  // Where the event's own time decided (AheadIds), what the filter knows is no measure, so only payloads are
  // compared.
  void Judged(const TimedId& timed, bool passed, absl::string_view payload, bool by_own_time = false);
  // Judged in the open transaction, against the filter and what is pending.
  void JudgedPending(const TimedId& timed, bool passed, absl::string_view payload, bool by_own_time = false);
  // The filter has renewed the id.
  void Renewed(const TimedId& timed);
  void RenewedPending(const TimedId& timed);
  void Replayed(const TimedId& timed, absl::string_view payload);
  void Forget(IdHash id) { pending_.Forget(id); }

  void Commit();
  void Abort();

  AuditStatus Status() const;
  // Without the rate and its interval, which take a microsecond and more.
  AuditStatus Counted() const;

  // For a snapshot: first all but the ids, then the ids. Only a new audit can be restored. It reserves memory
  // with the ids, after the filter; if the budget has no room, the share is halved. False, or DataLoss, if an
  // audit cannot have saved this.
  struct SavedIds {
    int64_t places = 0;
    int64_t capacity = 0;
  };
  struct Seen {
    IdHash id;
    int64_t stream_time_ms = 0;
    uint64_t payload : 63 = 0;  // a hash of it, or 0 where it is not known
    bool passed : 1 = false;
  };
  void Save(FieldWriter* fields) const;
  bool Restore(FieldReader* fields, SavedIds* ids);
  // Calls visit(places) with all places of the set, some at a time.
  template <typename Visit>
  void VisitIds(const Visit& visit) const {
    for (const std::unique_ptr<Part>& part : parts_) visit(part->seen.places_in_order());
  }
  std::vector<Seen> CopyIds() const;
  static absl::Status SaveIds(absl::Span<const Seen> ids, SnapshotWriter* writer);
  absl::Status RestoreIds(const SavedIds& ids, SnapshotReader* reader);

 private:
  // The counts of AuditStatus.
  struct Counts {
    int64_t events = 0;
    int64_t fresh = 0;
    int64_t false_drops = 0;
    int64_t copies = 0;
    int64_t missed = 0;
    int64_t compared = 0;
    int64_t payload_mismatches = 0;
  };

  // Of the ids whose PartBits() end in the same `depth` bits.
  struct Part {
    OrderedIdSet<Seen> seen;
    size_t capacity = 0;
    int depth = 0;
  };
  static constexpr size_t kMostPlaces = 512;
  static constexpr int kMostDepth = 20;
  // Independent of the bits that choose shards and what is audited.
  static uint64_t PartBits(IdHash id) { return ((id.a ^ id.b >> 25) * 0x9e3779b97f4a7c15) >> 40; }
  Part& PartOf(IdHash id) { return *part_of_[PartBits(id) & (part_of_.size() - 1)]; }
  const Part& PartOf(IdHash id) const { return *part_of_[PartBits(id) & (part_of_.size() - 1)]; }
  // Committed. Null if it is not there.
  const Seen* Find(IdHash id) const { return PartOf(id).seen.Find(id); }

  template <typename Self, typename Fields>
  static void Transfer(Self& self, SavedIds& ids, Fields& fields);
  bool RestoreId(const Seen& seen, bool forgotten);
  Seen SeeAgain(const TimedId& timed, const Seen* before) const;
  Seen See(const TimedId& timed, bool passed, absl::string_view payload) const;
  // Counts an event by what is known of its id (or null). True if it is to be remembered.
  bool Count(const Seen* before, const Seen& event, bool by_own_time, Counts* counts);
  static void CountCopy(const Seen& first, const Seen& event, Counts* counts);
  void Remember(const Seen& seen);
  void RememberPending(const Seen& seen);
  bool MakeRoom(IdHash id);
  void DropForgotten(Part* part);
  bool Grow(Part* part);
  bool Split(Part* part);
  int64_t AgeMs(const Seen& seen, int64_t now_ms) const;
  // False if there is no memory to ask the filter.
  bool MeasureFading();

  const HashKey key_;
  const int64_t horizon_ms_;
  const bool renews_;
  const Filter* const filter_;
  MemoryBudget* const memory_;
  uint32_t threshold_;                // in 65,536ths of the ids
  int64_t fades_ms_;                  // the age from which an id is fresh
  int64_t now_ms_ = kNoStreamTime;    // the filter's time
  int64_t first_ms_ = kNoStreamTime;  // its first one, at which all that came before counts as inserted
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Part*> part_of_;                // by the lowest of PartBits(), as many as the deepest part has
  OrderedIdSet<Seen> pending_;                // seen first, or passed, in the open transaction
  int64_t pending_first_ms_ = kNoStreamTime;  // first_ms_, once it is committed
  Counts counts_;
  Counts pending_counts_;
};

// The audit of a partition, from those of its shards, each of which has this share of the ids: counts, and
// at the end the rate and interval of the sums.
void AddAudit(const AuditStatus& audit, double share, AuditStatus* all);
void SetAuditRate(AuditStatus* all);
// Of audits that each have the same share of the ids.
AuditStatus MergeAudits(absl::Span<const AuditStatus> audits);

}  // namespace lethe

#endif  // LETHE_SRC_FPP_AUDIT_H_
