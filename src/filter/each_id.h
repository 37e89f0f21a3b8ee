// Batches of ids for filters that look at one id at a time.
#ifndef LETHE_SRC_FILTER_EACH_ID_H_
#define LETHE_SRC_FILTER_EACH_ID_H_

#include <algorithm>
#include <cstddef>

#include "lethe/filter.h"

namespace lethe {

// The batch calls of Filter, made of calls for one id that a Derived (which befriends this class) has:
//   bool ContainsId(IdHash) const;
//   void InsertId(IdHash);
// and may have, in place of the ones here:
//   bool TestAndInsertId(IdHash);     // true if it was contained
//   void ReplayId(IdHash);            // Filter::Replay of one
//   void PrefetchId(IdHash) const;    // asks for the memory that the other calls will read
template <typename Derived>
class EachIdFilter : public Filter {
 public:
  void Contains(absl::Span<const IdHash> ids, absl::Span<Verdict> verdicts) const final {
    ForEach(
        ids.size(), [&](size_t i) { derived().PrefetchId(ids[i]); },
        [&](size_t i) { verdicts[i] = ToVerdict(derived().ContainsId(ids[i])); });
  }

  void Insert(absl::Span<const TimedId> ids) final {
    ForEach(
        ids.size(), [&](size_t i) { derived().PrefetchId(ids[i].id); },
        [&](size_t i) {
          derived().AdvanceTo(ids[i].stream_time_ms);
          derived().InsertId(ids[i].id);
        });
  }

  void Replay(absl::Span<const TimedId> ids) final {
    ForEach(
        ids.size(), [&](size_t i) { derived().PrefetchId(ids[i].id); },
        [&](size_t i) {
          derived().AdvanceTo(ids[i].stream_time_ms);
          derived().ReplayId(ids[i].id);
        });
  }

  void TestAndInsert(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) final {
    ForEach(
        ids.size(), [&](size_t i) { derived().PrefetchId(ids[i].id); },
        [&](size_t i) {
          derived().AdvanceTo(ids[i].stream_time_ms);
          verdicts[i] = ToVerdict(derived().TestAndInsertId(ids[i].id));
        });
  }

 protected:
  void PrefetchId(IdHash) const {}

  void ReplayId(IdHash id) { derived().InsertId(id); }

  bool TestAndInsertId(IdHash id) {
    if (derived().ContainsId(id)) return true;
    derived().InsertId(id);
    return false;
  }

 private:
  // Of two lines each: as many cache misses as a core can have under way, and some.
  static constexpr size_t kAhead = 16;

  // Calls prefetch(i) for each of so many ids, and process(i) when kAhead more have been asked for.
  template <typename Prefetch, typename Process>
  static void ForEach(size_t count, const Prefetch& prefetch, const Process& process) {
    for (size_t i = 0; i < std::min(kAhead, count); ++i) prefetch(i);
    for (size_t i = 0; i < count; ++i) {
      if (i + kAhead < count) prefetch(i + kAhead);
      process(i);
    }
  }

  static Verdict ToVerdict(bool contained) { return contained ? Verdict::kDuplicate : Verdict::kUnique; }
  Derived& derived() { return static_cast<Derived&>(*this); }
  const Derived& derived() const { return static_cast<const Derived&>(*this); }
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_EACH_ID_H_
