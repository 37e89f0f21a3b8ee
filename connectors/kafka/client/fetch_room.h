// How much a consumer may fetch at once.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_FETCH_ROOM_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_FETCH_ROOM_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace lethe::kafka {

// A fetch is bounded as the broker stores it, and librdkafka decompresses all of it at once: a batch of 250
// bytes may become 5 MB, and its queue counts values only, neither keys nor headers. Only large records can
// be packed that densely (each takes some bytes of its own), so the limits follow the size of the records
// that came: large ones are fetched a batch at a time, and few are queued. The first are taken for large.
// Small ones may stand in front of a bomb. So a fetch stays at kFirstFetchBytes until so many small records
// came in a row that a process which a bomb ended, and which starts again in front of it, reads it a batch at
// a time; and a replay ends with such fetches.
//
// Not thread-safe.
class FetchRoom {
 public:
  struct Limits {
    int64_t fetch_bytes = 0;  // of one fetch, as stored; 1: a single batch
    int64_t queued_records = 0;
    bool operator==(const Limits&) const = default;
  };

  // `most` is for small records.
  explicit FetchRoom(Limits most) : most_(most), limits_(Of(record_bytes_)) {}

  const Limits& limits() const { return limits_; }

  // What comes next may be anything. True: the limits have changed.
  bool Distrust() {
    small_records_ = 0;
    return Update();
  }

  // A record with its key and headers. True: the limits have changed.
  bool Add(size_t bytes) {
    const auto size = static_cast<int64_t>(bytes);
    // Small ones do not hide a large one.
    records_ = size < kGroupBytes ? records_ + 1 : 1;
    bytes_ = size < kGroupBytes ? bytes_ + size : size;
    if (records_ < kGroup && bytes_ < kGroupBytes) return false;
    // Large ones are remembered for a while.
    record_bytes_ = std::max(bytes_ / records_, record_bytes_ - record_bytes_ / 16 - 1);
    small_records_ = record_bytes_ * kFirstFetchBytes <= kFetchTimesRecord ? small_records_ + records_ : 0;
    records_ = bytes_ = 0;
    return Update();
  }

 private:
  static constexpr int64_t kGroup = 64;
  static constexpr int64_t kGroupBytes = int64_t{1} << 20;
  // Of the queue in memory.
  static constexpr int64_t kQueueBytes = int64_t{32} << 20;
  // Records of 4 KiB may be fetched 16 KiB at a time.
  static constexpr int64_t kFetchTimesRecord = int64_t{64} << 20;
  static constexpr int64_t kFirstFetchBytes = int64_t{16} << 10;
  static constexpr int64_t kTrustedRecords = int64_t{1} << 18;

  bool Update() {
    const Limits next = Of(record_bytes_);
    const bool is_new = !(next == limits_);
    limits_ = next;
    return is_new;
  }

  Limits Of(int64_t record_bytes) const {
    // Rounded up, so that the limits change seldom.
    const auto size =
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(record_bytes, 1))));
    const int64_t most_bytes =
        small_records_ < kTrustedRecords ? std::min(kFirstFetchBytes, most_.fetch_bytes) : most_.fetch_bytes;
    return {std::clamp<int64_t>(kFetchTimesRecord / size, 1, most_bytes),
            std::clamp<int64_t>(kQueueBytes / size, 1, most_.queued_records)};
  }

  const Limits most_;
  int64_t record_bytes_ = int64_t{64} << 10;  // a mean
  int64_t small_records_ = 0;                 // since a large one
  Limits limits_;
  int64_t records_ = 0;  // of the present group
  int64_t bytes_ = 0;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_FETCH_ROOM_H_
