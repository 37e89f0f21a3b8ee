// A record of the input, from any source.
#ifndef LETHE_SRC_PIPELINE_TASK_INPUT_RECORD_H_
#define LETHE_SRC_PIPELINE_TASK_INPUT_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/pipeline/options/topic_partition.h"
#include "src/record/record.h"
#include "src/text/fixed_hash.h"

namespace lethe {

// One header; nullopt is a null value.
struct HeaderView {
  absl::string_view name;
  std::optional<absl::string_view> value;
};

// The source implements it.
class InputHeaders : public RecordHeaders {
 public:
  // Appends all in their order. Valid as long as the record.
  virtual void AppendTo(std::vector<HeaderView>& headers) const = 0;
};

// An event in the place of a record.
struct SourceEvent {
  enum class Kind {
    // Of the group. They come before the records of their batch, and wait for an answer (Source::Assign,
    // Source::Unassign): until then no other comes, and no record of partitions that are new.
    kAssigned,  // `partitions` belong to this member from now on
    kRevoked,   // they are about to be another's: what was judged may still be committed
    kLost,      // they may be another's already
    // Of a partition.
    kEnd,            // the reader has reached the end of the partition's log, at `offset`
    kUnreadable,     // the batch at `offset` cannot be fetched, decompressed or parsed
    kUnreadDeleted,  // the log does not have the next offset any more
    kError,          // any other error, of a partition or of none
  };

  // What an error is about.
  enum class Problem {
    kOther,  // it passes, or it is reported elsewhere
    kMayNotUseGroup,
    kMayNotReadTopic,
    kOtherProtocol,  // the group has members that do not take this one's assignment protocol
    kNameTaken,      // another member has come with this one's name: this one is fenced
    kFatal,          // the source cannot go on
  };

  Kind kind = Kind::kError;
  std::string why = {};  // with the partition if there is one
  Problem problem = Problem::kOther;
  std::vector<TopicPartition> partitions = {};  // of an event of the group
};

// Views, valid as long as the source's batch. Plain: a batch has hundreds of them.
struct InputRecord {
  int32_t partition = -1;  // -1: an event of no partition
  int64_t offset = -1;
  std::optional<absl::string_view> key = std::nullopt;
  std::optional<absl::string_view> value = std::nullopt;
  int64_t timestamp_ms = -1;              // -1: it has none
  const InputHeaders* headers = nullptr;  // null: it has none
  const SourceEvent* event = nullptr;     // not null: an event in the place of a record
  int32_t flow = 0;                       // of its topic; -1: an event of no topic

  TopicPartition from() const { return {flow, partition}; }
  RecordView view() const { return {key, value, headers}; }
  // InfinitePast() if the record has none.
  absl::Time time() const {
    return timestamp_ms < 0 ? absl::InfinitePast() : absl::FromUnixMillis(timestamp_ms);
  }
  // Copies of an event should have the same.
  absl::string_view payload() const { return value.value_or(""); }
  // Of key and value: recognizes the record.
  uint64_t Hash() const {
    const uint64_t key_hash = key ? FixedHash(*key, 1).a : 0;
    return value ? FixedHash(*value, key_hash).a : ~key_hash;
  }
};

// Consecutive records of one partition in a batch.
using RecordRun = absl::Span<const InputRecord>;

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_INPUT_RECORD_H_
