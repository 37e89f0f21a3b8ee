#include "src/pipeline/output/routed_record.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/text/fixed_hash.h"

namespace lethe {
namespace {

constexpr char kTopicHeader[] = "lethe.routed.topic";
constexpr char kPartitionHeader[] = "lethe.routed.partition";
constexpr char kOffsetHeader[] = "lethe.routed.offset";

std::optional<int64_t> NumberIn(const HeaderView& header, absl::string_view name) {
  int64_t number = 0;
  if (header.name != name || !header.value || !absl::SimpleAtoi(*header.value, &number) || number < 0) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

int32_t Route(const RecordFields& fields, const InputRecord& record, int32_t partitions) {
  const auto hashed = [&](absl::string_view bytes) {
    return static_cast<int32_t>(FixedHash(bytes).a % static_cast<uint64_t>(partitions));
  };
  if (fields.id_state == RecordFields::State::kPresent) return hashed(fields.id);
  return record.key ? hashed(*record.key) : record.partition % partitions;
}

std::vector<AddedHeader> RoutedFromHeaders(const RoutedFrom& from) {
  std::vector<AddedHeader> headers;
  if (!from.topic.empty()) headers.push_back({kTopicHeader, std::string(from.topic)});
  headers.push_back({kPartitionHeader, absl::StrCat(from.partition)});
  headers.push_back({kOffsetHeader, absl::StrCat(from.offset)});
  return headers;
}

std::optional<RoutedFrom> TakeRoutedFrom(bool is_merged, std::vector<HeaderView>& headers) {
  const size_t count = is_merged ? 3 : 2;
  if (headers.size() < count) return std::nullopt;
  const auto partition = NumberIn(headers[headers.size() - 2], kPartitionHeader);
  const auto offset = NumberIn(headers.back(), kOffsetHeader);
  if (!partition || *partition > INT32_MAX || !offset) return std::nullopt;
  RoutedFrom from = {static_cast<int32_t>(*partition), *offset, {}};
  if (is_merged) {
    const HeaderView& topic = headers[headers.size() - count];
    if (topic.name != kTopicHeader || !topic.value) return std::nullopt;
    from.topic = *topic.value;
  }
  headers.resize(headers.size() - count);
  return from;
}

Original OriginalOf(const DaemonOptions& options, const RoutedFrom& here, std::vector<HeaderView>& headers) {
  const bool is_merged = !options.merged.empty();
  const auto from = TakeRoutedFrom(is_merged, headers);
  if (!from) return {options.input, here};
  return {is_merged ? from->topic : options.half.routed_from.front(), *from};
}

}  // namespace lethe
