// Split-block Bloom filters (Apache Parquet's layout), the generations of a block side by side.
#ifndef LETHE_TESTS_BENCH_RIVALS_SPLIT_BLOCK_H_
#define LETHE_TESTS_BENCH_RIVALS_SPLIT_BLOCK_H_

#include <cstdint>
#include <cstring>
#include <utility>

#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/memory/line_memory.h"
#include "src/published/bit_positions.h"
#include "tests/bench/ring_status.h"

namespace lethe::bench {

inline constexpr int kSplitGenerations = 16;

// 256 bits: an id sets one bit in each of eight words.
struct alignas(32) SplitBlock {
  uint32_t words[8];
};

// What works on blocks. `blocks` are the generations of one bucket. AVX2 has it all in registers; its twin
// in plain C++ gives the same answers.
struct SplitOperations {
  // The generations that hold all the bits of the key: one bit each.
  uint32_t (*find)(const SplitBlock* blocks, uint32_t key);
  // Sets the key's bits in two neighbouring generations.
  void (*set)(SplitBlock* blocks, uint32_t key, int one, int other);
};
SplitOperations PortableSplitOperations();
// AVX2's, where the processor has it.
SplitOperations FastestSplitOperations();

// The forgetful Bloom filter with strict pairs and a mapping each for even and odd generations. Each
// generation of a bucket is a block of its own, so that a look-up reads 512 bytes in a row. The horizon is 14
// intervals; a refresh clears a generation at once.
//
// Thread safety: as Filter.
class SplitBlockFbf final : public EachIdFilter<SplitBlockFbf> {
 public:
  SplitBlockFbf(LineMemory memory, int64_t buckets, int64_t horizon_ms)
      : memory_(std::move(memory)),
        blocks_(static_cast<SplitBlock*>(memory_.data())),
        buckets_(static_cast<uint64_t>(buckets)),
        operations_(FastestSplitOperations()),
        clock_((horizon_ms + kSplitGenerations - 3) / (kSplitGenerations - 2)) {}

  void AdvanceTo(int64_t stream_time_ms) override {
    for (uint64_t due = clock_.AdvanceTo(stream_time_ms); due > 0; --due) {
      future_ = (future_ + 1) % kSplitGenerations;
      for (uint64_t i = 0; i < buckets_; ++i) blocks_[i * kSplitGenerations + Slot(0)] = SplitBlock{};
      ++refreshes_;
    }
  }

  FilterStatus Status() const override {
    return RingStatus(clock_, kSplitGenerations - 2, refreshes_, memory_.bytes());
  }

 private:
  friend class EachIdFilter<SplitBlockFbf>;

  uint64_t Slot(int age) const {
    return static_cast<uint64_t>((future_ + kSplitGenerations - age) % kSplitGenerations);
  }
  SplitBlock* Bucket(IdHash id) const { return blocks_ + ScaleDown(id.a, buckets_) * kSplitGenerations; }
  static uint32_t Key(IdHash id) { return static_cast<uint32_t>(id.b >> 16); }

  void PrefetchId(IdHash id) const {
    const char* const bucket = reinterpret_cast<const char*>(Bucket(id));
    for (size_t i = 0; i < kSplitGenerations * sizeof(SplitBlock); i += 64) __builtin_prefetch(bucket + i, 1);
  }

  bool ContainsId(IdHash id) const {
    const uint32_t found = operations_.find(Bucket(id), Key(id));
    // Bit j stands for the pair (j, j - 1); future and oldest are neighbours in the ring, but no pair.
    const uint32_t older = (found << 1 | found >> (kSplitGenerations - 1)) & 0xffff;
    return (found & older & ~(1u << Slot(kSplitGenerations - 1))) != 0;
  }

  void InsertId(IdHash id) {
    operations_.set(Bucket(id), Key(id), static_cast<int>(Slot(0)), static_cast<int>(Slot(1)));
  }

  LineMemory memory_;
  SplitBlock* const blocks_;
  const uint64_t buckets_;
  const SplitOperations operations_;
  StreamClock clock_;
  int future_ = 0;
  int64_t refreshes_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RIVALS_SPLIT_BLOCK_H_
