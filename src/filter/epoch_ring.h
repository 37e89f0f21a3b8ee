// Which ids are still young enough: stream time in epochs, each with a tag.
#ifndef LETHE_SRC_FILTER_EPOCH_RING_H_
#define LETHE_SRC_FILTER_EPOCH_RING_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "src/filter/stream_clock.h"

namespace lethe {

// For filters that keep a tag with each id instead of its time. A tag is a number from 1 to slices + 2; 0
// is left to them for what is empty. An epoch lasts a slice of the horizon (or less, where its owner ends
// it early), and lives until all of its ids are older than the horizon: an id is live for the horizon at
// least, and for a slice more at most.
//
// Invariant: from 1 to slices + 1 epochs are live, the newest being the current one, whose tag new ids
// get. The tag of the next one is free since the current one began at the latest: an owner must have
// taken it off all ids when it calls Begin(). Thread safety: none.
class EpochRing {
 public:
  static constexpr int kMostSlices = 61;  // so that a set of tags is a 64-bit word

  EpochRing(absl::Duration horizon, int slices);

  // Moves time, never back. True if the current epoch is over: Begin() must come before the next id.
  bool AdvanceTo(int64_t stream_time_ms);

  // Ends the current epoch and begins a new one. Epochs die that are past the horizon, and the oldest if
  // there would be too many.
  void Begin();

  // Lets the oldest epoch die before its time. False, if only the current one is live.
  bool DropOldest();

  // An id of the present is not kept: nothing up to now is all in live epochs.
  void NoteLost();

  // Adds to the ids of a live epoch.
  void Count(int tag, int64_t ids) {
    epochs_[static_cast<size_t>(tag)].ids += ids;
    ids_ += ids;
  }

  int current() const { return current_; }
  uint64_t live() const { return live_; }  // the set of live tags, bit by bit
  int live_count() const { return live_count_; }
  int slices() const { return slices_; }
  int64_t ids() const { return ids_; }  // of all live epochs
  int64_t ids_of(int tag) const { return epochs_[static_cast<size_t>(tag)].ids; }
  absl::Duration slice() const { return absl::Milliseconds(clock_.interval_ms()); }
  // All ids since that long ago are in live epochs.
  absl::Duration Window() const { return clock_.SinceTime(covered_since_ms_); }
  int64_t begun() const { return begun_; }

 private:
  struct Epoch {
    int64_t end_ms = kNoStreamTime;  // exclusive; none while there is no time
    int64_t ids = 0;
  };

  int Oldest() const { return (current_ - live_count_ + tags_) % tags_ + 1; }
  bool IsPastHorizon(const Epoch& epoch) const;

  const int64_t horizon_ms_;
  const int slices_;
  const int tags_;
  StreamClock clock_;
  std::array<Epoch, kMostSlices + 3> epochs_;  // by tag
  int current_ = 1;
  int live_count_ = 1;
  uint64_t live_ = uint64_t{1} << 1;
  int64_t ids_ = 0;
  int64_t current_end_ms_ = kNoStreamTime;  // of the slice in which the current epoch began
  int64_t covered_since_ms_ = kNoStreamTime;
  int64_t begun_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_EPOCH_RING_H_
