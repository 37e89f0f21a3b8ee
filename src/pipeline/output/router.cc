#include "src/pipeline/output/router.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lethe/event.h"

namespace lethe {
namespace {

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
    return static_cast<int32_t>(HashId(bytes, 0).a % static_cast<uint64_t>(partitions));
  };
  if (fields.id_state == RecordFields::State::kPresent) return hashed(fields.id);
  return record.key ? hashed(*record.key) : record.partition % partitions;
}

std::array<AddedHeader, 2> RoutedFromHeaders(const RoutedFrom& from) {
  return {{{kPartitionHeader, absl::StrCat(from.partition)}, {kOffsetHeader, absl::StrCat(from.offset)}}};
}

std::optional<RoutedFrom> TakeRoutedFrom(std::vector<HeaderView>& headers) {
  if (headers.size() < 2) return std::nullopt;
  const auto partition = NumberIn(headers[headers.size() - 2], kPartitionHeader);
  const auto offset = NumberIn(headers.back(), kOffsetHeader);
  if (!partition || *partition > INT32_MAX || !offset) return std::nullopt;
  headers.resize(headers.size() - 2);
  return RoutedFrom{static_cast<int32_t>(*partition), *offset};
}

Router::Original Router::OriginalOf(const RoutedFrom& here, std::vector<HeaderView>& headers) const {
  if (!options_.routed_from.empty()) {
    if (const auto from = TakeRoutedFrom(headers)) return {options_.routed_from, *from};
  }
  return {options_.input, here};
}

}  // namespace lethe
