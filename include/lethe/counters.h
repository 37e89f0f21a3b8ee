// What `lethe run` counts, as it stands in the topics of its counters, for programs that read these.
#ifndef LETHE_COUNTERS_H_
#define LETHE_COUNTERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lethe/export.h"
#include "lethe/secret_hash.h"

namespace lethe {

// A record of the topic of a counter with `mode: total`: what a key has come to in one partition of the
// input, which is a shard of the counter.
//
//   key    COUNTER/TOPIC/PARTITION/KEY, of which KEY may be any bytes, and the others have no '/'
//   value  {"mode":"total","total":TOTAL,"offset":OFFSET}
//
// The total has everything in it that the partition holds before OFFSET. Offsets rise from one total of a
// shard to the next.
struct CounterTotal {
  std::string counter;
  std::string topic;
  int32_t partition = 0;
  std::string key;
  int64_t total = 0;
  int64_t offset = 0;

  std::string RecordKey() const;
  std::string RecordValue() const;
  // InvalidArgument says what is wrong: the record is none of these. Without a value, which is the tombstone
  // of a total that somebody has deleted, `total` and `offset` are 0.
  static absl::StatusOr<CounterTotal> Parse(absl::string_view key, std::optional<absl::string_view> value);
};

// Adds up the records of one counter's topic, whichever mode it has. They must be read with
// isolation.level=read_committed, those of each partition in their order, from the beginning of the topic.
//
//   lethe::CounterReader likes;
//   for (const auto& [key, value] : records) {
//     if (absl::Status added = likes.Add(key, value); !added.ok()) return added;
//   }
//   const absl::int128 total = likes.Total("page 7");
//
// Not thread-safe.
class LETHE_EXPORT CounterReader {
 public:
  // A total may leave 64 bits: it is a sum over partitions.
  using Totals = SecretHashMap<absl::int128>;

  // One record. InvalidArgument: it is no record of a counter, or one of another mode than those before;
  // nothing is added.
  absl::Status Add(std::optional<absl::string_view> key, std::optional<absl::string_view> value);

  // 0 if nothing was counted for the key.
  absl::int128 Total(absl::string_view key) const;
  const Totals& totals() const { return totals_; }
  // The `most` keys with the largest totals, these first; of equal totals by key.
  std::vector<std::pair<std::string, absl::int128>> Top(size_t most) const { return Top(totals_, most); }
  // The same of any totals.
  static std::vector<std::pair<std::string, absl::int128>> Top(const Totals& totals, size_t most);

 private:
  enum class Mode { kUnknown, kDelta, kTotal };

  absl::Status AddDelta(absl::string_view key, absl::string_view value);
  absl::Status AddTotal(absl::string_view key, std::optional<absl::string_view> value);

  Mode mode_ = Mode::kUnknown;
  Totals totals_;
  SecretHashMap<int64_t> shards_;  // by the record's key
};

}  // namespace lethe

#endif  // LETHE_COUNTERS_H_
