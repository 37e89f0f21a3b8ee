// The `budget` policy: from horizon, target and memory to when an interval ends and how many lines there
// are. It knows columns and loads, not bits, so that it can be tested by itself.
#ifndef LETHE_SRC_REFERENCE_SLICED_BUDGET_H_
#define LETHE_SRC_REFERENCE_SLICED_BUDGET_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "lethe/filter.h"
#include "lethe/options.h"
#include "lethe/status.h"
#include "src/adapt/step_log.h"
#include "src/reference/sliced/arrivals.h"

namespace lethe {

class FieldReader;
class FieldWriter;

// Decides for a sliced filter.
//
// *Intervals.* The load of an interval is the sum over its inserts of 1 / lines. It ends when the load
// reaches the cap (`cap` comes from the target), or after a quarter of the horizon (with fewer than four past
// generations, their part of it), and only if a clean column is there for the next.
//
// *Columns.* Interval i sets columns i and i + 1 (modulo the columns of a cell), and is found as long as
// both are live. Column i may go when more than the horizon has passed since the last insert of interval
// i; a kept one stays longer while there are others. It is then dirty until a pass has cleared it. So the
// ring of columns is: live, clean, dirty. Where a cell has more columns than may be live, the others are
// there to be clean or dirty.
//
// *Lines.* Doubling the lines gives room in new intervals only; so it must be done before columns run
// out. With each tenth of a cap it is forecast when columns expire and how many are wanted until then; if
// they are short at any of those times, lines are doubled, again and again if need be. Lines are halved
// if every interval then still is below its cap, and the forecast, with a few more ids than expected,
// is not short. Where intervals of half the cap would do, or of a quarter and so on, they end there, so that
// they can be folded as soon as those of a busier time have expired.
//
// *The limit.* Where the forecast wants room and the memory is not there, that is a step of its own (once an
// interval), and costs nothing yet. If then an interval fills up with no clean column and none being cleared,
// the oldest interval is dropped before its time (kShortenWindow); or all intervals take as much over the
// cap as the forecast says that they must (kExceedFpp). Either is a limit hit. While memory can be had,
// no interval is dropped: one without a clean column goes on.
//
// *How much memory.* What a load needs is what the plan has for it (src/engines/plan.h): the lines with all
// intervals full, and a sixteenth. Lines come in doublings, so a steady load takes up to twice that, also
// after a jump, and on the way there, and again when a horizon has passed since it fell. A load that goes up
// and down within a horizon takes up to twice what its highest rate would need all along, since nobody can
// know that it falls again. Where the pages of new lines come late each time, by up to an eleventh of an
// interval, a jump takes up to 2.11 times what it needs: what comes meanwhile goes in at the old density.
//
// The owner carries out the passes and tells when they start and end; only one runs at a time.
// Thread safety: none.
class Budget {
 public:
  struct Options {
    int64_t horizon_ms = 0;
    // Columns that there are, an even number, so that neighbours differ in parity all around the ring; and of
    // these, how many may be live.
    int cell_columns = 16;
    int columns = 16;
    double cap = 1;
    AtMemoryLimit at_memory_limit = AtMemoryLimit::kShortenWindow;
    int64_t lines = 0;  // at first; never fewer
  };
  using Pass = FilterPass;

  explicit Budget(const Options& options);

  // Another target, and so another load at which an interval is full. Intervals that have ended stay as full
  // as they are.
  void SetCap(double cap);

  // What a Budget allocates, all of it when it is made.
  static int64_t HeapBytes(int columns);

  // Moves stream time, which must not decrease. O(columns).
  void AdvanceTo(int64_t now_ms);
  // Nothing happens by time alone before this time.
  int64_t next_event_ms() const { return next_event_ms_; }

  // `count` ids were inserted since the last call, none of them later than now, into the columns that were
  // future and present then. Must come before AdvanceTo takes time past next_event_ms().
  void AddInserts(int64_t count, int64_t now_ms);

  // An id of the interval that ended `age` intervals ago (0: the current one) has come again now, and is to
  // be remembered as if inserted now. Its interval's columns stay until the horizon has passed since then, as
  // long as no other interval wants them.
  void Keep(int age, int64_t now_ms);

  // The pass to run next; kNone if there is nothing to do. An unfold replaces a running sweep.
  Pass Wanted() const;
  // Columns to clear in it are those that are dirty now.
  void PassStarted(Pass pass);
  void PassEnded();
  // Whether an unfold is wanted only for what is kept, which does not justify the last of the memory.
  bool GrowsToKeep() const { return grows_to_keep_; }
  // The memory for a wanted unfold is not there.
  void UnfoldRefused();

  // Inserts in a full interval.
  double InsertsPerInterval() const { return options_.cap * static_cast<double>(lines_); }
  // Inserts between two calls of AddInserts that keep the intervals exact enough: a 64th of where they end,
  // so that one that is to be folded has not outgrown that when its end is seen.
  int64_t InsertsPerStep() const;
  // Small lines that a pass of this kind must take per insert to be ready in time.
  int64_t LinesPerInsert(Pass pass) const;

  int future_column() const { return Column(current_ + 1); }
  int live_columns() const { return static_cast<int>(current_ - oldest_ + 2); }
  int dirty_columns() const { return dirty_; }
  // Columns that may be live yet; and those of them that can be at once.
  int free_columns() const { return options_.columns - live_columns(); }
  int clean_columns() const { return std::min(free_columns(), unused_columns()); }
  // Those that are neither live nor dirty.
  int unused_columns() const { return options_.cell_columns - live_columns() - dirty_; }
  // The dirty ones end before the oldest live one.
  int first_dirty_column() const { return Column(oldest_ - dirty_ + options_.cell_columns); }
  int64_t lines() const { return lines_; }

  // Fills the shape, the pass, the counts and, as of now, the window of `status`.
  void Describe(int64_t now_ms, FilterStatus* status) const;
  // The loads of the live intervals, oldest first, preceded by that of the last dropped one.
  std::vector<double> Loads() const;
  // The same at the end of the last interval; empty before the first has ended.
  const std::vector<double>& LoadsAtRefresh() const { return loads_at_refresh_; }

  // The generations that the columns are, as of now, newest first, but for their fill.
  std::vector<GenerationStatus> Generations(int64_t now_ms) const;

  // For a snapshot. Restore, into a new one of the same options (but for the lines), is false if that is not
  // what one has saved whose owner's time was `now_ms`.
  void Save(FieldWriter* fields) const;
  bool Restore(int64_t now_ms, FieldReader* fields);
  Pass running_pass() const { return pass_; }
  // Grows with each interval that begins and each dropped column.
  int64_t turns() const { return refreshes_ + oldest_; }

  // The share of an interval in which the next column is swept.
  static constexpr double kSpare = 1.0 / 16;

 private:
  static constexpr int kMaxLevels = 40;
  static constexpr int64_t kNever = INT64_MAX;
  static constexpr size_t kSteps = 64;

  struct Interval {
    // Ids by the level at which they went in, or to which they were folded since: copying lines does not
    // thin what is in them, and folding copies back together adds nothing.
    std::array<int64_t, kMaxLevels> ids_at{};
    int64_t ids = 0;
    int64_t start_ms = kNoStreamTime;
    int64_t end_ms = kNoStreamTime;   // of the last insert
    int64_t kept_ms = kNoStreamTime;  // of the last Keep()
  };

  int Column(int64_t sequence) const { return static_cast<int>(sequence % options_.cell_columns); }
  Interval& At(int64_t sequence) { return ring_[static_cast<size_t>(sequence) % ring_.size()]; }
  const Interval& At(int64_t sequence) const { return ring_[static_cast<size_t>(sequence) % ring_.size()]; }
  double LinesAt(int level) const { return static_cast<double>(options_.lines << level); }
  double Load(const Interval& interval) const;
  double LoadIfFolded(const Interval& interval) const;
  void TakeLoads(std::vector<double>* loads) const;

  template <typename Self, typename Fields>
  static void Transfer(Self& self, Fields& fields);
  bool IsSound() const;

  void SetTime(int64_t now_ms);
  void Count(int64_t count);
  int64_t ExpiryOf(int64_t sequence) const;
  int64_t KeptUntil(int64_t sequence) const;
  void Expire();
  void DropOldest();
  void EndIntervalIfDue();
  void Refresh(absl::string_view reason);
  void AtCapWithoutColumn();
  void Forecast();
  bool Short(int64_t lines, double load, double cap, double expected_factor) const;
  bool CanFold();
  void ExpectAtExpiries(int64_t (Budget::*expiry_of)(int64_t) const);
  void SetNextEvent();
  void Record(AdaptationStep::Kind kind, absl::string_view reason);

  Options options_;  // constant but for the cap, and for a restore
  const int64_t longest_interval_ms_;
  std::vector<Interval> ring_;  // by sequence number
  int64_t oldest_ = 1;          // the oldest live interval
  int64_t current_ = 1;         // the one that takes inserts
  std::vector<double> loads_at_refresh_;
  int dirty_ = 0;
  int64_t first_ms_ = kNoStreamTime;  // when time began
  int64_t now_ms_ = kNoStreamTime;
  int64_t next_event_ms_ = kNever;

  int level_ = 0;  // lines_ = options_.lines << level_
  int64_t lines_;
  double load_ = 0;  // of the current interval
  Arrivals arrivals_;
  std::vector<double> expected_;  // ids until each live interval expires, oldest first
  int64_t inserts_since_forecast_ = 0;
  bool unfold_wanted_ = false;
  bool grows_to_keep_ = false;  // an unfold is wanted for what is only kept
  bool fold_wanted_ = false;
  // Where intervals end: the cap; less, to be folded later; more, at the limit under kExceedFpp.
  double interval_cap_;
  bool refused_in_interval_ = false;  // told once an interval
  bool growth_refused_ = false;       // since the last forecast that was not short

  Pass pass_ = Pass::kNone;
  int dirty_in_pass_ = 0;

  int64_t refreshes_ = 0;
  int64_t limit_hits_ = 0;
  StepLog steps_;
};

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_SLICED_BUDGET_H_
