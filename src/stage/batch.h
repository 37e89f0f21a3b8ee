// A chunk of events with their stream times, grouped by shard.
#ifndef LETHE_SRC_STAGE_BATCH_H_
#define LETHE_SRC_STAGE_BATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/filter.h"

namespace lethe {

// An uninitialized array on the stack: most calls need only a small part of it.
template <typename T, size_t kSize>
class RawArray {
 public:
  RawArray() {}  // NOLINT(modernize-use-equals-default): a defaulted one would be deleted
  T& operator[](size_t i) { return values_[i]; }
  T* data() { return values_; }

 private:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  union {
    T values_[kSize];
  };
};

// The events of one shard in a batch, in their order.
struct ShardEvents {
  absl::Span<const TimedId> ids;
  const Event* batch = nullptr;
  const uint16_t* origins = nullptr;  // the index of each id in the batch; null: its own index

  absl::string_view Payload(size_t i) const { return batch[origins == nullptr ? i : origins[i]].payload; }
};

// Groups up to kCapacity events by shard, in their order within each shard (a counting sort), and returns the
// verdicts in the order of the events. If all events are of one shard, nothing moves. It is on the stack
// (some 28 KB), so judging allocates nothing in any number of threads.
class Batch {
 public:
  static constexpr size_t kCapacity = 1024;
  static constexpr size_t kMostShards = 256;

  // Bits 1 to 8 of b: filters use neither these nor bit 0 for lines and positions.
  static size_t ShardOf(IdHash id, size_t shards) { return (id.b >> 1) & (shards - 1); }

  // At least one event and at most kCapacity; `shards` is a power of two, at most kMostShards.
  Batch(absl::Span<const Event> events, size_t shards)
      : events_(events),
        shards_(shards),
        grouped_(shards > 1 && events.size() > 1),
        only_shard_(ShardOf(events[0].id, shards)) {
    if (!grouped_) return;
    std::fill_n(places_.data(), shards_, uint16_t{0});
    for (const Event& event : events_) ++places_[ShardOf(event.id, shards_)];
    uint16_t begin = 0;
    for (size_t shard = 0; shard < shards_; ++shard) {
      const uint16_t size = places_[shard];
      places_[shard] = begin;
      begin = static_cast<uint16_t>(begin + size);
    }
  }

  size_t size() const { return events_.size(); }

  // Gives each event, in order, the stream time `time_of(event)`. Call it once.
  template <typename TimeOf>
  void Stamp(TimeOf time_of) {
    for (size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      const size_t place = grouped_ ? places_[ShardOf(event.id, shards_)]++ : i;
      if (grouped_) origins_[place] = static_cast<uint16_t>(i);
      ids_[place] = {event.id, time_of(event)};
    }
  }

  // Calls visit(i, time) for each event, after Stamp().
  template <typename Visit>
  void ForEachTime(Visit visit) {
    for (size_t place = 0; place < events_.size(); ++place) {
      visit(grouped_ ? size_t{origins_[place]} : place, ids_[place].stream_time_ms);
    }
  }

  // Calls visit(shard, events) for each shard that has events.
  template <typename Visit>
  void ForEachShard(Visit visit) {
    ForEachGroup([&](size_t shard, size_t begin, size_t end) { visit(shard, Group(begin, end)); });
  }

  // Calls judge(shard, events, verdicts) for each shard that has events, and puts the verdicts where the
  // events were.
  template <typename Judge>
  void JudgeEachShard(absl::Span<Verdict> verdicts, Judge judge) {
    if (!grouped_) {
      judge(only_shard_, Group(0, events_.size()), verdicts);
      return;
    }
    ForEachGroup([&](size_t shard, size_t begin, size_t end) {
      judge(shard, Group(begin, end), absl::MakeSpan(verdicts_.data() + begin, end - begin));
    });
    for (size_t place = 0; place < events_.size(); ++place) verdicts[origins_[place]] = verdicts_[place];
  }

 private:
  ShardEvents Group(size_t begin, size_t end) {
    return {.ids = absl::MakeConstSpan(ids_.data() + begin, end - begin),
            .batch = events_.data(),
            .origins = grouped_ ? origins_.data() + begin : nullptr};
  }

  template <typename Visit>
  void ForEachGroup(Visit visit) {
    if (!grouped_) {
      visit(only_shard_, size_t{0}, events_.size());
      return;
    }
    size_t begin = 0;
    for (size_t shard = 0; shard < shards_; ++shard) {
      const size_t end = places_[shard];
      if (begin != end) visit(shard, begin, end);
      begin = end;
    }
  }

  const absl::Span<const Event> events_;
  const size_t shards_;
  const bool grouped_;
  const size_t only_shard_;                 // of all events, if they are not grouped
  RawArray<uint16_t, kMostShards> places_;  // where the next event of a shard goes; after all, group ends
  RawArray<uint16_t, kCapacity> origins_;   // where in events_ the event of a place came from
  RawArray<TimedId, kCapacity> ids_;        // by place
  RawArray<Verdict, kCapacity> verdicts_;   // by place
};

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_BATCH_H_
