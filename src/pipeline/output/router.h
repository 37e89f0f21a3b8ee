// What `scope: topic` does to a record: to which partition it goes, and where it came from.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_ROUTER_H_
#define LETHE_SRC_PIPELINE_OUTPUT_ROUTER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/input_record.h"
#include "src/record/record_reader.h"

namespace lethe {

// Where a record is routed to: by its id; without a usable one by its key, without a key by its partition,
// so that it comes to its policy in the second stage. A fixed function: another one would be a change that
// loses duplicates.
int32_t Route(const RecordFields& fields, const InputRecord& record, int32_t partitions);

// A header that a record gets, with a value of its own.
struct AddedHeader {
  absl::string_view name;
  std::string value;
};

// The place of the record in the input, which its copy says by its last two headers.
struct RoutedFrom {
  int32_t partition = 0;
  int64_t offset = 0;
};
std::array<AddedHeader, 2> RoutedFromHeaders(const RoutedFrom& from);
// Takes these off; nullopt, and nothing is taken, if the last two headers are not those.
std::optional<RoutedFrom> TakeRoutedFrom(std::vector<HeaderView>& headers);

// A stage has one of three parts: it judges its input, it only routes it (the first stage of `scope: topic`),
// or it judges what was routed to it (the second).
class Router {
 public:
  // The options must outlive it.
  explicit Router(const DaemonOptions& options) : options_(options) {}

  // Whether the filter is asked about the record.
  bool IsJudged(const RecordFields& fields) const {
    return !options_.routes && fields.id_state == RecordFields::State::kPresent;
  }
  // What the policies are asked about: a record that is only routed meets them in the second stage.
  RecordFields::State StateOf(const RecordFields& fields) const {
    return options_.routes ? RecordFields::State::kPresent : fields.id_state;
  }
  // The partition of the output that the record is routed to; nullopt: that of its original.
  std::optional<int32_t> PartitionOf(const RecordFields& fields, const InputRecord& record,
                                     int32_t partitions) const {
    return options_.routes ? std::optional(Route(fields, record, partitions)) : std::nullopt;
  }
  // Where the record was first: in the input, or in the topic that this was routed from. Takes the headers
  // off that say so.
  struct Original {
    absl::string_view topic;
    RoutedFrom place;
  };
  Original OriginalOf(const RoutedFrom& here, std::vector<HeaderView>& headers) const;

 private:
  const DaemonOptions& options_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_ROUTER_H_
