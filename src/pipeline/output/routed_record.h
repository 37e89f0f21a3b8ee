// A record that is routed, for `scope: topic`: its partition by its id, and its original place.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_ROUTED_RECORD_H_
#define LETHE_SRC_PIPELINE_OUTPUT_ROUTED_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/input_record.h"
#include "src/record/record_reader.h"

namespace lethe {

// The partition that a record is routed to: by its id, else by its key, else by its partition. Fixed for
// good: another function would part duplicates.
int32_t Route(const RecordFields& fields, const InputRecord& record, int32_t partitions);

// Owns its value.
struct AddedHeader {
  absl::string_view name;
  std::string value;
};

// The original place of a routed record, in its last headers.
struct RoutedFrom {
  int32_t partition = 0;
  int64_t offset = 0;
  absl::string_view topic = {};  // if several are merged
};
std::vector<AddedHeader> RoutedFromHeaders(const RoutedFrom& from);
// Removes these; nullopt, and removes nothing, if the last headers are others.
std::optional<RoutedFrom> TakeRoutedFrom(bool is_merged, std::vector<HeaderView>& headers);

// The record's place before routing; its own if it was not routed. `options` have `routed_from`. Removes the
// headers that have it.
struct Original {
  absl::string_view topic;
  RoutedFrom place;
};
Original OriginalOf(const DaemonOptions& options, const RoutedFrom& here, std::vector<HeaderView>& headers);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_ROUTED_RECORD_H_
