// What a topic refuses by its settings.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_RECORD_RULES_H_
#define LETHE_SRC_PIPELINE_OPTIONS_RECORD_RULES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/pipeline/options/compressed_size.h"

namespace lethe {

struct RecordRules {
  int64_t max_batch_bytes = INT64_MAX;
  int64_t before_max_ms = INT64_MAX;  // how much older than the broker's clock a record may be
  int64_t after_max_ms = INT64_MAX;   // how much younger
  bool needs_key = false;             // it is compacted

  // Why the topic refuses such a record; empty: it takes it, or is within a minute of the bound, where the
  // clocks of broker and lethe may disagree. A timestamp of 0 or less is none: it becomes the present time.
  std::string WhyRefused(int64_t timestamp_ms, bool has_key, absl::Time now) const;

  // Why the topic refuses a record with this value for its size, however well it is compressed; empty: it may
  // take it. Key, headers and the batch's own head, which come on top, are left out.
  std::string WhyTooLarge(absl::string_view value, CompressedSize& compressed) const;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_RECORD_RULES_H_
