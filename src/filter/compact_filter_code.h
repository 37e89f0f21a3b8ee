// The code of compact filters, as templates of the tag and the processor: compact_filter.cc and
// compact_filter_portable.cc compile it.
#ifndef LETHE_SRC_FILTER_COMPACT_FILTER_CODE_H_
#define LETHE_SRC_FILTER_COMPACT_FILTER_CODE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "src/filter/compact_control.h"
#include "src/filter/compact_filter.h"
#include "src/filter/compact_formats.h"
#include "src/filter/compact_table_code.h"
#include "src/filter/each_id.h"
#include "src/memory/line_memory.h"

namespace lethe {

// Invariant and thread safety are those of CompactControl.
template <typename Tag, typename Processor>
class CompactFilter final : public EachIdFilter<CompactFilter<Tag, Processor>, CompactControl> {
 public:
  CompactFilter(const FilterOptions& options, const CompactFormats& formats, CompactMemory memory)
      : Base(options, std::move(memory.own)), table_(formats, std::move(memory.lines)) {
    Base::Control(&table_);
  }

  static int64_t OwnBytes() { return sizeof(CompactFilter) + Base::HeapBytes(); }

  void AdvanceTo(int64_t stream_time_ms) override {
    if (stream_time_ms <= epochs_.now_ms()) return;
    const int64_t before_ms = epochs_.now_ms();
    if (epochs_.AdvanceTo(stream_time_ms)) NoteForgotten();
    if (__builtin_expect(epochs_.ids() > Base::due_over_ids_ || Base::budget_->IsOverdrawn(), 0)) {
      DoWork(Base::LinesDue(epochs_.now_ms(), before_ms));
    }
  }

 private:
  using Base = EachIdFilter<CompactFilter, CompactControl>;
  friend Base;
  using Base::epochs_;

  template <typename Loop>
  static void Run(const Loop& loop) {
    Processor::Run(loop);
  }
  [[gnu::always_inline]] void PrefetchId(IdHash id) const { table_.Prefetch(id); }

  [[gnu::always_inline]] bool ContainsId(IdHash id) const {
    return table_.Look(id, epochs_.span()).contained;
  }

  [[gnu::always_inline]] bool ContainsIdAt(const TimedId& timed) const {
    return table_.Look(timed.id, epochs_.SpanAt(timed.stream_time_ms)).contained;
  }

  [[gnu::always_inline]] bool TestAndInsertId(IdHash id) {
    const CompactFound found = table_.Look(id, epochs_.span());
    if (found.contained) return true;
    if (__builtin_expect(BeginEpochIfDue() || epochs_.ids() >= Base::limit_ids_, 0)) {
      AddLater(id);
    } else {
      Add(id, found);
    }
    return false;
  }

  [[gnu::always_inline]] void InsertId(IdHash id) {
    BeginEpochIfDue();
    const CompactFound found = table_.Look(id, epochs_.span());
    if (found.contained) {
      int64_t epoch = 0;
      switch (table_.Renew(id, epochs_.span(), &epoch)) {
        case CompactTable<Tag, Processor>::Renewal::kIsNewest:
          return epochs_.Touch();
        case CompactTable<Tag, Processor>::Renewal::kMoved:
          return epochs_.Renew(epoch);
        case CompactTable<Tag, Processor>::Renewal::kNone:
          break;
      }
    }
    if (__builtin_expect(epochs_.ids() >= Base::limit_ids_, 0)) return AddLater(id);
    Add(id, found);
  }

  // For lines that have changed since they were looked at, or that must make room.
  [[gnu::noinline]] void AddLater(IdHash id) {
    Processor::Leave();
    Base::MakeRoom();
    if (Squeeze(id)) NoteAdded();
  }

  [[gnu::always_inline]] void Add(IdHash id, const CompactFound& found) {
    if (__builtin_expect(table_.Append(id, found, epochs_.span()) || AddToFullLines(id), 1)) NoteAdded();
  }

  [[gnu::noinline]] bool AddToFullLines(IdHash id) {
    Processor::Leave();
    Base::NotePressure();
    return Squeeze(id);
  }

  // False if the id is lost: its lines and the stash are full, and the table is not.
  [[gnu::noinline]] bool Squeeze(IdHash id) {
    bool has_room = true;
    while (!table_.Squeeze(id, epochs_.span())) {
      has_room = Base::IsFull();
      if (!has_room) break;
      Base::MakeSomeRoom();
    }
    if (!has_room) ++Base::lost_ids_;
    Base::NoteDue();  // an id may be in the stash, or a sweep have begun
    return has_room;
  }

  [[gnu::always_inline]] void NoteAdded() {
    epochs_.Add();
    ++Base::inserts_;
    if (__builtin_expect(epochs_.ids() > Base::due_over_ids_, 0)) DoWork(0);
  }

  bool BeginEpochIfDue() {
    if (__builtin_expect(!epochs_.BeginIfDue(Base::most_ids_in_epoch_), 1)) return false;
    BeginEpoch();
    return true;
  }

  // What a loop calls now and then.
  [[gnu::noinline]] void BeginEpoch() {
    Processor::Leave();
    Base::NoteEpoch();
  }
  [[gnu::noinline]] void NoteForgotten() {
    Processor::Leave();
    Base::merge_failed_at_ = INT64_MAX;
    Base::NoteSize();
  }
  [[gnu::noinline]] void DoWork(int64_t lines_due) {
    Processor::Leave();
    Base::Work(lines_due);
  }

  CompactTable<Tag, Processor> table_;
};

template <typename Tag, typename Processor>
absl::StatusOr<std::unique_ptr<Filter>> MakeCompactFilter(const FilterOptions& options,
                                                          const CompactFormats& formats) {
  absl::StatusOr<CompactMemory> memory =
      TakeCompactMemory(options.memory, CompactFilter<Tag, Processor>::OwnBytes());
  if (!memory.ok()) return memory.status();
  return std::make_unique<CompactFilter<Tag, Processor>>(options, formats, *std::move(memory));
}

// A filter whose code is for one processor.
template <typename Processor>
absl::StatusOr<std::unique_ptr<Filter>> NewCompactFilterFor(const FilterOptions& options) {
  const CompactFormats formats = CompactFormatsFor(options.target_fpp);
  return formats.wide ? MakeCompactFilter<uint16_t, Processor>(options, formats)
                      : MakeCompactFilter<uint8_t, Processor>(options, formats);
}

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_FILTER_CODE_H_
