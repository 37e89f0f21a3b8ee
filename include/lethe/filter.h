// Membership filters that forget: the interface of an engine, and how to make one of lethe's. For programs
// that bring a filter of their own (DedupStage::Create), or that use a filter without a stage.
#ifndef LETHE_FILTER_H_
#define LETHE_FILTER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/export.h"
#include "lethe/memory_budget.h"
#include "lethe/options.h"
#include "lethe/status.h"

namespace lethe {

class EngineFilter;

// An id and the stream time at which it was judged. Stream time is in milliseconds since the Unix epoch, as
// in Kafka; kNoStreamTime until the stream has a time.
struct TimedId {
  IdHash id;
  int64_t stream_time_ms = 0;
};
inline constexpr int64_t kNoStreamTime = INT64_MIN;

// A set of ids that forgets those older than a horizon H, in bounded memory.
//
// Promise: an id that was inserted at stream time s is contained at every stream time up to s + H, as long as
// the memory limit was not reached (FilterStatus says so). An id that was never inserted is contained with a
// probability that Status() states. Between H and the true window either answer is right.
//
// The times in one call and from call to call must not decrease; a time below the last one counts as the last
// one, and kNoStreamTime leaves time unchanged.
//
// Errors: Insert, Replay, TestAndInsert and AdvanceTo do not throw; they treat an allocation failure like an
// exhausted memory limit. The others may throw std::bad_alloc, and change nothing then.
//
// Thread safety: none. The stage gives every shard a filter and a lock. Const methods may run together.
class LETHE_EXPORT Filter {
 public:
  virtual ~Filter() = default;

  // Says for each id whether it is in the set. Changes neither the set nor its time. Spans are of equal size.
  // Does not allocate.
  virtual void Contains(absl::Span<const IdHash> ids, absl::Span<Verdict> verdicts) const = 0;

  // The same for times to come: what Contains() would say of each id after AdvanceTo() its time. So a
  // transaction, during which the filter's time stands, judges as if it did not. The default says what
  // Contains() says now: ids of such a filter are not forgotten within a transaction, however long it is.
  virtual void ContainsAt(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) const {
    for (size_t i = 0; i < ids.size(); ++i) Contains({&ids[i].id, 1}, verdicts.subspan(i, 1));
  }

  // Inserts each id, whether it is contained or not, at its stream time (which may refresh the filter).
  virtual void Insert(absl::Span<const TimedId> ids) = 0;

  // Inserts ids of which some are copies of others, without knowing which. Each is contained afterwards as
  // after Insert. A filter that can takes no room for an id that it already contains, and forgets that entry
  // later instead; with the probability of a false positive it takes the id for another one.
  virtual void Replay(absl::Span<const TimedId> ids) { Insert(ids); }

  // For each in order: advances to its time; if it is contained, kDuplicate, else kUnique and inserted.
  virtual void TestAndInsert(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) = 0;

  // Moves the filter's time forward without an insertion; ids outside of the window are forgotten.
  virtual void AdvanceTo(int64_t stream_time_ms) = 0;

  virtual FilterStatus Status() const = 0;

  // The status without the figures that need a look through the filter's memory, such as the estimated rate;
  // those are 0. The stage calls it while events wait, so it takes microseconds.
  virtual FilterStatus Figures() const { return Status(); }

 private:
  friend class Shard;
  friend class EngineFilter;
  // Of lethe's own filters. (A cast would need the RTTI of a program's filter, which may have none.)
  virtual EngineFilter* AsEngineFilter() { return nullptr; }
};

struct FilterOptions {
  absl::Duration horizon = absl::Hours(24);
  double target_fpp = 1e-6;
  // Where the filter's memory is taken from; outlives the filter.
  MemoryBudget* memory = nullptr;
  Engine engine = Engine::kCompact;  // of NewFilter()
};

// InvalidArgument if the options cannot be met (with the nearest possible ones), ResourceExhausted if there
// is no memory for the smallest such filter. May throw std::bad_alloc, as a FilterFactory may;
// DedupStage::Open turns it into a status.
LETHE_EXPORT absl::StatusOr<std::unique_ptr<Filter>> NewFilter(const FilterOptions& options);

}  // namespace lethe

#endif  // LETHE_FILTER_H_
