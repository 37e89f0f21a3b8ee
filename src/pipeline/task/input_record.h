// A record of the input, wherever it was read from.
#ifndef LETHE_SRC_PIPELINE_TASK_INPUT_RECORD_H_
#define LETHE_SRC_PIPELINE_TASK_INPUT_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/record/record.h"

namespace lethe {

// One header; nullopt is a null value.
struct HeaderView {
  absl::string_view name;
  std::optional<absl::string_view> value;
};

// The headers of a record, which the source implements.
class InputHeaders : public RecordHeaders {
 public:
  // Appends all of them in their order. Valid as long as the record.
  virtual void AppendTo(std::vector<HeaderView>& headers) const = 0;
};

// What a source says in the place of a record.
struct SourceEvent {
  enum class Kind {
    kEnd,            // the reader has come to the end of the partition's log, which is `offset`
    kUnreadable,     // the batch at `offset` cannot be fetched, decompressed or parsed
    kUnreadDeleted,  // the log does not have the offset that is to be read
    kError,          // anything else, of a partition or of none
  };

  Kind kind = Kind::kError;
  std::string why;  // in words, with the partition if there is one
  int code = 0;     // of the source's client
};

// Views, valid as long as the source's batch. Plain: a batch has hundreds of them.
struct InputRecord {
  int32_t partition = -1;  // -1: an event of no partition
  int64_t offset = -1;
  std::optional<absl::string_view> key = std::nullopt;
  std::optional<absl::string_view> value = std::nullopt;
  int64_t timestamp_ms = -1;              // -1: it has none
  const InputHeaders* headers = nullptr;  // null: it has none
  const SourceEvent* event = nullptr;     // not null: this stands here in the place of a record

  RecordView view() const { return {key, value, headers}; }
  // InfinitePast() if the record has none.
  absl::Time time() const {
    return timestamp_ms < 0 ? absl::InfinitePast() : absl::FromUnixMillis(timestamp_ms);
  }
  // The value, empty if it is null: what two copies of an event should have in common.
  absl::string_view payload() const { return value.value_or(""); }
  // A hash of key and value, to recognize the record by.
  uint64_t Hash() const;
};

// Consecutive records of one partition in a batch.
using RecordRun = absl::Span<const InputRecord>;

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_INPUT_RECORD_H_
