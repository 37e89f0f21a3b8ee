// Which records the output refuses for good.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_REFUSAL_SEARCH_H_
#define LETHE_SRC_PIPELINE_OUTPUT_REFUSAL_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/pipeline/options/compressed_size.h"
#include "src/pipeline/options/record_rules.h"

namespace lethe {

// A record of a batch that the broker has refused.
struct RefusedRecord {
  int64_t bytes = 0;  // of key and value
  int64_t timestamp_ms = 0;
  bool has_key = false;
  bool is_invalid = false;  // it was not refused as too large by the broker
  bool diverted = false;    // it went to the divert topic
};

// Kafka refuses whole batches, and librdkafka before 2.4 does not tell which of its records is to blame.
// Known are records that were alone in their batch, and those that the topic's settings forbid, if it was for
// such a record that the broker refused the batch. For a while after that, records that the settings forbid
// are not even sent: each would cost an aborted transaction. The same holds for sizes: once the broker has
// refused a record for its size, values that zstd does not make small enough are not sent. What the broker
// says counts again and again, so a change of the settings is noticed.
//
// Thread safety: none.
class RefusalSearch {
 public:
  static constexpr absl::Duration kTrust = absl::Seconds(10);

  explicit RefusalSearch(const RecordRules& rules) : rules_(rules) {}

  // The settings of the output as they are now.
  void SetRules(const RecordRules& rules) { rules_ = rules; }

  // The indices of those that are to blame for certain. Batches of more than one record are at most
  // `batch_bytes` large. `named`: the broker has named each record that it finds fault with.
  std::vector<size_t> ToBlame(absl::Span<const RefusedRecord> refused, int64_t batch_bytes, bool named,
                              absl::Time now, absl::Time steady_now);

  // Whether the settings are believed, since the broker has refused such a record lately.
  bool trusted(absl::Time steady_now) const { return steady_now < trusted_until_; }
  // The same for sizes.
  bool sizes_trusted(absl::Time steady_now) const { return steady_now < sizes_trusted_until_; }

  // While it is trusted: why it is no use to send this record; empty: send it.
  std::string Foresee(int64_t timestamp_ms, bool has_key, absl::Time now) const {
    return rules_.WhyRefused(timestamp_ms, has_key, now);
  }
  std::string ForeseeSize(absl::string_view value) { return rules_.WhyTooLarge(value, compressed_); }

 private:
  RecordRules rules_;
  CompressedSize compressed_;
  absl::Time trusted_until_ = absl::InfinitePast();
  absl::Time sizes_trusted_until_ = absl::InfinitePast();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_REFUSAL_SEARCH_H_
