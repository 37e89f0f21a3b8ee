// What is known of the topics: their partitions, their limits, and the records that they reject.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_TOPICS_H_
#define LETHE_SRC_PIPELINE_OPTIONS_TOPICS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

struct ZSTD_CCtx_s;

namespace lethe {

// Compresses with zstd at its default level, as librdkafka does with `compression.type=zstd`, and keeps only
// the size. Takes memory when it is first asked: each topic of a lane has one. Thread safety: none.
class CompressedSize {
 public:
  CompressedSize();

  // Whether the bytes compress to more than `most`; stops as soon as that is known. False if zstd fails.
  bool Exceeds(absl::string_view bytes, int64_t most);

 private:
  std::unique_ptr<ZSTD_CCtx_s, size_t (*)(ZSTD_CCtx_s*)> context_;
};

// The records that a topic rejects by its settings.
struct RecordRules {
  int64_t max_batch_bytes = INT64_MAX;
  int64_t before_max_ms = INT64_MAX;  // how much a record may be older than the broker's clock
  int64_t after_max_ms = INT64_MAX;   // how much newer
  bool needs_key = false;             // it is compacted
  // It accepts older records, and deletes them soon.
  absl::Duration kept_for = absl::InfiniteDuration();

  // Why the topic rejects such a record; empty if it accepts it, or if the timestamp is within a minute of
  // the bound, since clocks differ. A timestamp of 0 or less becomes the present time.
  std::string WhyRefused(int64_t timestamp_ms, bool has_key, absl::Time now) const;

  // Whether the topic deletes such a record soon after it was written. A timestamp of 0 or less becomes the
  // present time.
  bool Expires(int64_t timestamp_ms, absl::Time now) const {
    return kept_for != absl::InfiniteDuration() && timestamp_ms > 0 &&
           absl::FromUnixMillis(timestamp_ms) < now - kept_for;
  }

  // Why the topic rejects a record with this value for its size, with any compression; empty if it may accept
  // it. Key, headers and the batch's header are not counted.
  std::string WhyTooLarge(absl::string_view value, CompressedSize& compressed) const;
};

// The topic with the fewest partitions of several.
struct SmallestTopic {
  std::string topic;
  int32_t partitions = 0;
};

struct Topics {
  int32_t partitions = 0;         // of the input
  int32_t output_partitions = 0;  // of the output
  int32_t least_partitions = 0;   // that TopicsOfSamePartition() have; 0: not known
  int64_t input_max_bytes = 0;    // of a batch in it (max.message.bytes)
  // The largest batch that each output topic accepts (max.message.bytes, segment.bytes); 0: not written to.
  int64_t output_max_bytes = 0;
  std::vector<int64_t> counter_max_bytes;  // in the order of the options
  int64_t divert_max_bytes = 0;
  // Of the input, per partition: the last stable offsets. Of a repartition topic the high watermarks, since a
  // commit is answered before its records are stable.
  std::vector<int64_t> end_offsets;
  RecordRules output_rules;
  std::vector<std::string> warnings;

  // The largest batch that all of them accept.
  int64_t max_batch_bytes() const;
  // The largest record that may come uncompressed from the input.
  int64_t max_record_bytes() const;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_TOPICS_H_
