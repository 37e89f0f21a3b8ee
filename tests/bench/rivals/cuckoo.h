// A cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher, 2014) whose entries have epochs.
#ifndef LETHE_TESTS_BENCH_RIVALS_CUCKOO_H_
#define LETHE_TESTS_BENCH_RIVALS_CUCKOO_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/memory/line_memory.h"
#include "src/published/bit_positions.h"
#include "tests/bench/ring_status.h"
#include "tests/bench/traffic.h"

namespace lethe::bench {

// Buckets of four slots, packed, of fixed number; a slot has a fingerprint and the epoch of its id, a
// sixteenth of the horizon, modulo 31 (0: empty). A slot whose epoch is over is free; when an epoch begins, a
// part of the table is cleared of these before their number comes again. An id that 500 moves found no slot
// for is lost.
//
// Thread safety: as Filter.
class CuckooEpochs final : public EachIdFilter<CuckooEpochs> {
 public:
  static constexpr int kEpochs = 16;
  static constexpr double kLoad = 0.90;

  // For so many ids a horizon; those of the present epoch come on top.
  static int64_t BucketsFor(double window) {
    return static_cast<int64_t>(window * (kEpochs + 1) / kEpochs / (kSlots * kLoad)) + 1;
  }
  static int FingerprintBitsFor(double target_fpp) {
    return static_cast<int>(std::ceil(std::log2(2 * kSlots * kLoad / target_fpp)));
  }
  static int64_t BytesFor(int64_t buckets, int fingerprint_bits) {
    return buckets * kSlots * (fingerprint_bits + kEpochBits) / 8 + 8;  // the last load is of eight bytes
  }

  CuckooEpochs(LineMemory memory, int64_t buckets, int fingerprint_bits, int64_t horizon_ms)
      : memory_(std::move(memory)),
        buckets_(static_cast<uint64_t>(buckets)),
        fingerprint_bits_(fingerprint_bits),
        slot_bits_(static_cast<uint64_t>(fingerprint_bits + kEpochBits)),
        slot_mask_((uint64_t{1} << slot_bits_) - 1),
        clock_((horizon_ms + kEpochs - 1) / kEpochs) {
    NoteEpoch();
  }

  void AdvanceTo(int64_t stream_time_ms) override {
    for (uint64_t due = clock_.AdvanceTo(stream_time_ms); due > 0; --due) {
      ++epoch_;
      NoteEpoch();
      for (uint64_t i = 0; i < buckets_ / kEpochsToSweep + 1; ++i) Sweep();
    }
  }

  FilterStatus Status() const override {
    FilterStatus status = RingStatus(clock_, kEpochs, epoch_, memory_.bytes());
    status.fpp.modelled = std::ldexp(2 * kSlots * kLoad, -fingerprint_bits_);
    return status;
  }

 private:
  friend class EachIdFilter<CuckooEpochs>;

  static constexpr int kSlots = 4;
  static constexpr int kEpochBits = 5;
  static constexpr int kStamps = 31;
  static constexpr int kEpochsToSweep = kStamps - kEpochs - 3;
  static constexpr int kMostMoves = 500;

  struct Place {
    uint8_t* at;
    uint64_t shift;
  };
  Place At(uint64_t bucket, int slot) const {
    const uint64_t bit = (bucket * kSlots + static_cast<uint64_t>(slot)) * slot_bits_;
    return {static_cast<uint8_t*>(memory_.data()) + bit / 8, bit % 8};
  }
  static uint64_t Load(const uint8_t* at) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    return word;
  }
  uint64_t Get(uint64_t bucket, int slot) const {
    const Place place = At(bucket, slot);
    return Load(place.at) >> place.shift & slot_mask_;
  }
  void Set(uint64_t bucket, int slot, uint64_t value) {
    const Place place = At(bucket, slot);
    const uint64_t word = (Load(place.at) & ~(slot_mask_ << place.shift)) | value << place.shift;
    std::memcpy(place.at, &word, sizeof(word));
  }

  uint64_t Stamp(int64_t epoch) const { return static_cast<uint64_t>(epoch % kStamps) + 1; }
  bool IsLive(uint64_t value) const { return (live_ >> (value & ((1u << kEpochBits) - 1)) & 1) != 0; }
  void NoteEpoch() {
    live_ = 0;
    for (int64_t epoch = std::max<int64_t>(epoch_ - kEpochs, 0); epoch <= epoch_; ++epoch) {
      live_ |= uint32_t{1} << Stamp(epoch);
    }
  }
  void Sweep() {
    for (int slot = 0; slot < kSlots; ++slot) {
      if (!IsLive(Get(swept_, slot))) Set(swept_, slot, 0);
    }
    swept_ = (swept_ + 1) % buckets_;
  }

  uint64_t Fingerprint(IdHash id) const { return id.b >> (64 - fingerprint_bits_); }
  uint64_t FirstBucket(IdHash id) const { return ScaleDown(id.a, buckets_); }
  uint64_t OtherBucket(uint64_t bucket, uint64_t fingerprint) const {
    const uint64_t sum = ScaleDown((fingerprint + 1) * 0x9E3779B97F4A7C15u, buckets_);
    return sum >= bucket ? sum - bucket : sum + buckets_ - bucket;
  }

  void PrefetchId(IdHash id) const {
    const uint64_t first = FirstBucket(id);
    for (const uint64_t bucket : {first, OtherBucket(first, Fingerprint(id))}) {
      __builtin_prefetch(At(bucket, 0).at, 1);
      __builtin_prefetch(At(bucket, kSlots - 1).at, 1);
    }
  }

  bool IsIn(uint64_t bucket, uint64_t fingerprint) const {
    for (int slot = 0; slot < kSlots; ++slot) {
      const uint64_t value = Get(bucket, slot);
      if (value >> kEpochBits == fingerprint && IsLive(value)) return true;
    }
    return false;
  }
  bool ContainsId(IdHash id) const {
    const uint64_t fingerprint = Fingerprint(id);
    const uint64_t first = FirstBucket(id);
    return IsIn(first, fingerprint) || IsIn(OtherBucket(first, fingerprint), fingerprint);
  }

  bool PutInto(uint64_t bucket, uint64_t value) {
    for (int slot = 0; slot < kSlots; ++slot) {
      if (IsLive(Get(bucket, slot))) continue;
      Set(bucket, slot, value);
      return true;
    }
    return false;
  }
  void InsertId(IdHash id) {
    uint64_t value = Fingerprint(id) << kEpochBits | Stamp(epoch_);
    uint64_t bucket = FirstBucket(id);
    if (PutInto(bucket, value)) return;
    for (int moves = 0; moves < kMostMoves; ++moves) {
      bucket = OtherBucket(bucket, value >> kEpochBits);
      if (PutInto(bucket, value)) return;
      const int slot = static_cast<int>(Mix(++moves_) % kSlots);
      const uint64_t other = Get(bucket, slot);
      Set(bucket, slot, value);
      value = other;
    }
  }

  LineMemory memory_;
  const uint64_t buckets_;
  const int fingerprint_bits_;
  const uint64_t slot_bits_;
  const uint64_t slot_mask_;
  StreamClock clock_;
  int64_t epoch_ = 0;
  uint32_t live_ = 0;  // bit i: an entry with the stamp i counts
  uint64_t swept_ = 0;
  uint64_t moves_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RIVALS_CUCKOO_H_
