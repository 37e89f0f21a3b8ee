// Membership filters that forget: what the stage asks of one, and how to make one.
#ifndef LETHE_FILTER_H_
#define LETHE_FILTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/memory_budget.h"
#include "lethe/options.h"
#include "lethe/status.h"

namespace lethe {

// An id and the stream time at which it was judged. Stream time is in milliseconds since the Unix
// epoch, Kafka's own unit; kNoStreamTime until the stream has a time.
struct TimedId {
  IdHash id;
  int64_t stream_time_ms = 0;
};
inline constexpr int64_t kNoStreamTime = INT64_MIN;

// All that a filter is, for a snapshot.
struct FilterImage {
  std::string books;                           // what it knows besides the bits; at most kMostBytesOfBooks
  std::vector<absl::Span<const char>> memory;  // the bits, where they are
  int64_t epoch = 0;                           // Filter::ImageEpoch()
  std::shared_ptr<void> copy = nullptr;        // of BeginCopy: what an engine keeps until the copy is made

  static constexpr int64_t kMostBytesOfBooks = int64_t{1} << 20;
};

// A set of ids that forgets those older than a horizon H, in bounded memory.
//
// Promise: an id that was inserted at stream time s is contained at every stream time up to s + H, as
// long as the memory limit was not reached (FilterStatus says so). An id that was never inserted is
// contained with a probability that Status() states. What lies between H and the true window may get
// either answer. Three engines are there for comparison and do not keep it: kBloom, kRecycled, kOpposite.
//
// The times in one call and from call to call must not decrease; a time below the last one counts as
// the last one, and kNoStreamTime leaves time where it is.
//
// Insert, Replay, TestAndInsert and AdvanceTo do not throw: what the system has no memory for is as what the
// budget has none for, and the filter does as at the limit. The others may throw std::bad_alloc, and change
// nothing then.
//
// Thread safety: none. The stage gives every shard a filter and a lock. Const methods may run together.
class Filter {
 public:
  virtual ~Filter() = default;

  // contained[i] says whether ids[i] is in the set. Changes nothing: neither the set, nor its time.
  // Spans are of equal size. Does not allocate.
  virtual void Contains(absl::Span<const IdHash> ids, absl::Span<Verdict> verdicts) const = 0;

  // Inserts each id, whether it is contained or not, at its stream time (which may refresh the filter).
  virtual void Insert(absl::Span<const TimedId> ids) = 0;

  // For each in order: the id was passed at its time, or is a copy of one that was; which, nobody knows any
  // more. From then on it is contained as after Insert. A filter that can takes no room for an id that it
  // already contains, and forgets that entry later instead; it may take the id for another that it holds,
  // with the probability of a false positive.
  virtual void Replay(absl::Span<const TimedId> ids) { Insert(ids); }

  // For each in order: advances to its time; contained is kDuplicate, else kUnique and inserted.
  virtual void TestAndInsert(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) = 0;

  // Moves the filter's time forward without an insertion: what is out of the window is forgotten.
  virtual void AdvanceTo(int64_t stream_time_ms) = 0;

  virtual FilterStatus Status() const = 0;

  // The same without what must be looked for in the filter's memory, such as the estimated rate, which is
  // left 0. The stage asks while events wait, so it takes microseconds where Status() does not.
  virtual FilterStatus Figures() const { return Status(); }

  // What Figures() leaves out, found in steps of some microseconds; the filter may change between two of
  // them, and must not while one runs.
  class Sample {
   public:
    virtual ~Sample() = default;
    // Goes on. True if it has seen enough.
    virtual bool Look() = 0;
    virtual void Describe(FilterStatus* status) const = 0;
  };
  // Null if Figures() leaves nothing out. The filter outlives it.
  virtual std::unique_ptr<Sample> BeginSample() const { return nullptr; }

  // Another target from now on; what is in the filter keeps its rate until it is forgotten. False, and
  // nothing is changed, if ids that are in it could not be found any more, or if it takes its form from the
  // target it was made for.
  virtual bool SetTargetFpp(double /*target_fpp*/) { return false; }

  // The filter as it is; the spans are valid until it changes. Unimplemented unless an engine overrides both
  // of these.
  virtual absl::StatusOr<FilterImage> Image() const;

  // An image whose memory is copied by CopyMemory, part by part in order, with insertions in between. The
  // spans are only to be given to CopyMemory.
  virtual absl::StatusOr<FilterImage> BeginCopy() const { return Image(); }

  // Copies a part of a span of such an image to `to`. False, and the copy is good for nothing, if the filter
  // has changed in a way that the image does not allow: begin another.
  virtual bool CopyMemory(const FilterImage& image, absl::Span<const char> part, char* to) const;

  // While this is the same as in an image, the image's memory is where it was, and may be copied piece by
  // piece with insertions in between: together with the image's books it is a filter that holds all that was
  // inserted before the image, some of what was inserted since, and nothing else. (So it changes when time
  // takes a generation away or begins one, and when bits are moved.)
  virtual int64_t ImageEpoch() const { return 0; }

  // Makes a new filter, with the same horizon and target, what `books` say, and returns where the bits are
  // to be put: spans of the same sizes, `bytes` together, in their order. Takes the memory from the budget
  // before it is allocated. The books may be anyone's: DataLoss if they are not those of such a filter, or
  // not of so many bytes, ResourceExhausted if there is not the memory. After an error, or if the bits are
  // not put there, the filter is good for nothing but its destruction.
  virtual absl::StatusOr<std::vector<absl::Span<char>>> Restore(absl::string_view books, int64_t bytes);

  // Called when the bits are there. False if they cannot be those of such a filter, which then is good for
  // nothing but its destruction.
  virtual bool Restored() { return true; }
};

struct FilterOptions {
  absl::Duration horizon = absl::Hours(24);
  double target_fpp = 1e-6;
  // Where the filter's memory is taken from; outlives the filter.
  MemoryBudget* memory = nullptr;
  AtMemoryLimit at_memory_limit = AtMemoryLimit::kShortenWindow;
  Engine engine = Engine::kCompact;
  Adaptation adaptation = Adaptation::kBudget;
};

// InvalidArgument if the options cannot be met (with the nearest that can be), ResourceExhausted if the
// memory for the smallest such filter is not there. May throw std::bad_alloc, as a FilterFactory may:
// DedupStage::Open makes a status of it.
absl::StatusOr<std::unique_ptr<Filter>> NewFilter(const FilterOptions& options);

}  // namespace lethe

#endif  // LETHE_FILTER_H_
