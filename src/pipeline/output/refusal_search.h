// Finds the records that the output refuses for good.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_REFUSAL_SEARCH_H_
#define LETHE_SRC_PIPELINE_OUTPUT_REFUSAL_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/pipeline/options/topics.h"

namespace lethe {

// A record of a batch that the broker has refused.
struct RefusedRecord {
  int64_t bytes = 0;  // of key and value
  int64_t timestamp_ms = 0;
  bool has_key = false;
  bool is_invalid = false;  // it was not refused as too large by the broker
  bool diverted = false;    // it went to the divert topic
};

// Kafka refuses whole batches, and librdkafka before 2.4 does not name the record. Known are records that
// were alone in their batch, and those that the topic's settings forbid. For a while after such a refusal,
// records that the settings forbid (and values that zstd does not make small enough) are not sent: each would
// cost an aborted transaction. Then the broker is asked again, since settings change. Thread safety: none.
class RefusalSearch {
 public:
  static constexpr absl::Duration kTrust = absl::Seconds(10);

  explicit RefusalSearch(const RecordRules& rules) : rules_(rules) {}

  // Whether the topic's settings are to be asked for first: those known may be as old as the process, and
  // records would be dropped by a limit that was raised since.
  bool NeedsRules(absl::Span<const RefusedRecord> refused, absl::Time steady_now) const;
  void SetRules(const RecordRules& rules) { rules_ = rules; }
  const RecordRules& rules() const { return rules_; }

  // The indices of the records that are certainly to blame. Batches of several records have at most
  // `batch_bytes`. `named`: the broker has named each bad record.
  std::vector<size_t> ToBlame(absl::Span<const RefusedRecord> refused, int64_t batch_bytes, bool named,
                              absl::Time now, absl::Time steady_now);

  // Whether the broker has lately refused a record by these settings.
  bool trusted(absl::Time steady_now) const { return steady_now < trusted_until_; }
  bool sizes_trusted(absl::Time steady_now) const { return steady_now < sizes_trusted_until_; }

  // While trusted: why the broker would refuse this record; empty: send it.
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
