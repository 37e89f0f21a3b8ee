// Batches of ids for filters that look at one id at a time.
#ifndef LETHE_SRC_FILTER_EACH_ID_H_
#define LETHE_SRC_FILTER_EACH_ID_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "src/filter/engine_filter.h"

// A Derived's Run() may be compiled for a certain processor; only inlined code is compiled along with it.
#define LETHE_INLINE __attribute__((always_inline))

namespace lethe {

// The batch calls of Filter, made of calls for one id that a Derived (which befriends this class) has:
//   bool ContainsId(IdHash) const;
//   void InsertId(IdHash);
// and may have, in place of the ones here:
//   bool TestAndInsertId(IdHash);     // true if it was contained
//   bool ContainsIdAt(const TimedId&) const;  // at that time, without going there
//   void PrefetchId(IdHash) const;    // asks for the memory that the other calls will read
//   template <typename Loop> static void Run(const Loop&);  // calls a loop over a batch
template <typename Derived, typename Base = EngineFilter>
class EachIdFilter : public Base {
 public:
  using Base::Base;

  // As of now, to which no time is a time to come. So there is one loop of lookups and not two, which plugins
  // would carry for each processor; the copies cost less than a lookup.
  void Contains(absl::Span<const IdHash> ids, absl::Span<Verdict> verdicts) const final {
    std::array<TimedId, 64> timed;
    for (size_t first = 0; first < ids.size(); first += timed.size()) {
      const size_t count = std::min(timed.size(), ids.size() - first);
      for (size_t i = 0; i < count; ++i) timed[i] = {.id = ids[first + i], .stream_time_ms = kNoStreamTime};
      ContainsAt({timed.data(), count}, verdicts.subspan(first, count));
    }
  }

  // Pointers, since spans check each index.
  void ContainsAt(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) const final {
    const TimedId* const id = ids.data();
    Verdict* const verdict = verdicts.data();
    ForEach(
        ids.size(), [=, this](size_t i) LETHE_INLINE { derived().PrefetchId(id[i].id); },
        [=, this](size_t i) LETHE_INLINE { verdict[i] = ToVerdict(derived().ContainsIdAt(id[i])); });
  }

  void Insert(absl::Span<const TimedId> ids) final {
    const TimedId* const id = ids.data();
    ForEach(
        ids.size(), [=, this](size_t i) LETHE_INLINE { derived().PrefetchId(id[i].id); },
        [=, this](size_t i) LETHE_INLINE {
          derived().AdvanceTo(id[i].stream_time_ms);
          derived().InsertId(id[i].id);
        });
  }

  void TestAndInsert(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) final {
    const TimedId* const id = ids.data();
    Verdict* const verdict = verdicts.data();
    ForEach(
        ids.size(), [=, this](size_t i) LETHE_INLINE { derived().PrefetchId(id[i].id); },
        [=, this](size_t i) LETHE_INLINE {
          derived().AdvanceTo(id[i].stream_time_ms);
          verdict[i] = ToVerdict(derived().TestAndInsertId(id[i].id));
        });
  }

 protected:
  void PrefetchId(IdHash) const {}

  bool ContainsIdAt(const TimedId& timed) const { return derived().ContainsId(timed.id); }

  template <typename Loop>
  static void Run(const Loop& loop) {
    loop();
  }

  // Filter::Replay for a Derived that has ReplayId(IdHash).
  void ReplayEach(absl::Span<const TimedId> ids) {
    const TimedId* const id = ids.data();
    ForEach(
        ids.size(), [=, this](size_t i) LETHE_INLINE { derived().PrefetchId(id[i].id); },
        [=, this](size_t i) LETHE_INLINE {
          derived().AdvanceTo(id[i].stream_time_ms);
          derived().ReplayId(id[i].id);
        });
  }

  bool TestAndInsertId(IdHash id) {
    if (derived().ContainsId(id)) return true;
    derived().InsertId(id);
    return false;
  }

 private:
  // Two lines for each: somewhat more cache misses than a core can have under way.
  static constexpr size_t kAhead = 16;

  // Calls prefetch(i) for each id, and process(i) when kAhead later ones were prefetched.
  template <typename Prefetch, typename Process>
  static void ForEach(size_t count, const Prefetch& prefetch, const Process& process) {
    Derived::Run([count, prefetch, process]() LETHE_INLINE {
      for (size_t i = 0; i < std::min(kAhead, count); ++i) prefetch(i);
      for (size_t i = 0; i < count; ++i) {
        if (__builtin_expect(i + kAhead < count, 1)) prefetch(i + kAhead);
        process(i);
      }
    });
  }

  static Verdict ToVerdict(bool contained) { return contained ? Verdict::kDuplicate : Verdict::kUnique; }
  Derived& derived() { return static_cast<Derived&>(*this); }
  const Derived& derived() const { return static_cast<const Derived&>(*this); }
};

}  // namespace lethe

#undef LETHE_INLINE

#endif  // LETHE_SRC_FILTER_EACH_ID_H_
